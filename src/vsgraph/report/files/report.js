"use strict";
// The pages work without this file, but for the map and for sorting and searching the table.
// Text from the crawl is only ever set as textContent.

document.documentElement.classList.add("scripted");
const byId = (id) => document.getElementById(id);

// ---------------------------------------------------------------- the table of classes
(function () {
  const table = byId("table");
  if (!table) return;
  const FIRST = 15;
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const more = byId("more");
  let all = rows.length <= FIRST + 5;

  function value(row, column) {
    const cell = row.cells[column];
    if (column === 0) return cell.textContent.trim().toLowerCase();
    return Number(cell.dataset.value ?? cell.textContent.replaceAll(",", ""));
  }
  function show() {
    const wanted = byId("find").value.trim().toLowerCase();
    let found = 0;
    for (const row of body.rows) {
      const hit = value(row, 0).includes(wanted);
      found += hit;
      row.hidden = !hit || (!all && !wanted && found > FIRST);
    }
    more.hidden = all || Boolean(wanted);
    more.textContent = `Show all ${rows.length.toLocaleString("en")} classes`;
    byId("found").textContent = wanted ? `${found} found` : "";
  }
  function sort(header, column) {
    const text = column === 0;
    const now = header.getAttribute("aria-sort");
    const down = now ? now === "ascending" : !text;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    rows.sort((a, b) => {
      const [p, q] = [value(a, column), value(b, column)];
      return sign * (text ? p.localeCompare(q) : p - q);
    });
    body.append(...rows);
    show();
  }
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    if (header.tagName !== "TH") return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => sort(header, column));
    header.replaceChildren(button);
  });
  byId("find").addEventListener("input", show);
  more.addEventListener("click", () => { all = true; show(); body.rows[FIRST].querySelector("a")?.focus(); });
  addEventListener("beforeprint", () => { all = true; show(); });
  show();
})();

