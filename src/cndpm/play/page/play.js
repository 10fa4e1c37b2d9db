/* Draw, guess, name, learn: what the page asks its server, and what it says. */

const nameBox = document.getElementById("name");
const says = document.getElementById("says");
let state = null;
let latestGuess = null;
let asked = 0, isAsking = false, wantsToAsk = false;

async function call(path, sent = {}) {
  const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sent) });
  const values = await answer.json();
  if (!answer.ok) throw new Error(values.error);
  return values;
}

function say(...parts) {
  says.replaceChildren(...parts);
}
const strong = (text) => make("b", {}, text);
const percent = (p) => `${p > 0.995 && p < 1 ? "> 99" : Math.round(100 * p)} %`;

function showGuess(guess) {
  latestGuess = guess;
  const box = document.getElementById("guess");
  const shown = guess ? guess.names.slice(0, 3).filter((one, i) => i === 0 || one.now > 0.005 || one.ever > 0.05) : [];
  const differs = shown.some((one) => Math.abs(one.now - one.ever) > 0.15);
  box.replaceChildren(...shown.map((one, i) => make("div", { class: `row${i ? "" : " first"}` }, make("span", {}, one.name),
    make("div", { class: "bars" }, make("i", { style: `width:${100 * one.now}%` }), differs ? make("i", { class: "ever", style: `width:${100 * one.ever}%` }) : null),
    make("span", {}, percent(one.now)))),
    ...(shown.length && guess.is_new ? [make("div", { class: "strange" }, "I have hardly seen anything like this.")] : []),
    ...(differs ? [make("div", { class: "key" }, make("span", {}, make("b"), "as names are now"), make("span", {}, make("b", { class: "ever" }), "over all time"))] : []));
  for (const chip of document.querySelectorAll("#names button")) chip.classList.toggle("guessed", Boolean(shown.length) && chip.dataset.name === shown[0].name);
  nameBox.placeholder = shown.length ? `${shown[0].name}, or another name …` : "name it …";
  showShares(guess);
}

/* Asks while the pen moves, one question at a time, always for the latest ink. */
async function ask() {
  if (!strokes.length || !state || !state.n_drawings) return showGuess(null);
  wantsToAsk = true;
  if (isAsking) return;
  isAsking = true;
  while (wantsToAsk && strokes.length) {  // the ink may be gone by now
    wantsToAsk = false;
    const mine = ++asked;
    try {
      const guess = await call("/guess", { strokes });
      if (mine === asked && strokes.length) showGuess(guess);
    } catch (error) { say(error.message); }
  }
  isAsking = false;
}
onInk = ask;

function showNames() {
  document.getElementById("names").replaceChildren(...state.names.map(({ name, n }, i) => make("button",
    { type: "button", "data-name": name, title: `${n} drawing${n === 1 ? "" : "s"}`, onclick: () => learn(name) }, i < 9 ? make("kbd", {}, String(i + 1)) : null, name)));
}

function tell({ drawing, before }) {
  const births = drawing.happened.filter((event) => event.kind === "founded");
  const back = drawing.happened.find((event) => event.kind === "returned");
  if (births.length) {
    const dreams = state.experts[births.at(-1).expert].dreams.map((one) => one.name).join(", ");
    const instead = drawing.instead_of ? [" Until now I called this ", strong(drawing.instead_of), "; old and new name compete."] : [];
    return say(strong(`Expert ${births.at(-1).expert + 1} is born`), ` of the drawings that waited. It dreams of ${dreams}.`, ...instead);
  }
  if (drawing.instead_of) return say("Until now I called this ", strong(drawing.instead_of), ". Old and new name compete from now on; draw it again as ", strong(drawing.name), ".");
  if (back) return say(strong(`Expert ${back.expert + 1} is back`), " after a while.");
  const known = before.names.find((one) => one.name === drawing.name);
  if (drawing.expert < 0) {
    const left = state.memory.capacity - state.memory.n;
    return say(known ? "This looks new to my experts" : `${drawing.name}: a new name`, `. It waits in the memory; ${left > 1 ? `${left} more new drawings make` : "the next new one makes"} an expert.`);
  }
  return say(known && before.names[0] === known ? `Knew it: ` : "Learned: ", strong(drawing.name), `, by expert ${drawing.expert + 1}.`);
}

