/* Builds the page from the data that Python put into it. Names in records are data: they only ever become text. */

const WIDE = new Set(["prequential", "answering", "accuracy", "tasks", "responsibilities", "samples"]);
let chosenRun = null;

function commandLine(command) {
  const button = html("button", { type: "button", onclick: async () => {
    try { await navigator.clipboard.writeText(command); button.textContent = "Copied"; } catch { button.textContent = "Select and copy"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1600);
  } }, "Copy");
  return html("div", { class: "command" }, html("pre", {}, command), button);
}

function resultTable(table) {
  const head = html("tr", {}, ...table.header.map((name) => html("th", { scope: "col" }, name)));
  const rows = table.rows.map((row, i) => html("tr", {}, ...row.map((text, j) => {
    const marks = [[table.best, "best", "best of its column, by more than the errors"], [table.differs, "differs", "differs from the paper by more than noise"]]
      .filter(([marked]) => marked[i][j]);
    const cell = html("td", marks.length ? { class: marks.map((mark) => mark[1]).join(" "), title: marks.map((mark) => mark[2]).join("; ") } : {});
    if (j === 0 && table.coloured) cell.append(html("span", { class: "dot", style: `background:${colourOf(i, table.rows.length)}` }));
    cell.append(html("span", {}, text));
    const bar = table.bars && j === table.bars.column ? table.bars.shares[i] : null;
    if (bar !== null && bar !== undefined) cell.append(html("span", { class: "bar" },
      html("i", { style: `width:${bar}%;background:${table.coloured ? colourOf(i, table.rows.length) : "var(--accent)"}` })));
    return cell;
  })));
  return html("div", { class: "card scroll", tabindex: "0", role: "region", "aria-label": `Results: ${table.title}` },
    html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows)));
}

function missingRuns(missing) {
  if (!missing.length) return null;
  return html("details", missing.length <= 3 ? { open: "" } : {}, html("summary", {}, `Missing runs (${missing.length})`),
    html("ul", { class: "list" }, ...missing.map((one) => html("li", {}, html("b", {}, one.label), `: ${one.reason}`, commandLine(one.command)))));
}

function figureGrid(figures) {
  return html("div", { class: "grid" }, ...figures.map((figure) => drawFigure(figure, WIDE.has(figure.key) || figures.length === 1)));
}

function section(part) {
  return html("section", {}, html("h2", {}, part.title), part.note ? html("p", { class: "note" }, part.note) : null,
    part.table ? resultTable(part.table) : null, missingRuns(part.missing || []), figureGrid(part.figures || []));
}

function runView(run, alone) {
  const facts = html("div", { class: "tiles" }, ...run.facts.map(([value, name]) => html("div", { class: "tile" }, html("b", {}, value), html("span", {}, name))));
  const settings = html("div", { class: "card", style: "margin-top:18px" }, html("h3", {}, "Repeat this run"),
    html("p", { class: "note" }, "The same command gives the same numbers on the same kind of machine."), commandLine(run.command),
    html("p", { class: "note" }, "Record: ", html("code", {}, run.folder)),
    html("details", {}, html("summary", {}, "Configuration"), html("pre", {}, JSON.stringify(run.config, null, 2))),
    html("details", {}, html("summary", {}, "Versions and machine"), html("pre", {}, JSON.stringify(run.environment, null, 2))));
  const story = alone ? null : html("p", { class: "note", style: "margin-top:14px" }, run.story);
  const note = run.left_out ? html("p", { class: "note" }, run.left_out) : null;
  return [story, facts, note, figureGrid(run.figures), settings];
}

function runSection(runs) {
  const view = html("div", {});
  const badge = html("span", { class: "badge" });
  const select = html("select", { id: "run", onchange: () => show(select.selectedIndex) },
    ...runs.map((run, i) => html("option", { value: String(i) }, run.title)));
  const step = (by) => { const next = (select.selectedIndex + by + runs.length) % runs.length; select.selectedIndex = next; show(next); };
  function show(i) {
    const run = runs[i];
    chosenRun = run.folder;
    badge.className = `badge ${run.status}`;
    badge.textContent = run.progress;
    view.replaceChildren(...runView(run, runs.length === 1).filter(Boolean));
    if (view.isConnected) drawWaiting();
  }
  const kept = Math.max(0, runs.findIndex((run) => run.folder === chosenRun));
  select.selectedIndex = kept;
  show(kept);
  if (runs.length === 1) return html("section", {}, badge, view);
  const buttons = [html("button", { type: "button", "aria-label": "previous run", onclick: () => step(-1) }, "←"),
    html("button", { type: "button", "aria-label": "next run", onclick: () => step(1) }, "→")];
  return html("section", {}, html("h2", {}, "One run in detail"),
    html("div", { class: "switch" }, html("label", { for: "run" }, "Run"), select, ...buttons, badge), view);
}

const WORDS = [
  ["Stream", "Samples that arrive in small batches, once each, while their distribution changes. The learner is not told when."],
  ["Task", "A part of the stream with one distribution, for example the digits 0 and 1. Only the evaluation uses tasks."],
  ["Expert", "A small model of its own part of the data: how likely an input is, and which class it has."],
  ["Short-term memory", "Keeps samples that no expert explains. When it is full, the learner sleeps: a new expert is made of them."],
  ["Gate", "Decides by the input alone which experts answer. Most mistakes of a mixture are mistakes of its gate."],
  ["Forgetting", "How much the accuracy of earlier tasks has fallen from its best, in percentage points."],
];

function words() {
  return html("section", {}, html("h2", {}, "Glossary"), html("div", { class: "card" },
    html("dl", {}, ...WORDS.flatMap(([word, meaning]) => [html("dt", {}, word), html("dd", {}, meaning)]))));
}

function mark() {
  const dots = [[7, 14, "var(--c0)"], [15, 9, "var(--c4)"], [12, 17, "var(--c2)"]];
  return html("div", { class: "mark" }, svg("svg", { viewBox: "0 0 22 22", "aria-hidden": "true" },
    ...dots.map(([cx, cy, fill]) => svg("circle", { cx, cy, r: 5, style: `fill:${fill};fill-opacity:.85` }))), "cndpm report");
}

function build(data) {
  ramp = data.ramp;
  const problems = data.problems.length ? html("section", {}, html("h2", {}, "What could not be read"),
    html("div", { class: "card" }, html("ul", { class: "list" }, ...data.problems.map((one) => html("li", {}, html("code", {}, one.folder), html("br"), one.reason))))) : null;
  document.title = data.title;
  document.getElementById("page").replaceChildren(
    html("header", { class: "top" }, mark(), html("h1", {}, data.title), html("div", { class: "lead" }, ...data.summary.map((text) => html("p", {}, text)))),
    html("main", {}, ...data.parts.map(section), data.runs.length ? runSection(data.runs) : "", problems || "", words()),
    html("footer", {}, data.footer));
  drawWaiting();
  document.documentElement.dataset.ready = "true";
}

async function refresh() {
  try {
    const answer = await fetch("data.json", { cache: "no-store" });
    if (answer.ok) {
      const text = await answer.text();
      if (text !== refresh.before) {
        refresh.before = text;
        const [x, y] = [scrollX, scrollY];
        build(JSON.parse(text));
        scrollTo(x, y);
      }
    }
  } catch { /* the server has ended; what is shown stays */ }
}

const data = JSON.parse(document.getElementById("data").textContent);
build(data);
if (data.refresh_seconds) setInterval(refresh, 1000 * data.refresh_seconds);
