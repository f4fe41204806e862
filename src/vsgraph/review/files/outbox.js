// Answers on their way to the server. They wait here, in order, until the server has written them,
// also while it cannot be reached and when another page is opened. Sending one twice does no harm.

const KEY = "vsgraph-outbox", FIRST = 400, LONGEST = 5000;
const status = document.querySelector("#saved"), listeners = [];
let waiting = JSON.parse(sessionStorage.getItem(KEY) ?? "[]"), busy = false, delay = FIRST;
let refused = 0, reason = "";  // answers that the server did not take, and why

export const post = (path, body, keepalive = false) => fetch(path, {
  method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), keepalive,
});

export function send(path, body) {
  waiting.push({ path, body });
  keep();
  flush();
}
export const isEmpty = () => waiting.length === 0;
export const onEmpty = (listener) => listeners.push(listener);

function keep() {
  try { sessionStorage.setItem(KEY, JSON.stringify(waiting)); } catch { /* no room: they wait in this page */ }
  if (refused) tell("failed", `${refused} ${refused > 1 ? "answers were" : "answer was"} not saved: ${reason}`);
  else tell(waiting.length ? "busy" : "", waiting.length ? `Saving ${waiting.length}…` : "All saved");
}
export function tell(state, text) {
  status.dataset.state = state;
  status.lastElementChild.textContent = text;
}
async function flush() {
  if (busy) return;
  busy = true;
  while (waiting.length) {
    const { path, body } = waiting[0];
    let problem = "";
    try {
      const reply = await post(path, body);
      if (reply.ok || (reply.status >= 400 && reply.status < 500 && reply.status !== 403)) {
        waiting.shift();
        delay = FIRST;
        if (!reply.ok) {
          refused += 1;
          reason = (await reply.json()).error;
        }
        keep();
        continue;
      }
      problem = reply.status === 403 ? "open the address that vsgraph review printed" : "the server has a problem";
    } catch { problem = "the server cannot be reached"; }
    tell("failed", `${waiting.length} not saved yet: ${problem}. They are sent again.`);
    await new Promise((done) => setTimeout(done, delay));
    delay = Math.min(LONGEST, delay * 2);
  }
  busy = false;
  for (const listener of listeners.splice(0)) listener();
}
addEventListener("pagehide", () => { for (const { path, body } of waiting) post(path, body, true).catch(() => {}); });
addEventListener("online", () => { delay = FIRST; });
if (waiting.length) { keep(); flush(); }
