"use strict";
/* Draws the figures that Python describes (figures.py) as SVG. Every text is set as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";
const DISTINCT = 7;
const DASHES = ["", "7 4", "2 3", "9 3 2 3"];
let ramp = ["#000", "#fff"];
let unique = 0;
const waiting = [];

function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function html(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function rampColour(share) {
  const at = Math.max(0, Math.min(1, share)) * (ramp.length - 1);
  const low = Math.min(ramp.length - 2, Math.floor(at));
  const part = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(part(ramp[low], i) + (at - low) * (part(ramp[low + 1], i) - part(ramp[low], i))));
  return `rgb(${mixed.join(" ")})`;
}

/* As palette.py: seven hues, then the same ones lighter, and for still more an ordered ramp. */
function colourOf(i, n) {
  if (n > 2 * DISTINCT) return rampColour(0.06 + 0.94 * (i / (n - 1)));
  return i < DISTINCT ? `var(--c${i})` : `color-mix(in srgb, var(--c${i - DISTINCT}) 45%, var(--card))`;
}
const dashOf = (i, n) => (n <= DISTINCT ? "" : DASHES[(n > 2 * DISTINCT ? i : Math.floor(i / DISTINCT)) % DASHES.length]);

function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return +(value / 1e6).toPrecision(3) + "M";
  if (size >= 1e4) return +(value / 1e3).toPrecision(3) + "K";
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return size >= 10 ? value.toFixed(1) : String(+value.toPrecision(3));
}

function niceTicks(low, high, count) {
  const rough = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 2.5, 5, 10].find((m) => m * power >= rough * 0.999) || 10);
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-6; tick += step) ticks.push(+tick.toPrecision(10));
  return ticks;
}

/* The tip: one element for all figures. */

function showTip(event, title, rows) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(html("b", {}, title), ...rows.map(([colour, label, value]) => html("div", { class: "row" },
    colour ? html("i", { style: `background:${colour}` }) : null, html("span", {}, label), html("em", {}, value))));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 16 + box.width > innerWidth ? event.clientX - 16 - box.width : event.clientX + 16;
  tip.style.left = `${Math.max(6, left)}px`;
  tip.style.top = `${Math.max(6, Math.min(innerHeight - box.height - 6, event.clientY - box.height / 2))}px`;
}

const hideTip = () => { document.getElementById("tip").hidden = true; };

function hover(node, move, leave = () => {}) {
  node.addEventListener("pointermove", move);
  node.addEventListener("pointerdown", move);
  node.addEventListener("pointerleave", () => { hideTip(); leave(); });
}

const pointIn = (event, root) => {
  const box = root.getBoundingClientRect();
  const view = root.viewBox.baseVal;
  return [(event.clientX - box.left) * view.width / box.width, (event.clientY - box.top) * view.height / box.height];
};

/* Axes that line and area charts share. */

function makeAxes(root, frame, xs, ys, { xTicks = 6, yTicks = 5, yNames = true, bands = [], shadeAll = false } = {}) {
  const { left, top, width, height } = frame;
  const x = (value) => left + (width * (value - xs[0])) / (xs[1] - xs[0] || 1);
  const y = (value) => top + height - (height * (value - ys[0])) / (ys[1] - ys[0] || 1);
  bands.forEach((band, i) => {
    if (!shadeAll && i % 2 === 0) return;
    const from = x(Math.max(xs[0], band.start));
    root.append(svg("rect", { x: from, y: top, width: Math.max(0, x(Math.min(xs[1], band.end)) - from), height, style: "fill:var(--shade)" }));
  });
  if (!shadeAll) bandNames(root, bands, x, top - 6);
  for (const tick of niceTicks(ys[0], ys[1], yTicks)) {
    root.append(svg("line", { x1: left, x2: left + width, y1: y(tick), y2: y(tick), style: "stroke:var(--grid)" }));
    if (yNames) root.append(svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, short(tick)));
  }
  for (const tick of niceTicks(xs[0], xs[1], xTicks))
    root.append(svg("text", { x: x(tick), y: top + height + 18, "text-anchor": "middle" }, short(tick)));
  root.append(svg("line", { x1: left, x2: left + width, y1: top + height, y2: top + height, style: "stroke:var(--soft)" }));
  return { x, y };
}

