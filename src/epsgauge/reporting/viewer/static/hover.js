// Reads values off a chart: under the pointer, or with the arrow keys once the chart has the focus.
const box = document.createElement("div");
box.className = "readout";
box.hidden = true;
box.setAttribute("role", "status");
document.body.append(box);
const LINES = "http://www.w3.org/2000/svg";

function scale(text) {
  if (!text) return null;
  const [low, high, start, end, log] = text.split(" ").map(Number);
  const [a, b] = log ? [Math.log10(low), Math.log10(high)] : [low, high];
  return {
    start, end,
    holds: (place) => (place - start) * (place - end) <= 0,
    value: (place) => { const v = a + ((place - start) / (end - start)) * (b - a); return log ? 10 ** v : v; },
  };
}

const short = (value) => Number(value.toPrecision(3)).toString();

// The value of each named line where it crosses this place.
function crossed(svg, x, y) {
  const found = [];
  for (const line of svg.querySelectorAll("path.curve")) {
    const name = line.querySelector("title")?.textContent;
    const points = line.getAttribute("d").slice(1).split("L").map((pair) => pair.split(" ").map(Number));
    const at = points.findIndex((p, i) => i && (points[i - 1][0] - x) * (p[0] - x) <= 0 && p[0] !== points[i - 1][0]);
    if (at < 1) continue;
    const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
    found.push(`${name ? `${name}: ` : ""}${short(y.value(y0 + ((y1 - y0) * (x - x0)) / (x1 - x0)))}`);
  }
  return found;
}

function show(svg, px, py) {
  const x = scale(svg.dataset.x), y = scale(svg.dataset.y);
  if (!x || !x.holds(px) || (y && py !== null && !y.holds(py))) return hide();
  const lines = y ? crossed(svg, px, y) : [];
  const at = `${svg.dataset.of || "x"} ${short(x.value(px))}`;
  box.textContent = lines.length ? `${at}\n${lines.join("\n")}` : y && py !== null ? `${at}, ${short(y.value(py))}` : at;
  box.hidden = false;
  svg.querySelector(".cursor")?.remove();
  const cursor = document.createElementNS(LINES, "line"), [top, bottom] = y ? [y.end, y.start] : [0, svg.viewBox.baseVal.height];
  for (const [name, value] of Object.entries({ class: "cursor", x1: px, x2: px, y1: top, y2: bottom })) cursor.setAttribute(name, value);
  svg.append(cursor);
  const rect = svg.getBoundingClientRect(), unit = rect.width / svg.viewBox.baseVal.width;
  const left = rect.left + px * unit + 12, over = left + box.offsetWidth > document.documentElement.clientWidth;
  box.style.left = `${scrollX + (over ? Math.max(0, left - box.offsetWidth - 24) : left)}px`;
  box.style.top = `${scrollY + rect.top + (py ?? (top + bottom) / 2) * unit + 12}px`;
}

function hide() {
  box.hidden = true;
  document.querySelector(".eg .cursor")?.remove();
}

document.addEventListener("pointermove", (event) => {
  const svg = event.target.closest?.("svg.eg[data-x]");
  if (!svg) { if (!box.hidden && !document.activeElement?.matches("svg.eg")) hide(); return; }
  const rect = svg.getBoundingClientRect(), unit = svg.viewBox.baseVal.width / rect.width;
  show(svg, (event.clientX - rect.left) * unit, (event.clientY - rect.top) * unit);
});

const places = new WeakMap();
document.addEventListener("keydown", (event) => {
  const svg = document.activeElement, step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === "Escape") hide();
  if (!step || !svg?.matches("svg.eg[data-x]")) return;
  event.preventDefault();
  const x = scale(svg.dataset.x), by = ((x.end - x.start) / 50) * step;
  const now = (places.get(svg) ?? (x.start + x.end) / 2) + by;
  places.set(svg, Math.min(Math.max(now, Math.min(x.start, x.end)), Math.max(x.start, x.end)));
  show(svg, places.get(svg), null);
});
document.addEventListener("focusout", hide);

// Charts come and go with the sliders.
const ready = () => { for (const svg of document.querySelectorAll("svg.eg[data-x]:not([tabindex])")) svg.setAttribute("tabindex", "0"); };
new MutationObserver(ready).observe(document.body, { childList: true, subtree: true });
ready();
