// Shows how far the work in the background is.
const place = document.querySelector("#work"), link = place.querySelector("a"), close = place.querySelector("button");
const STEP = 600;

function show(title, line) {
  place.hidden = false;
  place.querySelector(".work-title").textContent = title;
  place.querySelector(".work-line").textContent = line;
}
close.addEventListener("click", () => { place.hidden = true; });

export async function watch(then, error) {
  close.hidden = link.hidden = true;
  if (error) { show(error, ""); close.hidden = false; return; }
  for (;;) {
    let work = null;
    try { work = await (await fetch("/work")).json(); } catch { /* asked again */ }
    if (work?.error) { show(work.title, work.error); place.dataset.state = "failed"; close.hidden = false; return; }
    if (work?.done) {
      if (then) { then(); return; }
      show("Solved again", `${work.changed.toLocaleString("en")} other labels changed.`);
      place.dataset.state = "done";
      link.hidden = close.hidden = false;
      return;
    }
    if (work) { place.dataset.state = "busy"; show(`${work.title}…`, work.lines.at(-1) ?? ""); }
    await new Promise((done) => setTimeout(done, STEP));
  }
}
