/* Paper and ink: strokes by mouse, pen, finger or keys. Coordinates are pixels of the paper. */

const paper = document.getElementById("paper");
const canvas = document.getElementById("ink");
const still = matchMedia("(prefers-reduced-motion: reduce)");
let strokes = [];
let pen = null;      // the stroke that is being drawn
let cursor = null;   // the place of a pen that is moved by keys
let onInk = () => {};  // called when the drawing has changed; true when a stroke has ended

function make(tag, attributes = {}, ...children) {
  const node = tag === "svg" || tag === "path" ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) key.startsWith("on") ? node.addEventListener(key.slice(2), value) : node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function colourOf(expert) {
  return expert < 0 ? "var(--soft)" : `var(--c${expert % 7})`;
}

function repaint() {
  const ratio = devicePixelRatio || 1, size = canvas.clientWidth;
  if (canvas.width !== Math.round(size * ratio)) canvas.width = canvas.height = Math.round(size * ratio);
  const to = canvas.getContext("2d");
  to.setTransform(ratio, 0, 0, ratio, 0, 0);
  to.clearRect(0, 0, size, size);
  to.strokeStyle = to.fillStyle = getComputedStyle(document.body).color;
  to.lineWidth = size / 34;
  to.lineCap = to.lineJoin = "round";
  for (const stroke of strokes) {
    to.beginPath();
    to.moveTo(...stroke[0]);
    stroke.forEach((point, i) => {
      const next = stroke[i + 1];
      if (next) to.quadraticCurveTo(...point, (point[0] + next[0]) / 2, (point[1] + next[1]) / 2);
      else to.lineTo(...point);
    });
    to.stroke();
  }
  if (cursor) {
    to.beginPath();
    to.arc(...cursor, size / 60, 0, 7);
    pen ? to.fill() : (to.lineWidth = 2, to.stroke());
  }
  paper.classList.toggle("empty", strokes.length === 0);
}

function clearPaper() {
  strokes = [];
  pen = null;
  repaint();
  onInk(true);
}

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top].map((value) => Math.round(value * 10) / 10);
}

canvas.addEventListener("pointerdown", (event) => {
  if (event.button > 0 || strokes.length >= 60) return;
  canvas.setPointerCapture(event.pointerId);
  cursor = null;
  pen = [place(event)];
  strokes.push(pen);
  repaint();
});
canvas.addEventListener("pointermove", (event) => {
  if (!pen || cursor) return;
  for (const one of event.getCoalescedEvents ? event.getCoalescedEvents() : []) pen.push(place(one));
  pen.push(place(event));
  repaint();
  onInk(false);
});
for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => {
  if (!pen || cursor) return;
  pen = null;
  onInk(true);
});

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
canvas.addEventListener("keydown", (event) => {
  const size = canvas.clientWidth;
  if (STEPS[event.key] || event.key === " ") {
    event.preventDefault();
    cursor = cursor || [size / 2, size / 2];
    const by = size / 24;
    if (STEPS[event.key]) cursor = cursor.map((value, i) => Math.min(size, Math.max(0, value + by * STEPS[event.key][i])));
    else if (pen) pen = null;
    else strokes.push((pen = [[...cursor]]));
    if (pen) pen.push([...cursor]);
    repaint();
    onInk(!pen);
  } else if (event.key === "Backspace") {
    strokes.pop();
    pen = null;
    repaint();
    onInk(true);
  } else if (event.key === "Enter") {
    event.preventDefault();
    document.getElementById("name").focus();
  }
});

/* A drawing as a small picture that fills its frame. */
function mini(drawn) {
  const points = drawn.flat(), xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const [left, top] = [Math.min(...xs), Math.min(...ys)];
  const size = Math.max(Math.max(...xs) - left, Math.max(...ys) - top) || 1;
  const [dx, dy] = [left - (size - (Math.max(...xs) - left)) / 2, top - (size - (Math.max(...ys) - top)) / 2];
  const at = ([x, y]) => `${(14 + 72 * (x - dx) / size).toFixed(1)} ${(14 + 72 * (y - dy) / size).toFixed(1)}`;
  const lines = drawn.map((stroke) => `M${at(stroke[0])} ` + stroke.map((p) => `L${at(p)}`).join(" "));
  return make("svg", { class: "mini", viewBox: "0 0 100 100", "aria-hidden": "true" }, make("path", { d: lines.join(" ") }));
}

addEventListener("resize", repaint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
