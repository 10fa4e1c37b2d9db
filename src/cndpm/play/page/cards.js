/* The experts, what they dream, the memory, and the drawings so far. Names are data: they only ever become text. */

const EDGE = 32;
/* Pictures fade towards their edges, where frequencies leave ripples. */
const FADE = Float32Array.from({ length: EDGE * EDGE }, (_, i) => {
  const away = Math.hypot((i % EDGE) + 0.5 - EDGE / 2, Math.floor(i / EDGE) + 0.5 - EDGE / 2) / (EDGE / 2);
  return 1.15 * Math.min(1, Math.max(0, (1.12 - away) / 0.3));
});
let dreaming = [];  // one for each picture on the page: its canvas, its images, and its place in their cycle

function decode(text) {
  const bytes = atob(text), values = new Float32Array(EDGE * EDGE);
  for (let i = 0; i < values.length; i++) values[i] = bytes.charCodeAt(i);
  return values;
}

function paint(dream, between) {
  const to = dream.canvas.getContext("2d"), image = to.createImageData(EDGE, EDGE);
  const here = Math.floor(between) % dream.images.length, next = (here + 1) % dream.images.length;
  const t = between - Math.floor(between), ease = t * t * (3 - 2 * t), [r, g, b] = dream.colour;
  for (let i = 0; i < EDGE * EDGE; i++) {
    const value = (1 - ease) * dream.images[here][i] + ease * dream.images[next][i];
    image.data.set([r, g, b, value * FADE[i]], 4 * i);
  }
  to.putImageData(image, 0, 0);
}

function dreamOn(time) {
  for (const dream of dreaming) if (!still.matches) paint(dream, time / 1400 + dream.phase);
  requestAnimationFrame(dreamOn);
}

function rgb(colour) {
  const probe = make("i", { style: `color:${colour}` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  probe.remove();
  return found;
}

function dreamFigure(dream, colour, k, i) {
  const small = make("canvas", { width: EDGE, height: EDGE, role: "img", "aria-label": `Expert ${k + 1} dreams of ${dream.name}` });
  const made = { canvas: small, images: dream.pictures.map(decode), colour, phase: k * 0.37 + i * 0.61 };
  dreaming.push(made);
  paint(made, 0);
  return make("figure", {}, small, make("figcaption", {}, dream.name));
}

function expertCard(expert, k, { isBorn, learns }) {
  const colour = rgb(colourOf(k));
  const drawings = Math.round(expert.n);
  return make("article", { class: `card${isBorn ? " born" : ""}${learns ? " learns" : ""}`, style: `--mine:${colourOf(k)}`, "data-expert": k },
    make("h2", {}, `Expert ${k + 1}`, make("span", { title: "drawings that it has learned" }, String(drawings))),
    make("div", { class: "dreams" }, ...expert.dreams.slice(0, 4).map((dream, i) => dreamFigure(dream, colour, k, i))),
    make("div", { class: "share" }, make("i")));
}

function memoryCard(memory, waiting, learns) {
  const slots = Array.from({ length: memory.capacity }, (_, i) => (i < memory.n && waiting[i] ? mini(waiting[i].strokes) : make("i")));
  return make("article", { class: `card memory${learns ? " learns" : ""}`, "data-expert": -1 },
    make("h2", {}, "Memory", make("span", { title: "new drawings that wait for an expert" }, `${memory.n} of ${memory.capacity}`)),
    make("div", { class: "slots" }, ...slots), make("p", {}, `${memory.capacity} new drawings make an expert`), make("div", { class: "share" }, make("i")));
}

/* Drawings that still wait: the latest new ones since the last birth. */
function waitingDrawings(state) {
  const since = state.shown.findLastIndex((one) => one.happened.some((event) => event.kind === "founded"));
  return state.shown.slice(since + 1).filter((one) => one.is_new).slice(-state.memory.n || state.shown.length);
}

function showState(state, latest = null) {
  const learner = latest ? latest.expert : null;
  const born = latest ? latest.happened.filter((event) => event.kind === "founded").map((event) => event.expert) : [];
  dreaming = [];
  const cards = state.experts.map((expert, k) => expertCard(expert, k, { isBorn: born.includes(k), learns: learner === k }));
  const memory = memoryCard(state.memory, state.memory.n ? waitingDrawings(state) : [], learner === -1);
  document.getElementById("experts").replaceChildren(...cards, memory);
  const story = document.getElementById("story");
  story.replaceChildren(...state.shown.map(storyItem));
  story.scrollLeft = story.scrollWidth;
  paper.classList.toggle("fresh", state.n_drawings === 0);
}

function storyItem(drawing) {
  const birth = drawing.happened.find((event) => event.kind === "founded");
  const word = birth ? `★ expert ${birth.expert + 1}` : drawing.instead_of ? `not ${drawing.instead_of}` : drawing.expert < 0 ? "waits" : `expert ${drawing.expert + 1}`;
  return make("li", { style: `--mine:${colourOf(drawing.expert)}` }, mini(drawing.strokes), make("span", {}, drawing.name), make("em", {}, word));
}

function showShares(guess) {
  for (const card of document.querySelectorAll("#experts .card")) {
    const k = Number(card.dataset.expert), share = guess ? (k < 0 ? guess.memory : guess.experts[k] || 0) : 0;
    card.querySelector(".share i").style.width = `${(100 * share).toFixed(1)}%`;
    card.classList.toggle("answers", share > 0.5);
  }
}

/* The drawing flies from the paper to the card of the one that learns it. */
function fly(drawing) {
  const card = document.querySelector(`#experts .card[data-expert="${drawing.expert}"]`);
  if (still.matches || !card || !canvas.animate) return;
  const from = canvas.getBoundingClientRect(), to = card.getBoundingClientRect();
  const ink = mini(drawing.strokes);
  ink.classList.add("flying");
  ink.style.cssText = `left:${from.left}px;top:${from.top}px;width:${from.width}px;height:${from.height}px`;
  document.body.append(ink);
  const way = `translate(${to.left + to.width / 2 - from.left - from.width / 2}px, ${to.top + 70 - from.top - from.height / 2}px) scale(.2)`;
  ink.animate([{ transform: "none", opacity: 1 }, { transform: way, opacity: 0.1 }], { duration: 480, easing: "cubic-bezier(.5,0,.3,1)" }).onfinish = () => ink.remove();
}
