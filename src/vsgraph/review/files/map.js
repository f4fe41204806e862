// The map: zoom, move, and a lasso around images, which are then shown as tiles to decide on.
import { element } from "/files/about.js";
import { post } from "/files/outbox.js";

const byId = (id) => document.getElementById(id);
const canvas = byId("map"), note = byId("map-note"), place = byId("lassoed");
const WORLD = 9999, MARGIN = 20, MOST = 400;
const COLORS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7b61c9"];
const view = { x: WORLD / 2, y: WORLD / 2, zoom: 1 };
let data = null, names = [], lasso = null, inside = new Set(), waiting = false, last = null;

const scale = () => view.zoom * (Math.min(canvas.clientWidth, canvas.clientHeight) - 2 * MARGIN) / WORLD;
const toScreen = (i) => { const s = scale(); return [(data.x[i] - view.x) * s + canvas.clientWidth / 2, (data.y[i] - view.y) * s + canvas.clientHeight / 2]; };
const shown = (i) => byId("map-only").value === "" || [data.web[i], data.final[i]].includes(Number(byId("map-only").value));
const lassoing = () => byId("map-lasso").getAttribute("aria-pressed") === "true";

function shape(g, kind, x, y, r) {
  g.beginPath();
  if (kind === 0) g.arc(x, y, r, 0, 7);
  else if (kind === 1) g.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
  else if (kind === 2) { g.moveTo(x, y - r * 1.2); g.lineTo(x + r * 1.1, y + r * 0.9); g.lineTo(x - r * 1.1, y + r * 0.9); }
  else { g.moveTo(x, y - r * 1.3); g.lineTo(x + r * 1.1, y); g.lineTo(x, y + r * 1.3); g.lineTo(x - r * 1.1, y); }
  g.fill();
}
function draw() {
  waiting = false;
  if (!data) return;
  const style = getComputedStyle(document.documentElement), ratio = devicePixelRatio || 1;
  const [w, h] = [canvas.clientWidth, canvas.clientHeight], ink = style.getPropertyValue("--ink"), paper = style.getPropertyValue("--panel");
  canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
  const g = canvas.getContext("2d"), labels = data[byId("map-side").value];
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  const base = (data.x.length > 1500 ? 2.4 : 3.4) * Math.min(3, Math.sqrt(view.zoom));
  const middles = new Map();
  for (let i = 0; i < data.x.length; i++) {
    if (!shown(i)) continue;
    const [x, y] = toScreen(i), label = labels[i];
    if (label >= 0) { if (!middles.has(label)) middles.set(label, [[], []]); middles.get(label)[0].push(x); middles.get(label)[1].push(y); }
    if (x < -9 || y < -9 || x > w + 9 || y > h + 9) continue;
    const r = base * (inside.has(i) ? 1.6 : 1);
    g.globalAlpha = inside.size && !inside.has(i) ? 0.2 : 0.35 + 0.6 * data.sure[i] / 100;
    if (label < 0) { g.strokeStyle = ink; g.lineWidth = 1.3; g.beginPath(); g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r); g.stroke(); }
    else { g.fillStyle = COLORS[label % COLORS.length]; shape(g, Math.floor(label / COLORS.length + label) % 4, x, y, r); }
  }
  g.globalAlpha = 1;
  g.font = "600 12px system-ui, sans-serif"; g.textAlign = "center"; g.lineJoin = "round";
  const taken = [];
  const middle = (values) => values.sort((a, b) => a - b)[values.length >> 1];
  for (const [label, [xs, ys]] of [...middles].sort((a, b) => b[1][0].length - a[1][0].length).slice(0, 40)) {
    const name = names[label].length > 22 ? `${names[label].slice(0, 21)}…` : names[label], half = g.measureText(name).width / 2 + 3;
    const [x, y] = [Math.min(Math.max(middle(xs), half), w - half), Math.min(Math.max(middle(ys), 12), h - 8)];
    if (taken.some((t) => Math.abs(t[0] - x) < t[2] + half && Math.abs(t[1] - y) < 15)) continue;
    taken.push([x, y, half]);
    g.lineWidth = 4; g.strokeStyle = paper; g.strokeText(name, x, y);
    g.fillStyle = ink; g.fillText(name, x, y);
  }
  if (lasso?.length > 1) { g.lineWidth = 2; g.strokeStyle = ink; g.setLineDash([6, 4]); g.beginPath(); lasso.forEach(([x, y], i) => (i ? g.lineTo(x, y) : g.moveTo(x, y))); g.closePath(); g.stroke(); g.setLineDash([]); }
}
const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };

function zoom(factor, px = canvas.clientWidth / 2, py = canvas.clientHeight / 2) {
  const next = Math.min(60, Math.max(1, view.zoom * factor)), s = scale();
  const [wx, wy] = [view.x + (px - canvas.clientWidth / 2) / s, view.y + (py - canvas.clientHeight / 2) / s];
  Object.assign(view, { x: wx - (wx - view.x) * view.zoom / next, y: wy - (wy - view.y) * view.zoom / next, zoom: next });
  redraw();
}
const whole = () => { Object.assign(view, { x: WORLD / 2, y: WORLD / 2, zoom: 1 }); redraw(); };

