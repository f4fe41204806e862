// Keys, selection and decisions. Text from the crawl is only ever set as text.
import { isEmpty, onEmpty, post, send } from "/files/outbox.js";
import { about, enlarge, large, why } from "/files/about.js";
import { askClass } from "/files/relabel.js";
import { watch } from "/files/work.js";

const $ = (query, root = document) => root.querySelector(query), $$ = (query, root = document) => [...root.querySelectorAll(query)];
const version = document.body.dataset.version, NARROW = matchMedia("(max-width: 60rem)");
const DONE = `vsgraph-done-${version}`, MOST_DONE = 200;
const beside = $("#beside"), chosen = $("#chosen"), severalButton = $("[data-do=several]");
const selected = new Set(), undone = new Set();
let current = null, whole = null, anchor = null;
let history = JSON.parse(sessionStorage.getItem(DONE) ?? '{"done":[],"undone":[]}');

const tiles = () => $$(".tile");
const json = (text) => (text === undefined ? null : JSON.parse(text));
const sameNames = (a, b) => a.length === b.length && a.every((name, i) => name === b[i]);

// ---------------------------------------------------------------- what a person said of a tile
function saidOf(tile) {
  tile.said ??= [{ batch: "", names: json(tile.dataset.said) }];
  return tile.said.findLast((said) => !undone.has(said.batch))?.names ?? null;
}
function draw(tile) {
  const names = saidOf(tile);
  tile.classList.toggle("answered", names !== null);
  tile.classList.toggle("no", names !== null && !names.length);
  $(".said", tile).textContent = names === null ? "" : !names.length ? "✕ none"
    : sameNames(names, json(tile.dataset.web)) ? "✓ kept" : `→ ${names.join(", ")}`;
}
function namesFor(tile, what, classes) {
  if (what === "keep") return json(tile.dataset.web);
  if (what === "agree") return json(tile.dataset.final);
  return what === "reject" ? [] : classes;
}
async function askAgain() {
  const rows = tiles().map((tile) => Number(tile.dataset.row));
  if (!rows.length) return;
  const reply = await post("/said", { rows });
  if (!reply.ok) return;
  const { said } = await reply.json();
  for (const tile of tiles()) {
    tile.said = [{ batch: "", names: said[tile.dataset.row]?.new ?? null }];
    draw(tile);
  }
}

// ---------------------------------------------------------------- answers, undo and redo
const newBatch = () => `b-${crypto.getRandomValues(new Uint32Array(3)).reduce((text, n) => text + n.toString(36), "")}`;
const WORDS = { keep: "kept", reject: "rejected", agree: "agreed", relabel: "relabeled" };