/* The stages' names above the plot, where all of them have room. */
function bandNames(root, bands, x, y) {
  const rooms = bands.map((band) => x(band.end) - x(band.start));
  if (bands.length < 2 || bands.some((band, i) => rooms[i] < 6.2 * band.label.length)) return;
  bands.forEach((band, i) => root.append(svg("text", { x: x(band.start) + rooms[i] / 2, y, "text-anchor": "middle", style: "font-size:11.5px" }, band.label)));
}

function axisNames(root, frame, xLabel, yLabel, bottom) {
  root.append(svg("text", { class: "axis", x: frame.left + frame.width / 2, y: bottom - 4, "text-anchor": "middle" }, xLabel));
  const middle = frame.top + frame.height / 2;
  root.append(svg("text", { class: "axis", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, yLabel));
}

function linePath(line, x, y) {
  let path = "", open = false, before = 0;
  line.x.forEach((value, i) => {
    if (line.y[i] === null) { open = false; return; }
    const at = y(line.y[i]);
    if (!open) path += `M${x(value).toFixed(1)} ${at.toFixed(1)}`;
    else path += line.stepped ? `L${x(value).toFixed(1)} ${before.toFixed(1)}L${x(value).toFixed(1)} ${at.toFixed(1)}` : `L${x(value).toFixed(1)} ${at.toFixed(1)}`;
    open = true; before = at;
  });
  return path;
}

function legend(items, n) {
  if (items.length < 2) return null;
  return html("ul", { class: "legend" }, ...items.map(({ label, colour, solid }) => html("li", {},
    svg("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" }, solid
      ? svg("rect", { x: 4, width: 14, height: 10, rx: 2, style: `fill:${colourOf(colour, n)}` })
      : svg("line", { x1: 1, x2: 21, y1: 5, y2: 5, style: `stroke:${colourOf(colour, n)};stroke-width:3;stroke-linecap:round`, "stroke-dasharray": dashOf(colour, n) })),
    label)));
}

function extent(values) {
  const known = values.filter((value) => value !== null);
  return [Math.min(...known), Math.max(...known)];
}

function valueAt(line, at) {
  let best = null, distance = Infinity;
  line.x.forEach((value, i) => {
    if (line.y[i] === null) return;
    if (line.stepped ? value <= at : Math.abs(value - at) < distance) { best = line.y[i]; distance = Math.abs(value - at); }
  });
  return best;
}

