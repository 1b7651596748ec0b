// A button that copies the code of a block, without prompts and without what it prints.
for (const block of document.querySelectorAll("div.highlight")) {
  const pre = block.querySelector("pre");
  if (!pre || !navigator.clipboard) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "mf-copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const copy = pre.cloneNode(true);
    const session = copy.querySelector(".gp") !== null;
    for (const line of copy.querySelectorAll(".go")) line.remove();
    for (const prompt of copy.querySelectorAll(".gp")) prompt.textContent = "\u0000";
    const lines = copy.textContent.split("\n").filter((line) => !session || line.startsWith("\u0000"));
    await navigator.clipboard.writeText(lines.map((line) => line.replace("\u0000", "")).join("\n").trimEnd() + "\n");
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.append(button);
}