// ---------------------------------------------------------------- the map
(function () {
  const source = byId("map-data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const n = data.x.length, WORLD = 9999, MARGIN = 24;
  const COLORS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#b58900", "#56b4e9", "#7b61c9"];
  const SHAPES = ["circle", "square", "triangle", "diamond", "down", "cross"];
  const sides = ["web", "final"].map((key) => ({ key, canvas: byId(`map-${key}`), labels: data[key] }));
  const view = { x: WORLD / 2, y: WORLD / 2, zoom: 1 };
  const tip = byId("tip"), maps = document.querySelector(".maps"), only = byId("only");
  let chosen = -1, current = -1, pinned = false, waiting = false;

  const color = (c) => COLORS[c % COLORS.length];
  const shape = (c) => SHAPES[(c + Math.floor(c / COLORS.length)) % SHAPES.length];
  const place = { both: () => [0, 1], web: () => [0], final: () => [1] };
  const seen = () => place[document.querySelector("input[name=side]:checked").value]().map((i) => sides[i]);

  function trace(g, kind, x, y, r) {
    g.beginPath();
    if (kind === "circle") g.arc(x, y, r, 0, 7);
    else if (kind === "square") g.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else if (kind === "triangle") { g.moveTo(x, y - r * 1.2); g.lineTo(x + r * 1.1, y + r * 0.9); g.lineTo(x - r * 1.1, y + r * 0.9); }
    else if (kind === "down") { g.moveTo(x, y + r * 1.2); g.lineTo(x + r * 1.1, y - r * 0.9); g.lineTo(x - r * 1.1, y - r * 0.9); }
    else if (kind === "diamond") { g.moveTo(x, y - r * 1.3); g.lineTo(x + r * 1.1, y); g.lineTo(x, y + r * 1.3); g.lineTo(x - r * 1.1, y); }
    else { const a = r * 0.4, b = r * 1.2; g.rect(x - b, y - a, 2 * b, 2 * a); g.rect(x - a, y - b, 2 * a, 2 * b); }
    g.closePath();
    g.fill();
  }
  function out(g, x, y, r) {
    g.beginPath();
    g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r);
    g.stroke();
  }
  const scale = (canvas) => view.zoom * (Math.min(canvas.clientWidth, canvas.clientHeight) - 2 * MARGIN) / WORLD;
  function toScreen(canvas, i) {
    const s = scale(canvas);
    return [(data.x[i] - view.x) * s + canvas.clientWidth / 2, (data.y[i] - view.y) * s + canvas.clientHeight / 2];
  }
  const isChosen = (i) => chosen < 0 || data.web[i] === chosen || data.final[i] === chosen;

  // The same order every time: faint images first, so that sure ones lie on top.
  const order = [...Array(n).keys()].sort((a, b) => data.sure[a] - data.sure[b]);

  function draw() {
    waiting = false;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink"), paper = style.getPropertyValue("--panel"), quiet = style.getPropertyValue("--quiet");
    for (const side of seen()) drawSide(side, ink, paper, quiet);
  }
  function drawSide({ canvas, labels }, ink, paper, quiet) {
    const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
    }
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    const base = (n > 1500 ? 2.3 : 3.4) * Math.min(3, Math.sqrt(view.zoom)) * (w < 500 ? 0.85 : 1);
    g.lineWidth = 1.3;
    g.strokeStyle = ink;
    for (const strong of [false, true]) {
      for (const i of order) {
        if (isChosen(i) !== strong) continue;
        const [x, y] = toScreen(canvas, i);
        if (x < -9 || y < -9 || x > w + 9 || y > h + 9) continue;
        const sure = data.sure[i] / 100;
        if (!strong) { g.globalAlpha = 0.16; g.fillStyle = quiet; g.fillRect(x - 1, y - 1, 2, 2); continue; }
        g.globalAlpha = 0.22 + 0.73 * sure;
        const r = base * (0.65 + 0.5 * sure) * (chosen < 0 ? 1 : 1.3);
        if (labels[i] < 0) { g.globalAlpha = 0.6; out(g, x, y, r); }
        else { g.fillStyle = color(labels[i]); trace(g, shape(labels[i]), x, y, r); }
      }
    }
    g.globalAlpha = 1;
    writeNames(g, canvas, labels, ink, paper);
    if (current >= 0) {
      const [x, y] = toScreen(canvas, current);
      g.lineWidth = 3; g.strokeStyle = ink;
      g.beginPath(); g.arc(x, y, base + 6, 0, 7); g.stroke();
    }
  }
  function middles(labels) {
    const groups = new Map();
    for (let i = 0; i < n; i++) {
      if (labels[i] < 0 || (chosen >= 0 && !isChosen(i))) continue;
      if (!groups.has(labels[i])) groups.set(labels[i], []);
      groups.get(labels[i]).push(i);
    }
    const found = [];
    for (const [c, rows] of groups) {
      const mid = (a) => rows.map((i) => a[i]).sort((p, q) => p - q)[rows.length >> 1];
      const [mx, my] = [mid(data.x), mid(data.y)];
      const gap = (i) => (data.x[i] - mx) ** 2 + (data.y[i] - my) ** 2;
      found.push({ c, size: rows.length, at: rows.reduce((a, b) => (gap(b) < gap(a) ? b : a)) });
    }
    return found.sort((a, b) => b.size - a.size).slice(0, 60);
  }
  let memo = {};
  function writeNames(g, canvas, labels, ink, paper) {
    const key = `${canvas.id} ${chosen}`;
    memo[key] ??= middles(labels);
    g.font = `600 ${canvas.clientWidth < 500 ? 11 : 12.5}px system-ui, sans-serif`;
    g.textAlign = "center"; g.textBaseline = "middle"; g.lineJoin = "round";
    const taken = [];
    for (const { c, at } of memo[key]) {
      const name = data.names[c].length > 22 ? `${data.names[c].slice(0, 21)}…` : data.names[c];
      let [x, y] = toScreen(canvas, at);
      const half = g.measureText(name).width / 2 + 3;
      if (x < 0 || y < 0 || x > canvas.clientWidth || y > canvas.clientHeight) continue;
      x = Math.min(Math.max(x, half), canvas.clientWidth - half);
      y = Math.min(Math.max(y, 9), canvas.clientHeight - 9);
      if (taken.some((t) => Math.abs(t.x - x) < t.half + half && Math.abs(t.y - y) < 15)) continue;
      taken.push({ x, y, half });
      g.lineWidth = 4; g.strokeStyle = paper; g.strokeText(name, x, y);
      g.fillStyle = ink; g.fillText(name, x, y);
    }
  }
  function redraw() { if (!waiting) { waiting = true; requestAnimationFrame(draw); } }

  function zoomAt(canvas, factor, px, py) {
    const zoom = Math.min(60, Math.max(1, view.zoom * factor)), s = scale(canvas);
    const wx = view.x + (px - canvas.clientWidth / 2) / s, wy = view.y + (py - canvas.clientHeight / 2) / s;
    view.x = wx - (wx - view.x) * (view.zoom / zoom);
    view.y = wy - (wy - view.y) * (view.zoom / zoom);
    view.zoom = zoom;
    settle();
  }
  function settle() {
    const half = WORLD / 2, slack = half * (1 - 1 / view.zoom);
    view.x = Math.min(half + slack, Math.max(half - slack, view.x));
    view.y = Math.min(half + slack, Math.max(half - slack, view.y));
    for (const { canvas } of sides) canvas.style.touchAction = view.zoom > 1 ? "none" : "pan-y";
    redraw();
  }
  function whole() { Object.assign(view, { x: WORLD / 2, y: WORLD / 2, zoom: 1 }); settle(); }

  function nearest(canvas, px, py) {
    let best = -1, least = 14 * 14;
    for (let i = 0; i < n; i++) {
      if (!isChosen(i)) continue;
      const [x, y] = toScreen(canvas, i), gap = (x - px) ** 2 + (y - py) ** 2;
      if (gap < least) { least = gap; best = i; }
    }
    return best;
  }
  function tell(canvas, i) {
    current = i;
    tip.hidden = i < 0;
    redraw();
    if (i < 0) return;
    const [web, final] = [data.web[i], data.final[i]].map((c) => (c < 0 ? "rejected" : data.names[c]));
    const image = tip.querySelector("img");
    image.src = data.picture[i] ? `pictures/${data.row[i]}.jpg` : "files/no-picture.svg";
    image.alt = data.picture[i] ? data.title[i] : "picture that cannot be read";
    tip.querySelector(".tip-labels").textContent = (web === final ? `✓ ${web}` : `${web} → ${final}`) + (data.final[i] < 0 ? "" : ` (${(data.sure[i] / 100).toFixed(2)})`);
    tip.querySelector(".tip-title").textContent = data.title[i] || "(no text)";
    const page = data.pages[data.web[i]], link = tip.querySelector("a");
    link.hidden = !page;
    if (page) link.href = `classes/${page}`;
    const box = canvas.getBoundingClientRect(), [x, y] = toScreen(canvas, i);
    const left = Math.min(box.left + x + 16, innerWidth - tip.offsetWidth - 8);
    const above = box.top + y + 16 + tip.offsetHeight > innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, above ? box.top + y - tip.offsetHeight - 16 : box.top + y + 16)}px`;
  }
  function step(canvas, by) {
    for (let k = 1; k <= n; k++) {
      const i = (((current < 0 ? (by > 0 ? -1 : 0) : current) + by * k) % n + n) % n;
      const [x, y] = toScreen(canvas, i);
      if (isChosen(i) && x >= 0 && y >= 0 && x <= canvas.clientWidth && y <= canvas.clientHeight) { pinned = true; tell(canvas, i); return; }
    }
  }

  for (const { canvas } of sides) {
    const fingers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (e) => { fingers.set(e.pointerId, e); moved = 0; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", (e) => {
      const before = fingers.get(e.pointerId);
      if (!before) {
        if (e.pointerType === "mouse" && !pinned) tell(canvas, nearest(canvas, e.offsetX, e.offsetY));
        return;
      }
      const [dx, dy] = [e.clientX - before.clientX, e.clientY - before.clientY];
      moved += Math.abs(dx) + Math.abs(dy);
      if (fingers.size === 2) {
        const other = [...fingers.values()].find((f) => f.pointerId !== e.pointerId);
        const apart = (f) => Math.hypot(f.clientX - other.clientX, f.clientY - other.clientY);
        const box = canvas.getBoundingClientRect();
        zoomAt(canvas, apart(e) / Math.max(1, apart(before)), (e.clientX + other.clientX) / 2 - box.left, (e.clientY + other.clientY) / 2 - box.top);
      } else if (moved > 4) {
        view.x -= dx / scale(canvas); view.y -= dy / scale(canvas);
        if (current >= 0) { pinned = false; tell(canvas, -1); }
        settle();
      }
      fingers.set(e.pointerId, e);
    });
    const up = (e) => {
      fingers.delete(e.pointerId);
      if (e.type === "pointerup" && moved <= 4) { const i = nearest(canvas, e.offsetX, e.offsetY); pinned = i >= 0; tell(canvas, i); }
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => { if (!pinned) tell(canvas, -1); });
    canvas.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && document.activeElement !== canvas) return;
      e.preventDefault();
      zoomAt(canvas, Math.exp(-e.deltaY / 300), e.offsetX, e.offsetY);
    }, { passive: false });
    canvas.addEventListener("dblclick", (e) => zoomAt(canvas, 2, e.offsetX, e.offsetY));
    canvas.addEventListener("keydown", (e) => {
      const far = 60 / scale(canvas), [w, h] = [canvas.clientWidth / 2, canvas.clientHeight / 2];
      const keys = {
        ArrowLeft: () => { view.x -= far; settle(); }, ArrowRight: () => { view.x += far; settle(); },
        ArrowUp: () => { view.y -= far; settle(); }, ArrowDown: () => { view.y += far; settle(); },
        "+": () => zoomAt(canvas, 1.5, w, h), "=": () => zoomAt(canvas, 1.5, w, h), "-": () => zoomAt(canvas, 1 / 1.5, w, h),
        0: whole, n: () => step(canvas, 1), p: () => step(canvas, -1), Escape: () => { pinned = false; tell(canvas, -1); },
      };
      const act = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
      if (act && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); act(); }
    });
  }
  const zoomMiddle = (factor) => { const { canvas } = seen()[0]; zoomAt(canvas, factor, canvas.clientWidth / 2, canvas.clientHeight / 2); };
  byId("closer").addEventListener("click", () => zoomMiddle(1.5));
  byId("farther").addEventListener("click", () => zoomMiddle(1 / 1.5));
  byId("whole").addEventListener("click", whole);

  const used = [...new Set([...data.web, ...data.final])].filter((c) => c >= 0).sort((a, b) => data.names[a].localeCompare(data.names[b]));
  for (const c of used) only.append(new Option(data.names[c], c));
  only.addEventListener("change", () => { chosen = only.value === "" ? -1 : Number(only.value); pinned = false; tell(sides[0].canvas, -1); redraw(); });
  function arrange() {
    const both = seen().length === 2;
    maps.classList.toggle("both", both);
    for (const side of sides) side.canvas.parentElement.hidden = !seen().includes(side);
    pinned = false;
    tell(sides[0].canvas, -1);
    redraw();
  }
  for (const input of document.querySelectorAll("input[name=side]")) input.addEventListener("change", arrange);
  const list = byId("legend").querySelector("ul");
  byId("legend").addEventListener("toggle", () => {
    if (list.children.length) return;
    for (const c of used.slice(0, 500)) {
      const item = document.createElement("li"), sign = document.createElement("canvas");
      sign.width = sign.height = 32;
      const g = sign.getContext("2d");
      g.fillStyle = color(c);
      trace(g, shape(c), 16, 16, 10);
      item.append(sign, data.names[c]);
      list.append(item);
    }
  });
  new ResizeObserver(redraw).observe(maps);
  addEventListener("scroll", () => { if (current >= 0) { pinned = false; tell(sides[0].canvas, -1); } }, { passive: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  byId("atlas").dataset.points = n;
  arrange();
})();