const CHARTS = {
  lines(figure, width) {
    const many = figure.panels.length > 1;
    const all = figure.panels.flatMap((panel) => panel.lines);
    const spans = [...all.flatMap((line) => line.x), ...figure.bands.map((band) => band.end)];
    const xs = [0, Math.max(...spans, 1)];
    const found = extent(all.flatMap((line) => line.y));
    const ys = figure.y_range || [found[0] - 0.06 * (found[1] - found[0] || 1), found[1] + 0.06 * (found[1] - found[0] || 1)];
    const perRow = many ? Math.max(1, Math.min(figure.panels.length, Math.floor(width / (width < 520 ? 150 : 215)))) : 1;
    const nRows = Math.ceil(figure.panels.length / perRow);
    const left = 56, gap = 16, title = many ? 24 : 20;
    const panelWidth = (width - left - 10 - gap * (perRow - 1)) / perRow;
    const panelHeight = many ? 118 : Math.max(210, Math.min(330, width * 0.4));
    const rowHeight = panelHeight + title + 26;
    const height = nRows * rowHeight + 22;
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    figure.panels.forEach((panel, i) => {
      const column = i % perRow, row = Math.floor(i / perRow);
      const frame = { left: left + column * (panelWidth + gap), top: row * rowHeight + title, width: panelWidth, height: panelHeight };
      const group = svg("g");
      root.append(group);
      const { x, y } = makeAxes(group, frame, xs, ys, {
        xTicks: many ? 3 : Math.max(3, Math.floor(width / 110)), yTicks: many ? 2 : 5, yNames: column === 0,
        bands: many ? panel.highlight : figure.bands, shadeAll: many,
      });
      if (panel.title) group.append(svg("text", { class: "name", x: frame.left, y: frame.top - 9 }, fitText(panel.title, panelWidth)));
      for (const line of panel.lines) {
        const dash = dashOf(line.colour, figure.n_colours);
        group.append(svg("path", { d: linePath(line, x, y), fill: "none", "stroke-linejoin": "round", "stroke-dasharray": dash,
          style: `stroke:${colourOf(line.colour, figure.n_colours)};stroke-width:${line.faint ? 1.2 : many ? 2 : 2.6};stroke-opacity:${line.faint ? 0.32 : 1}` }));
        if (!line.faint && !line.stepped && !many && line.x.length <= 40)
          line.x.forEach((value, k) => line.y[k] !== null && group.append(svg("circle", { cx: x(value), cy: y(line.y[k]), r: 3, style: `fill:${colourOf(line.colour, figure.n_colours)}` })));
      }
      crosshair(root, group, figure, panel, frame, xs, x);
    });
    axisNames(root, { left, top: title, width: width - left - 10, height: many ? height - 60 : panelHeight }, figure.x_label, figure.y_label, height);
    const bold = figure.panels[0].lines.filter((line) => !line.faint);
    return [legend(bold.map((line) => ({ label: line.label, colour: line.colour })), figure.n_colours), root];
  },

  areas(figure, width) {
    const sums = figure.x.map((_, i) => figure.areas.reduce((sum, area) => sum + area.y[i], 0));
    const frame = { left: 56, top: 20, width: width - 66, height: Math.max(170, Math.min(280, width * 0.36)) };
    const height = frame.height + 68;
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    const xs = [0, Math.max(...figure.x, ...figure.bands.map((band) => band.end), 1)], ys = [0, Math.max(...sums, 1)];
    const { x, y } = makeAxes(root, frame, xs, ys, { xTicks: Math.max(3, Math.floor(width / 110)), bands: figure.bands });
    let below = figure.x.map(() => 0);
    for (const area of figure.areas) {
      const above = below.map((value, i) => value + area.y[i]);
      const points = [...figure.x.map((value, i) => `${x(value).toFixed(1)},${y(above[i]).toFixed(1)}`),
        ...figure.x.map((value, i) => `${x(value).toFixed(1)},${y(below[i]).toFixed(1)}`).reverse()];
      root.append(svg("polygon", { points: points.join(" "), style: `fill:${colourOf(area.colour, figure.n_colours)};fill-opacity:.88;stroke:var(--card);stroke-width:.4` }));
      below = above;
    }
    const rule = svg("line", { y1: frame.top, y2: frame.top + frame.height, style: "stroke:var(--ink);stroke-width:1", visibility: "hidden" });
    root.append(rule);
    hover(root, (event) => {
      const at = xs[0] + ((pointIn(event, root)[0] - frame.left) / frame.width) * (xs[1] - xs[0]);
      const i = figure.x.reduce((best, value, k) => (Math.abs(value - at) < Math.abs(figure.x[best] - at) ? k : best), 0);
      for (const name of ["x1", "x2"]) rule.setAttribute(name, x(figure.x[i]));
      rule.setAttribute("visibility", "visible");
      const rows = figure.areas.filter((area) => area.y[i] > 0).map((area) => [colourOf(area.colour, figure.n_colours), area.label, short(area.y[i])]);
      showTip(event, `${short(Math.round(figure.x[i]))} ${figure.x_label}`, rows.length ? rows : [["", "nothing", ""]]);
    }, () => rule.setAttribute("visibility", "hidden"));
    axisNames(root, frame, figure.x_label, figure.y_label, height);
    return [legend(figure.areas.map((area) => ({ label: area.label, colour: area.colour, solid: true })), figure.n_colours), root];
  },

  heat(figure, width) {
    const nRows = figure.rows.length, nColumns = figure.columns.length;
    const longest = Math.max(...figure.rows.map((name) => name.length));
    const left = Math.min(width * 0.36, 22 + 7.2 * longest) + (figure.y_label ? 16 : 0);
    const over = figure.ticks !== null;
    const cell = over ? 0 : Math.min(64, (width - left - 8) / nColumns);
    const wide = over ? (width - left - 8) / nColumns : cell, high = over ? Math.max(14, Math.min(30, 320 / nRows)) : Math.max(16, Math.min(cell, 46));
    const frame = { left, top: 6, width: wide * nColumns, height: high * nRows };
    const height = frame.height + 54;
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}` });
    const [low, top] = figure.limits;
    const share = (value) => (value - low) / (top - low || 1);
    figure.values.forEach((row, i) => {
      const label = svg("text", { x: left - 9, y: frame.top + high * (i + 0.5) + 4, "text-anchor": "end" }, fitText(figure.rows[i], left - 24));
      root.append(label);
      row.forEach((value, j) => {
        if (value === null) return;
        const overlap = over ? 0.6 : -1.5;
        root.append(svg("rect", { x: left + wide * j, y: frame.top + high * i, width: Math.max(0.5, wide + overlap), height: high - 1.5, rx: over ? 0 : 3, "shape-rendering": over ? "crispEdges" : "auto", style: `fill:${rampColour(share(value))}` }));
        if (figure.written && wide > 30)
          root.append(svg("text", { x: left + wide * (j + 0.5), y: frame.top + high * (i + 0.5) + 4, "text-anchor": "middle",
            style: `fill:${share(value) > 0.55 ? "#10151c" : "#f4f6f8"}` }, short(value)));
      });
    });
    const ticks = figure.ticks || figure.columns.map((_, j) => j);
    const every = Math.ceil(ticks.length / Math.max(2, Math.floor(frame.width / 34)));
    ticks.filter((_, k) => k % every === 0).forEach((j) => root.append(svg("text", {
      x: left + wide * (over ? j : j + 0.5), y: frame.top + frame.height + 17, "text-anchor": "middle" }, figure.columns[j].split("–")[0])));
    root.append(svg("text", { class: "axis", x: left + frame.width / 2, y: height - 6, "text-anchor": "middle" }, figure.x_label));
    if (figure.y_label) root.append(svg("text", { class: "axis", x: 12, y: frame.top + frame.height / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${frame.top + frame.height / 2})` }, figure.y_label));
    hover(root, (event) => {
      const [px, py] = pointIn(event, root);
      const i = Math.floor((py - frame.top) / high), j = Math.floor((px - left) / wide);
      const value = figure.values[i] && figure.values[i][j];
      if (value === undefined || value === null) { hideTip(); return; }
      showTip(event, `${figure.rows[i]}, ${figure.x_label} ${figure.columns[j]}`, [[rampColour(share(value)), figure.value_label, short(value)]]);
    });
    const stops = ramp.map((colour, k) => `${colour} ${(100 * k) / (ramp.length - 1)}%`).join(",");
    const scale = html("div", { class: "scale" }, short(low), html("i", { style: `background:linear-gradient(90deg,${stops})` }), short(top), html("span", {}, figure.value_label));
    return [root, scale];
  },

  /* Rows without a name go on with the one above; where there is room the second block stands beside the first. */
  images(figure, width) {
    const id = `sprite-${unique++}`;
    const [tileWidth, tileHeight] = figure.tile;
    const perRow = Math.max(...figure.rows.map((row) => row.labels.length));
    const second = figure.rows.findIndex((row, i) => i > 0 && row.label);
    const beside = width >= 760 && second > 0;
    const block = beside ? (width - 28) / 2 : width;
    const left = 74, gap = 4;
    const size = Math.min(58, (block - left - gap * perRow) / perRow), high = (size * tileHeight) / tileWidth;
    const labelled = figure.rows.some((row) => row.labels.some((label) => label));
    const pitch = high + (labelled ? 17 : 5);
    const nLines = beside ? Math.max(second, figure.rows.length - second) : figure.rows.length;
    const root = svg("svg", { viewBox: `0 0 ${width} ${nLines * pitch + 6}` });
    root.append(svg("defs", {}, svg("image", { id, href: figure.sprite, width: figure.sprite_size[0], height: figure.sprite_size[1], style: "image-rendering:pixelated" })));
    figure.rows.forEach((row, i) => {
      const right = beside && i >= second;
      const x0 = right ? block + 28 : 0, y = (right ? i - second : i) * pitch;
      if (row.label) root.append(svg("text", { class: "name", x: x0, y: y + high / 2 + 4 }, row.label));
      row.labels.forEach((label, j) => {
        const x = x0 + left + j * (size + gap);
        root.append(svg("svg", { x, y, width: size, height: high, viewBox: `${j * tileWidth} ${i * tileHeight} ${tileWidth} ${tileHeight}` }, svg("use", { href: `#${id}` })));
        if (label) root.append(svg("text", { x: x + size / 2, y: y + high + 12, "text-anchor": "middle", style: "font-size:11px" }, label));
      });
    });
    return [root];
  },
};

