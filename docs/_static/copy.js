// A button that copies the code of a block, without prompts and without what it prints.
const ICON = '<svg viewBox="0 0 16 16" aria-hidden="true"><rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M3.5 10.5h-1v-8h8v1"/></svg>';
const DONE = '<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M3 8.5l3.5 3.5L13 5"/></svg>';

function codeOf(pre) {
  const copy = pre.cloneNode(true);
  const session = copy.querySelector(".gp") !== null;
  for (const line of copy.querySelectorAll(".go")) line.remove();
  for (const prompt of copy.querySelectorAll(".gp")) prompt.textContent = "\u0000";
  const lines = copy.textContent.split("\n").filter((line) => !session || line.startsWith("\u0000"));
  return lines.map((line) => line.replace("\u0000", "")).join("\n").trimEnd() + "\n";
}

// Browsers offer the clipboard to secure pages only; others copy what is selected.
async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.body.appendChild(document.createElement("textarea"));
  area.value = text;
  area.select();
  document.execCommand("copy");
  area.remove();
}

function show(button, icon, label) {
  button.innerHTML = icon;
  button.setAttribute("aria-label", label);
  button.title = label;
  button.classList.toggle("mf-copied", icon === DONE);
}

for (const block of document.querySelectorAll("div.highlight")) {
  const pre = block.querySelector("pre");
  if (!pre || block.closest(".sphx-glr-script-out, .viewcode-block")) continue; // outputs and listings of modules
  const button = document.createElement("button");
  button.type = "button";
  button.className = "mf-copy";
  show(button, ICON, "Copy");
  button.addEventListener("click", async () => {
    await copyText(codeOf(pre));
    show(button, DONE, "Copied");
    setTimeout(() => show(button, ICON, "Copy"), 1500);
  });
  block.append(button);
}