function answer(targets, what, classes, section) {
  const batch = newBatch(), set = section?.dataset.set;
  const open = targets.filter((tile) => saidOf(tile) === null), touched = section && open.length ? open : targets;
  const step = { batch, what, set, fresh: set ? Number(section.dataset.open) : open.length };
  step.count = set ? step.fresh || touched.length : touched.length;
  for (const tile of touched) {
    tile.said.push({ batch, names: namesFor(tile, what, classes) });
    draw(tile);
  }
  recount(step, open, -1);
  send("/answer", { version, batch, what, classes, ...(set ? { set } : { rows: touched.map((tile) => Number(tile.dataset.row)) }) });
  history.done = [...history.done, step].slice(-MOST_DONE);
  history.undone = [];
  remember();
  say(`${step.count === 1 ? "" : `${step.count} `}${what === "relabel" ? `→ ${classes.join(", ")}` : WORDS[what]}`);
}
function recount(step, open, sign) {  // -1: answered, 1: open again
  const add = (section, by) => {
    if (!section?.dataset.open) return;
    section.dataset.open = Math.max(0, Number(section.dataset.open) + by);
    const shown = $(".n-open", section);
    if (shown) shown.textContent = Number(section.dataset.open).toLocaleString("en");
  };
  if (step.set) add($$("[data-set]").find((section) => section.dataset.set === step.set), sign * step.fresh);
  else for (const tile of open) add(tile.closest(".group"), sign);
  const all = $("#n-answered");
  all.dataset.count = Math.max(0, Number(all.dataset.count) - sign * step.fresh);
  all.textContent = Number(all.dataset.count).toLocaleString("en");
}
function remember() {
  sessionStorage.setItem(DONE, JSON.stringify(history));
  const [undo, redo] = [$("[data-do=undo]"), $("[data-do=redo]")];
  if (!undo) return;
  undo.disabled = !history.done.length;
  redo.disabled = !history.undone.length;
}
function travel(back) {
  const [from, to] = back ? [history.done, history.undone] : [history.undone, history.done];
  const step = from.pop();
  if (!step) return;
  to.push(step);
  remember();
  const touched = tiles().filter((tile) => tile.said?.some((said) => said.batch === step.batch));
  const isOpen = (tile) => saidOf(tile) === null, openBefore = touched.filter(isOpen);
  back ? undone.add(step.batch) : undone.delete(step.batch);
  touched.forEach(draw);
  recount(step, back ? touched.filter(isOpen) : openBefore, back ? 1 : -1);
  send(back ? "/undo" : "/redo", { batch: step.batch });
  onEmpty(askAgain);
  if (touched.length) moveTo(touched[0]);
  say(`${back ? "undone" : "done again"}: ${step.count === 1 ? "" : `${step.count} `}${WORDS[step.what]}`);
}
function say(text) { if (chosen) chosen.textContent = text; }

// ---------------------------------------------------------------- where we are, and what is selected
function moveTo(tile, { extend = false, focus = true } = {}) {
  if (!tile) return;
  if (extend) {
    anchor ??= current;
    const all = tiles(), [a, b] = [all.indexOf(anchor), all.indexOf(tile)].sort((p, q) => p - q);
    select(all.slice(a, b + 1));
  } else anchor = null;
  if (current) { current.tabIndex = -1; current.classList.remove("current"); }
  current = tile;
  current.tabIndex = 0;
  current.classList.add("current");
  if (focus) { current.focus({ preventScroll: true }); current.scrollIntoView({ block: "nearest" }); }
  show(tile);
}
let showing = 0;
async function show(tile) {
  const at = ++showing;
  await new Promise((done) => setTimeout(done, 60));  // not while a key is held down
  if (at !== showing) return;
  const data = await why(tile.dataset.row);
  if (!data || at !== showing) return;
  data.now = saidOf(tile);
  if (large.open) enlarge(data); else if (beside && !NARROW.matches) about(beside, data, true);
  for (let next = after(tile), i = 0; next && i < 2; next = after(next), i++) why(next.dataset.row);
}
function select(list, section = null) {
  for (const tile of selected) { tile.setAttribute("aria-selected", "false"); }
  selected.clear();
  whole = section;
  for (const tile of list) { selected.add(tile); tile.setAttribute("aria-selected", "true"); }
  document.body.classList.toggle("selecting", list.length > 0);
  const n = section?.dataset.open > 0 ? Number(section.dataset.open) : list.length;
  say(n ? `${n.toLocaleString("en")} selected` : "");
}
function toggle(tile) {
  const list = new Set(selected);
  list.has(tile) ? list.delete(tile) : list.add(tile);
  select([...list]);
}
const after = (tile) => { const all = tiles(); return all[all.indexOf(tile) + 1]; };
const nextOpen = (tile) => { const all = tiles(), at = all.indexOf(tile); return all.slice(at + 1).find((t) => saidOf(t) === null) ?? all[at + 1]; };

function arrow(key, extend) {
  const all = tiles();
  if (!current || !all.includes(current)) { moveTo(all[0]); return; }
  if (document.activeElement !== current && !large.open && document.activeElement === document.body) { moveTo(current); return; }
  if (key === "ArrowLeft" || key === "ArrowRight") { moveTo(all[all.indexOf(current) + (key === "ArrowRight" ? 1 : -1)], { extend }); return; }
  const box = current.getBoundingClientRect(), down = key === "ArrowDown";
  let best = null, least = Infinity;
  for (const tile of all) {
    const other = tile.getBoundingClientRect(), fall = down ? other.top - box.bottom : box.top - other.bottom;
    if (fall < -2) continue;
    const gap = fall * 4 + Math.abs(other.left - box.left);
    if (gap < least) { least = gap; best = tile; }
  }
  moveTo(best, { extend });
}

