// Asks for one label after another whether it is right.
import { isEmpty, send } from "/files/outbox.js";
import { why } from "/files/about.js";

const $ = (query) => document.querySelector(query);
const asked = JSON.parse($("#to-ask").textContent), place = $("#ask"), version = document.body.dataset.version;
const meant = JSON.parse($("#meant").textContent), done = [];
let at = 0;

async function show() {
  place.hidden = at >= asked.length;
  $("#finished").hidden = !place.hidden;
  $("[data-says=back]").disabled = !done.length;
  if (place.hidden) return;
  const { row, labels } = asked[at], data = await why(String(row));
  if (asked[at]?.row !== row) return;
  const image = place.querySelector("img"), text = Object.values(data?.texts ?? {}).join(" · ");
  image.src = `/picture/${row}/large?v=${version}`;
  image.alt = text || "picture without text";
  $("#question").textContent = `Does it show: ${labels.join(", ")}?`;
  place.querySelector(".meant").textContent = labels.map((name) => meant[name]).filter(Boolean).join("; ");
  place.querySelector(".text").textContent = text;
  $("#left").textContent = `${asked.length - at} to go`;
  for (const next of asked.slice(at + 1, at + 4)) new Image().src = `/picture/${next.row}/large?v=${version}`;
}
async function state() {
  while (!isEmpty()) await new Promise((wait) => setTimeout(wait, 50));
  const reply = await fetch(`/audit/state?images=${$("main").dataset.images}`);
  if (reply.ok) $("#statement").textContent = (await reply.json()).statement;
}
function say(what) {
  if (what === "back") {
    const step = done.pop();
    if (!step) return;
    at = step.at;
    if (step.batch) { send("/undo", { batch: step.batch }); state(); }
    show();
    return;
  }
  if (at >= asked.length) return;
  const { row, labels } = asked[at], step = { at, batch: "" };
  if (what !== "skip") {
    step.batch = `a-${crypto.getRandomValues(new Uint32Array(3)).reduce((name, n) => name + n.toString(36), "")}`;
    const shows = what === "yes" ? { what: "relabel", classes: labels } : { what: "reject" };
    send("/answer", { version, batch: step.batch, rows: [row], for: "audit", ...shows });
    state();
  }
  done.push(step);
  at += 1;
  show();
}
const KEYS = { y: "yes", n: "no", s: "skip", u: "back" };
document.addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, dialog")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  say(KEYS[event.key]);
}, { capture: true });
document.addEventListener("click", (event) => { const button = event.target.closest("[data-says]"); if (button) say(button.dataset.says); });
show();
