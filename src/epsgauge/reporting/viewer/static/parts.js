// Asks the server, puts its fragments into the page, and says what went wrong. It computes nothing.
const last = new Map();

export const by = (id) => document.getElementById(id);

export async function ask(path, query = {}, options = {}) {
  const search = new URLSearchParams(query).toString();
  let answer;
  try {
    answer = await fetch(search ? `${path}?${search}` : path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The viewer does not answer. See whether it still runs in the terminal.");
  }
  if (answer.status === 403) throw new Error(await answer.text());
  const found = await answer.json();
  if (found.error) throw Object.assign(new Error(found.error), { found });
  return found;
}

// A picture that is taller than its box gets a taller box, which it keeps: pictures never shrink under a slider.
const tallest = new Map();
function roomFor(place) {
  const box = place.querySelector("svg")?.viewBox.baseVal;
  if (!box || !place.id || getComputedStyle(place).aspectRatio === "auto") return;
  const [, across, down] = getComputedStyle(place).aspectRatio.match(/([\d.]+) \/ ([\d.]+)/) ?? [0, 1, 1];
  const needed = Math.max(tallest.get(place.id) ?? down / across, box.height / box.width);
  if (needed > down / across + 0.005) place.style.aspectRatio = `1 / ${needed}`;
  tallest.set(place.id, needed);
}

export function put(parts) {
  for (const [id, html] of Object.entries(parts)) {
    const place = by(id);
    if (!place || last.get(id) === html) continue;
    last.set(id, html);
    const made = document.createElement("template");
    made.innerHTML = html;
    const focused = document.activeElement && place.contains(document.activeElement) ? document.activeElement.tagName : null;
    const open = [...place.querySelectorAll("details")].map((d) => d.open);
    place.replaceChildren(made.content);
    if (place.classList.contains("picture")) roomFor(place);
    [...place.querySelectorAll("details")].forEach((d, i) => { if (open[i]) d.open = true; });
    if (focused === "SUMMARY") place.querySelector("summary")?.focus();
  }
}

export function problem(error) {
  const place = by("problem");
  if (!place) return;
  const text = error ? error.message : "";
  if (place.textContent !== text) place.textContent = text;
  place.hidden = !error;
}

// Of this page alone: two pages of one run have sliders of their own.
export const page = [...crypto.getRandomValues(new Uint32Array(4))].map((n) => n.toString(36)).join("-");

let speaking;
export function say(text, wait = 700) {
  clearTimeout(speaking);
  speaking = setTimeout(() => { by("live").textContent = text; }, wait);
}

// Calls `work` at most once at a time; whatever was asked meanwhile is done once, with the latest values.
export function latest(work) {
  let busy = false, again = false;
  return async function run() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      do { again = false; await work(); } while (again);
    } finally { busy = false; }
  };
}

// Calls `work` now and then while the page is seen.
export function every(seconds, work) {
  const turn = async () => {
    if (!document.hidden) await work();
    setTimeout(turn, 1000 * seconds);
  };
  turn();
}