// ---------------------------------------------------------------- what keys and buttons do
async function decide(what, section = null) {
  if (!current && !section) return;
  section ??= whole;
  const targets = section ? $$(".tile", section) : selected.size ? [...selected] : [current];
  let classes = [];
  if (what === "relabel") {
    const hints = why((targets[0] ?? current).dataset.row).then((told) => told?.suggested ?? []);
    classes = await askClass(hints, targets.length > 1 ? `What do these ${targets.length} show?` : "What does it show?");
    if (classes === null) { current?.focus(); return; }
    if (!classes.length) what = "reject";
  }
  answer(targets, what, classes, section);
  const words = chosen?.textContent, last = targets.at(-1) ?? current;
  select([]);
  say(words);
  if (targets.includes(current) || section) moveTo(nextOpen(last) ?? current);
  else moveTo(current);
}
const sectionOf = (tile) => tile?.closest(".group");
function wholeGroup() {
  const section = sectionOf(current), all = section ? $$(".tile", section) : [];
  const open = all.filter((tile) => saidOf(tile) === null);
  select(open.length ? open : all, section?.dataset.set ? section : null);
}
function skip() { moveTo(nextOpen(current)); }
function turn(rel) { $(`main a[rel=${rel}]`)?.click(); }
const DO = {
  keep: () => decide("keep"), reject: () => decide("reject"), relabel: () => decide("relabel"), agree: () => decide("agree"),
  skip, group: wholeGroup, undo: () => travel(true), redo: () => travel(false),
  several: () => { const on = severalButton.getAttribute("aria-pressed") !== "true"; severalButton.setAttribute("aria-pressed", on); if (!on) select([]); },
};
const KEYS = {
  k: DO.keep, x: DO.reject, r: DO.relabel, a: DO.agree, s: skip, g: wholeGroup, u: DO.undo, U: DO.redo,
  K: () => decide("keep", sectionOf(current)), X: () => decide("reject", sectionOf(current)),
  R: () => decide("relabel", sectionOf(current)), A: () => decide("agree", sectionOf(current)),
  n: () => turn("next"), p: () => turn("prev"), "?": () => $("#keys").showModal(), " ": () => current && toggle(current),
};
const typing = (target) => target.closest("input, textarea, select, #relabel, #map");
document.addEventListener("keydown", (event) => {
  if (typing(event.target) || event.altKey || event.metaKey) return;
  const { key } = event, control = event.ctrlKey;
  let act = null;
  if (control) act = { z: DO.undo, y: DO.redo, Z: DO.redo }[key];
  else if (key.startsWith("Arrow")) { if (tiles().length) act = () => arrow(key, event.shiftKey); }
  else if (key === "Escape") { if (selected.size) act = () => select([]); }
  else if (key === "Enter" || key === " ") {
    if (event.target.closest("button, a, summary") || !current) return;
    act = key === " " ? KEYS[" "] : open;
  } else act = KEYS[key];
  if (!act || ($("#keys").open && key !== "Escape")) return;
  event.preventDefault();
  act();
});
async function open() {
  const data = current && (await why(current.dataset.row));
  if (!data) return;
  data.now = saidOf(current);
  enlarge(data);
}
large.addEventListener("close", () => { if (current) moveTo(current); });
for (const button of $$("dialog .close")) button.addEventListener("click", () => button.closest("dialog").close());
$("#show-keys").addEventListener("click", () => $("#keys").showModal());
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-do], [data-all]");
  if (button?.dataset.do) DO[button.dataset.do]();
  if (button?.dataset.all) decide(button.dataset.all, button.closest(".group"));
});

