// Curves over the scores: plots of lines that say under the pointer what each shows; the groups' distributions.

const SHARES = { low: 0, high: 1, ticks: [[0, "0%"], [0.25, "25%"], [0.5, "50%"], [0.75, "75%"], [1, "100%"]] };

/** A plot of lines over one grid of scores; `lines` are {name, kind, values, fill}, values may be null. */
function linePlot(host) {
  const tip = tooltip(host);
  let figure = null;

  function draw({ grid, lines, x, y, yTitle, text, height = 270 }) {
    host.classList.remove("blank");
    figure = plot(host, { x, y, xTitle: textOf("score"), yTitle, height, labelledby: `${host.id}-title` });
    for (const { kind, values, fill } of lines) {
      if (!values) continue;
      const path = linePath(grid, values, figure.toX, figure.toY);
      if (fill) figure.layer.append(svg("path", { class: `area ${fill}`, d: areaPath(path, grid, figure) }));
      figure.layer.append(svg("path", { class: kind, d: path }));
    }
    const cross = svg("line", { class: "cross", y1: figure.box.top, y2: figure.box.bottom, visibility: "hidden" });
    figure.layer.append(cross);
    const hide = () => { cross.setAttribute("visibility", "hidden"); tip.hide(); };
    figure.root.addEventListener("pointermove", (event) => {
      const at = pointerIn(figure, event);
      if (at.x < figure.box.left || at.x > figure.box.right) { hide(); return; }
      const index = nearestScore(grid, figure.toX, at.x);
      const across = figure.toX(grid[index]);
      for (const end of ["x1", "x2"]) cross.setAttribute(end, across);
      cross.setAttribute("visibility", "visible");
      const said = lines.map(({ name, values }) => [name, values?.[index] ?? null]);
      tip.show(said.map(([name, value]) => [name, value === null ? "\u2013" : text(value)]), across, at.y, textOf("score_at", { score: digitsText(grid[index]) }));
    });
    figure.root.addEventListener("pointerleave", hide);
    return figure;
  }

  return { draw, blank() { host.classList.add("blank"); } };
}

function nearestScore(grid, toX, x) {
  return grid.reduce((best, score, index) => (Math.abs(toX(score) - x) < Math.abs(toX(grid[best]) - x) ? index : best), 0);
}

function areaPath(path, grid, { toX, box }) {
  return path.includes("M", 1) || !path ? "" : `${path}L${toX(grid.at(-1))} ${box.bottom}L${toX(grid[0])} ${box.bottom}Z`;
}

/** How groups are scored: densities on one host; shares below each score, with a gap marked, on the other. */
function distributionPlots(densityHost, cumulativeHost) {
  const density = linePlot(densityHost);
  const cumulative = linePlot(cumulativeHost);

  /** Curves are lists by group; `strong`, where given, are the groups that the gap is about. */
  function show(curves, { groups, x, strong = null, colors = [...(groups ?? []).keys()] }) {
    if (!curves) { density.blank(); cumulative.blank(); return; }
    const faded = (index) => (strong && !strong.includes(index) ? " faded" : "");
    const few = curves.density.filter(Boolean).length <= 3;
    const lines = (kind) => groups.map((name, index) => ({
      name, kind: groupClass(colors[index]) + faded(index), values: curves[kind][index], fill: kind === "density" && few ? `c${colors[index] % 7}` : "",
    }));
    const shared = { grid: curves.grid, x };
    density.draw({ ...shared, lines: lines("density"), y: curves.top, yTitle: textOf("density"), text: digitsText });
    const figure = cumulative.draw({ ...shared, lines: lines("cumulative"), y: SHARES, yTitle: textOf("share_below"), text: (value) => `${(100 * value).toFixed(1)}%` });
    if (curves.gap) drawGap(figure, curves.gap);
  }

  return { show };
}

/** The difference of two shares, as a bracket. */
function drawGap({ layer, toX, toY, box }, gap) {
  const [x, low, high] = [toX(gap.x), toY(gap.low), toY(gap.high)];
  const left = x > box.right - 70;
  const middle = Math.min(Math.max((low + high) / 2 + 4, box.top + 12), box.bottom - 6);
  layer.append(
    svg("path", { class: "gap", d: `M${x - 5} ${low}H${x + 5}M${x - 5} ${high}H${x + 5}M${x} ${low}V${high}` }),
    svg("text", { class: "gap-label", x: x + (left ? -10 : 10), y: middle, "text-anchor": left ? "end" : "start" }, gap.size),
  );
}