function holds(polygon, x, y) {
  let odd = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [[xi, yi], [xj, yj]] = [polygon[i], polygon[j]];
    if (yi > y !== yj > y && x < (xj - xi) * (y - yi) / (yj - yi) + xi) odd = !odd;
  }
  return odd;
}
function take(fits) {
  inside = new Set();
  for (let i = 0; i < data.x.length; i++) if (shown(i) && fits(...toScreen(i))) inside.add(i);
  redraw();
  list([...inside].sort((a, b) => data.sure[a] - data.sure[b]));
}
async function list(chosen) {
  const part = chosen.slice(0, MOST), head = element("h2", `${chosen.length.toLocaleString("en")} selected`);
  if (part.length < chosen.length) head.append(element("span", ` the ${MOST} least sure are shown, and are what keys decide on`, { className: "quiet" }));
  const tiles = element("ul", "", { className: "tiles" });
  for (const [name, value] of [["role", "listbox"], ["aria-multiselectable", "true"], ["aria-label", "Selected on the map"]]) tiles.setAttribute(name, value);
  const rows = part.map((i) => data.row[i]);
  const { said } = rows.length ? await (await post("/said", { rows })).json() : { said: {} };
  tiles.append(...part.map((i) => tile(i, said[data.row[i]])));
  const buttons = element("p", "", { className: "buttons" });
  for (const [what, text] of [["keep", "✓ Keep all"], ["reject", "✕ Reject all"], ["relabel", "→ Relabel all"], ["agree", "Agree"]]) { const b = element("button", text, { type: "button" }); b.dataset.all = what; buttons.append(b); }
  place.replaceChildren(head, ...(part.length ? [buttons, tiles] : []));
  if (part.length) dispatchEvent(new Event("tiles"));
}
function tile(i, answer) {
  const row = data.row[i], [web, final] = [data.web[i], data.final[i]].map((c) => (c < 0 ? [] : [names[c]]));
  const decision = !final.length ? "rejected" : web[0] === final[0] ? "kept" : "relabeled";
  const item = element("li", "", { className: `tile ${decision}`, tabIndex: -1 });
  item.setAttribute("role", "option");
  item.setAttribute("aria-selected", "false");
  Object.assign(item.dataset, { row, web: JSON.stringify(web), final: JSON.stringify(final) });
  if (answer) { item.dataset.said = JSON.stringify(answer.new); item.classList.add("answered"); }
  const tool = element("span", `${{ kept: "✓ kept", rejected: "✕ rejected" }[decision] ?? `→ ${final[0]}`} ${final.length ? (data.sure[i] / 100).toFixed(2) : ""}`, { className: "tool" });
  const said = answer ? (!answer.new.length ? "✕ none" : answer.new[0] === web[0] ? "✓ kept" : `→ ${answer.new.join(", ")}`) : "";
  item.append(element("img", "", { src: `/picture/${row}?v=${document.body.dataset.version}`, alt: data.title[i] || "picture without text", width: 128, height: 128, loading: "lazy", draggable: false }), tool, element("span", said, { className: "said" }));
  return item;
}

canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); last = [event.offsetX, event.offsetY]; if (lassoing()) lasso = [last]; });
canvas.addEventListener("pointermove", (event) => {
  if (!last || !data) return;
  const [x, y] = [event.offsetX, event.offsetY];
  if (lasso) lasso.push([x, y]);
  else { const s = scale(); view.x -= (x - last[0]) / s; view.y -= (y - last[1]) / s; }
  last = [x, y];
  redraw();
});
canvas.addEventListener("pointerup", () => {
  const drawn = lasso;
  lasso = last = null;
  if (drawn && data && drawn.length > 5) take((x, y) => holds(drawn, x, y));
  else { inside = new Set(); redraw(); }
});
canvas.addEventListener("wheel", (event) => { if (!event.ctrlKey && document.activeElement !== canvas) return; event.preventDefault(); zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY); }, { passive: false });
const inView = () => take((x, y) => x >= 0 && y >= 0 && x <= canvas.clientWidth && y <= canvas.clientHeight);
canvas.addEventListener("keydown", (event) => {
  const far = 60 / scale();
  const act = {
    ArrowLeft: () => { view.x -= far; }, ArrowRight: () => { view.x += far; }, ArrowUp: () => { view.y -= far; }, ArrowDown: () => { view.y += far; },
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: whole, Enter: inView,
  }[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey || !data) return;
  event.preventDefault();
  act();
  redraw();
});
byId("map-lasso").addEventListener("click", (event) => event.currentTarget.setAttribute("aria-pressed", String(!lassoing())));
byId("map-in").addEventListener("click", () => zoom(1.5));
byId("map-out").addEventListener("click", () => zoom(1 / 1.5));
byId("map-whole").addEventListener("click", whole);
byId("map-all").addEventListener("click", () => data && inView());
for (const id of ["map-side", "map-only"]) byId(id).addEventListener("change", () => { inside = new Set(); redraw(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
new ResizeObserver(redraw).observe(canvas);

(async function load() {
  names = await (await fetch("/names")).json();
  for (;;) {
    const reply = await fetch("/map/data");
    if (reply.status === 200) { data = await reply.json(); break; }
    if (!reply.ok) { note.textContent = "cannot be drawn"; return; }
    await new Promise((done) => setTimeout(done, 700));
  }
  const used = [...new Set([...data.web, ...data.final])].filter((c) => c >= 0).sort((a, b) => names[a].localeCompare(names[b]));
  byId("map-only").append(...used.map((c) => new Option(names[c], c)));
  note.textContent = data.note;
  canvas.dataset.points = data.x.length;
  redraw();
})();