// ---------------------------------------------------------------- the mouse
let drag = null;
document.addEventListener("pointerdown", (event) => {
  const area = event.target.closest(".work-area main");
  if (!area || event.button || event.pointerType !== "mouse" || event.target.closest("a, button, input, select, canvas, label, summary")) return;
  drag = { x: event.pageX, y: event.pageY, band: null, add: event.ctrlKey || event.shiftKey ? [...selected] : [] };
});
document.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const [x, y] = [event.pageX, event.pageY];
  if (!drag.band) {
    if (Math.abs(x - drag.x) + Math.abs(y - drag.y) < 8) return;
    drag.band = document.body.appendChild(document.createElement("div"));
    drag.band.className = "band";
    getSelection().removeAllRanges();
  }
  const [left, top, right, bottom] = [Math.min(x, drag.x), Math.min(y, drag.y), Math.max(x, drag.x), Math.max(y, drag.y)];
  Object.assign(drag.band.style, { left: `${left}px`, top: `${top}px`, width: `${right - left}px`, height: `${bottom - top}px` });
  const inside = tiles().filter((tile) => {
    const box = tile.getBoundingClientRect(), [dx, dy] = [scrollX, scrollY];
    return box.left + dx < right && box.right + dx > left && box.top + dy < bottom && box.bottom + dy > top;
  });
  select([...new Set([...drag.add, ...inside])]);
});
let dragged = false;
document.addEventListener("pointerup", () => {
  dragged = Boolean(drag?.band);
  drag?.band?.remove();
  if (dragged && selected.size) { moveTo([...selected][0], { focus: true }); }
  drag = null;
});
document.addEventListener("click", (event) => {
  const tile = event.target.closest(".tile");
  if (!tile || dragged) { dragged = false; return; }
  if (event.shiftKey) moveTo(tile, { extend: true });
  else if (event.ctrlKey || event.metaKey || severalButton?.getAttribute("aria-pressed") === "true") { toggle(tile); moveTo(tile); }
  else if (tile === current && NARROW.matches && document.activeElement === tile && tile.dataset.tapped) open();
  else { select([]); moveTo(tile); }
  for (const other of $$("[data-tapped]")) delete other.dataset.tapped;
  tile.dataset.tapped = 1;
});
document.addEventListener("dblclick", (event) => { if (event.target.closest(".tile")) open(); });

// ---------------------------------------------------------------- the next page, before it is asked for
async function prefetch() {
  const next = $("main a[rel=next]");
  if (!next || next.pathname === location.pathname && !next.search) return;
  const reply = await fetch(next.href);
  if (!reply.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  for (const image of $$(".tile img", page).slice(0, 36)) new Image().src = image.getAttribute("src");
}
if (tiles().length) {
  moveTo(tiles().find((tile) => saidOf(tile) === null) ?? tiles()[0], { focus: false });
  (window.requestIdleCallback ?? setTimeout)(() => setTimeout(prefetch, 600));
}
addEventListener("tiles", () => { select([]); current = null; moveTo(tiles()[0], { focus: false }); });
remember();
document.documentElement.dataset.ready = "1";

// ---------------------------------------------------------------- solving again
async function ask(path, body) {
  while (!isEmpty()) await new Promise((done) => setTimeout(done, 50));
  const reply = await post(path, body), data = await reply.json();
  if (!reply.ok) { say(data.error); watch(null, data.error); return false; }
  return true;
}
$("#learn").addEventListener("click", async () => { if (await ask("/learn", {})) watch(); });
$("#meaning")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const picked = $("input[name=sense]:checked"), own = picked?.value === "own";
  const body = {
    class: Number(event.target.dataset.class), apply: event.submitter?.value === "apply",
    wnid: own ? "" : picked?.dataset.wnid, words: own ? $("#own-words").value : picked?.dataset.words,
  };
  if (await ask("/meaning", body)) watch(() => { location.href = "/changes"; });
});
$("#own-words")?.addEventListener("input", () => { $("#own").checked = true; });
if (Number(document.body.dataset.work)) watch();
