// Asks for a class by a part of its name.
import { element } from "/files/about.js";

const dialog = document.querySelector("#relabel"), input = document.querySelector("#relabel-input");
const list = document.querySelector("#relabel-list"), chips = dialog.querySelector(".chips");
const several = document.body.dataset.several === "1", SHOWN = 9, RECENT = "vsgraph-recent";
let names = [], at = 0, hints = [], taken = [], answer = null, ready = null;

const recent = () => JSON.parse(sessionStorage.getItem(RECENT) ?? "[]");
function found() {
  const wanted = input.value.trim().toLowerCase();
  if (!wanted) return [...new Set([...hints, ...recent()])].filter((name) => names.includes(name)).slice(0, SHOWN);
  const rank = (name) => { const text = name.toLowerCase(); return text === wanted ? 0 : text.startsWith(wanted) ? 1 : text.includes(` ${wanted}`) ? 2 : text.includes(wanted) ? 3 : 9; };
  return names.map((name) => [rank(name), name]).filter(([r]) => r < 9).sort((a, b) => a[0] - b[0]).slice(0, SHOWN).map(([, name]) => name);
}
function draw() {
  const shown = found();
  at = Math.min(at, Math.max(0, shown.length - 1));
  list.replaceChildren(...shown.map((name, i) => {
    const option = element("li", name, { id: `class-${i}`, dir: "auto" });
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", i === at);
    option.addEventListener("mousedown", (event) => { event.preventDefault(); take(name); });
    return option;
  }));
  shown.length ? input.setAttribute("aria-activedescendant", `class-${at}`) : input.removeAttribute("aria-activedescendant");
  input.setAttribute("aria-expanded", String(shown.length > 0));
  chips.hidden = !taken.length;
  chips.textContent = taken.join(", ");
}
function take(name) {
  taken = several ? [...new Set([...taken, name])] : [name];
  sessionStorage.setItem(RECENT, JSON.stringify([...new Set([name, ...recent()])].slice(0, 6)));
  input.value = "";
  hints = [];
  if (several) draw(); else finish();
}
function finish() { answer = taken; dialog.close(); }

input.addEventListener("input", () => { at = 0; draw(); });
input.addEventListener("keydown", async (event) => {
  if (event.key === "Enter") { event.preventDefault(); await ready; }  // the names may still be on their way
  const shown = found();
  if (event.key === "ArrowDown") at = (at + 1) % Math.max(1, shown.length);
  else if (event.key === "ArrowUp") at = (at - 1 + shown.length) % Math.max(1, shown.length);
  else if (event.key === "Enter") {
    if (several && taken.length && !input.value.trim()) finish();
    else if (shown.length) take(shown[at]);
    return;
  } else return;
  event.preventDefault();
  draw();
});
async function load(suggested) {
  if (!names.length) names = await (await fetch("/names")).json();
  hints = await suggested;
  draw();
}
export async function askClass(suggested, title) {
  [hints, taken, at, answer] = [[], [], 0, null];
  document.querySelector("#relabel-title").textContent = title;
  input.value = "";
  dialog.showModal();  // at once: the next key is already a part of a name
  ready = load(suggested);
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  return answer;
}
