// The frontier in a notebook: the report's own scripts in a shadow root, and what it and Python tell each other.

function render({ model, el }) {
  const page = el.appendChild(document.createElement("div")).attachShadow({ mode: "open" });
  page.innerHTML = `<style>${STYLE}</style><div class="widget">
    <p class="limit"><label>Choose by a limit: unfairness at most <input type="number" id="limit" min="0" step="0.01"></label>
    <output id="message" role="status"></output></p>
    <div id="body"></div></div><svg id="blank" hidden></svg><script type="application/json" id="data"></script>`;
  const at = (id) => page.getElementById(id);

  let drawing = false; // the page says where it starts; Python knows better
  const tell = (name, value) => {
    if (drawing || model.get(name) === value) return;
    model.set(name, value);
    model.save_changes();
  };
  const go = () => {
    if (Number(at("slider").value) === model.get("row")) return;
    at("slider").value = model.get("row");
    at("slider").dispatchEvent(new Event("input"));
  };
  const draw = () => {
    at("body").innerHTML = BODY;
    at("data").textContent = JSON.stringify(model.get("content"));
    drawing = true;
    placeFrontier(page);
    drawing = false;
    go();
  };
  const say = () => { at("message").textContent = model.get("message"); };
  const limit = () => { at("limit").value = model.get("max_unfairness") ?? ""; };

  page.addEventListener("row", (event) => tell("row", event.detail));
  at("limit").addEventListener("change", (event) => tell("max_unfairness", event.target.value === "" ? null : Number(event.target.value)));
  const listeners = { "change:content": draw, "change:row": go, "change:message": say, "change:max_unfairness": limit };
  for (const [name, listener] of Object.entries(listeners)) model.on(name, listener);
  draw();
  say();
  limit();
  return () => { for (const [name, listener] of Object.entries(listeners)) model.off(name, listener); };
}

export default { render };