function fitText(text, width) {
  const most = Math.max(4, Math.floor(width / 6.9));
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

function crosshair(root, group, figure, panel, frame, xs, x) {
  const rule = svg("line", { y1: frame.top, y2: frame.top + frame.height, style: "stroke:var(--soft);stroke-dasharray:3 3", visibility: "hidden" });
  const area = svg("rect", { x: frame.left, y: frame.top, width: frame.width, height: frame.height, fill: "transparent" });
  group.append(rule, area);
  const steps = [...new Set(panel.lines.flatMap((line) => line.x))];
  if (!steps.length) return;
  hover(area, (event) => {
    const at = xs[0] + ((pointIn(event, root)[0] - frame.left) / frame.width) * (xs[1] - xs[0]);
    const step = steps.reduce((best, value) => (Math.abs(value - at) < Math.abs(best - at) ? value : best));
    for (const name of ["x1", "x2"]) rule.setAttribute(name, x(step));
    rule.setAttribute("visibility", "visible");
    const bold = panel.lines.filter((line) => !line.faint);
    const shown = bold.length > 1 ? bold : panel.lines;
    const rows = shown.slice(0, 14).map((line) => [colourOf(line.colour, figure.n_colours), line.label, short(valueAt(line, step))]);
    const band = figure.bands.find((one) => one.start < step && step <= one.end);
    showTip(event, `${short(step)} ${figure.x_label}${band ? ` (${band.label})` : ""}`, rows);
  }, () => rule.setAttribute("visibility", "hidden"));
}

function drawFigure(figure, wide) {
  const plot = html("div", { class: "plot" });
  const node = html("figure", { id: `figure-${figure.key}-${unique++}`, "data-key": figure.key, class: wide ? "wide" : "" },
    html("h3", {}, figure.title), html("figcaption", {}, figure.caption), plot);
  let drawnAt = 0;
  const draw = () => {
    const width = Math.floor(plot.clientWidth);
    if (!width || width === drawnAt) return;
    drawnAt = width;
    plot.replaceChildren(...CHARTS[figure.kind](figure, width).filter(Boolean));
    const root = plot.querySelector(":scope > svg");
    root.setAttribute("role", "img");
    root.setAttribute("aria-label", figure.alt);
    node.dataset.drawn = "true";
  };
  waiting.push(draw);
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(plot);
  return node;
}

/* A figure is drawn as soon as it is in the document, where it has a width, and again when that changes. */
function drawWaiting() {
  waiting.splice(0).forEach((draw) => draw());
}
