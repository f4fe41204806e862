// Everything that is known of an image, beside it or with the picture enlarged.
const KEPT = 200, known = new Map();
const version = document.body.dataset.version;
export const large = document.querySelector("#large");

export function why(row) {
  if (!known.has(row)) {
    if (known.size >= KEPT) known.delete(known.keys().next().value);
    known.set(row, fetch(`/why/${row}`).then((reply) => (reply.ok ? reply.json() : null)).catch(() => { known.delete(row); return null; }));
  }
  return known.get(row);
}
export function element(name, text = "", properties = {}) {
  const made = Object.assign(document.createElement(name), properties);
  if (text) made.textContent = text;
  return made;
}
const picture = (row, size, alt) => element("img", "", { src: `/picture/${row}${size}?v=${version}`, alt });
const list = (names) => names.join(", ") || "none of the classes";

export function about(place, data, withPicture) {
  const parts = [];
  const title = Object.values(data.texts)[0] ?? "";
  if (withPicture) parts.push(picture(data.row, "/large", title || "picture without text"));
  const verdict = element("p", "", { className: `verdict ${data.decision}` });
  const mark = { kept: "✓", relabeled: "→", rejected: "✕" }[data.decision];
  verdict.append(element("b", `${mark} ${data.decision}`), ` ${data.decision === "relabeled" ? `from ${list(data.web)} to ${list(data.final)}` : list(data.web)}`);
  if (data.final.length) verdict.append(element("span", ` ${data.confidence.toFixed(2)}`, { className: "quiet" }));
  parts.push(verdict);
  if (data.now) parts.push(element("p", `Answer: ${list(data.now)}`, { className: "your" }));
  for (const [who, names] of Object.entries(data.others)) parts.push(element("p", `${who}: ${list(names)}`, { className: "notice" }));
  for (const [field, text] of Object.entries(data.texts)) {
    const line = element("p", "", { className: "text", dir: "auto" });
    line.append(element("span", `${field} `, { className: "quiet" }), text);
    parts.push(line);
  }
  if (!title) parts.push(element("p", "no text came with it", { className: "quiet" }));
  parts.push(element("p", `${data.reason[0].toUpperCase()}${data.reason.slice(1)}.`));
  const evidence = element("dl", "", { className: "evidence" });
  for (const [witness, scores] of Object.entries(data.evidence)) {
    const row = element("div");
    row.append(element("dt", witness), element("dd", scores.map(([name, score]) => `${name} ${score.toFixed(2)}`).join(", ")));
    evidence.append(row);
  }
  parts.push(evidence);
  if (data.near.length) {
    const near = element("p", "", { className: "near" });
    for (const other of data.near) near.append(Object.assign(picture(other.row, "", `looks alike, found as ${other.label}`), { title: other.label, width: 64, height: 64 }));
    parts.push(element("p", "Look alike", { className: "quiet" }), near);
  }
  parts.push(element("p", [data.image, data.source].filter(Boolean).join(" · "), { className: "quiet path" }));
  place.replaceChildren(...parts);
}
export function enlarge(data) {
  const image = large.querySelector("figure img");
  image.src = `/picture/${data.row}/large?v=${version}`;
  image.alt = Object.values(data.texts)[0] ?? "picture without text";
  about(large.querySelector(".about"), data, false);
  if (!large.open) large.showModal();
}