async function learn(name) {
  const word = (name || nameBox.value || (latestGuess && latestGuess.names.length && latestGuess.names[0].name) || "").trim();
  if (!strokes.length) { say("Draw something first."); return canvas.focus(); }
  if (!word) { say("Give it a name."); return nameBox.focus(); }
  try {
    const told = await call("/learn", { strokes, name: word });
    state = told;
    nameBox.value = "";
    strokes = [];
    pen = null;
    asked++;
    repaint();
    showState(state, told.drawing);
    showNames();
    showGuess(null);
    tell(told);
    fly(told.drawing);
  } catch (error) { say(error.message); }
}

document.getElementById("naming").addEventListener("submit", (event) => { event.preventDefault(); learn(); });
document.getElementById("clear").addEventListener("click", clearPaper);
document.getElementById("forget").addEventListener("click", async () => { show(await call("/forget")); clearPaper(); say("An empty page."); });
addEventListener("keydown", (event) => {
  if (event.key === "Escape") { clearPaper(); canvas.focus(); }
  const chip = event.target !== nameBox && !event.ctrlKey && !event.metaKey && state && state.names[Number(event.key) - 1];
  if (chip && Number(event.key)) { event.preventDefault(); learn(chip.name); }
});

/* "Show me": a hand that draws ten symbols of three kinds, and one under another name. */
const ROUND = Array.from({ length: 33 }, (_, i) => [Math.sin(i * Math.PI / 16), -Math.cos(i * Math.PI / 16)]);
const line = (...corners) => corners.slice(1).flatMap((end, i) => Array.from({ length: 9 }, (_, j) => corners[i].map((v, d) => v + (end[d] - v) * j / 8)));
const SYMBOLS = { moon: [ROUND], tent: [line([0, -1], [1, 0.9], [-1, 0.9], [0, -1])], kiss: [line([-1, -1], [1, 1]), line([1, -1], [-1, 1])] };
const PLAN = ["moon", "moon", "moon", "tent", "tent", "tent", "kiss", "kiss", "kiss", "moon"];
let isShowing = false;

function byHand(symbol) {
  const size = canvas.clientWidth, random = () => Math.random() + Math.random() - 1;
  const [scale, x, y, turn] = [size * (0.3 + 0.06 * random()), size * (0.5 + 0.05 * random()), size * (0.5 + 0.05 * random()), 0.15 * random()];
  return symbol.map((stroke) => stroke.map(([px, py]) => {
    const [a, b] = [px + 0.04 * random(), py + 0.04 * random()];
    return [x + scale * (a * Math.cos(turn) - b * Math.sin(turn)), y + scale * (a * Math.sin(turn) + b * Math.cos(turn))];
  }));
}

async function showMe() {
  if (isShowing) { isShowing = false; return; }
  isShowing = true;
  const button = document.getElementById("show"), pause = (ms) => new Promise((done) => setTimeout(done, still.matches ? 0 : ms));
  button.textContent = "Stop";
  for (const name of PLAN) {
    clearPaper();
    for (const stroke of byHand(SYMBOLS[name])) {
      strokes.push([]);
      for (const point of stroke) { if (!isShowing) break; strokes.at(-1).push(point); repaint(); await pause(14); }
      ask();
    }
    await pause(650);
    if (!isShowing) break;
    await learn(name);
    await pause(900);
  }
  if (!isShowing) clearPaper();
  isShowing = false;
  button.textContent = "Show me";
}
document.getElementById("show").addEventListener("click", showMe);

function show(fresh) {
  state = fresh;
  showState(state);
  showNames();
  showGuess(null);
}

(async () => {
  const first = await call("/state");
  if (!state) show(first);  // else an answer that was asked for later came before
  repaint();
  requestAnimationFrame(dreamOn);
  document.body.dataset.ready = "true";
})();
