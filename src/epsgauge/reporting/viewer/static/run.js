import { ask, by, every, latest, page, problem, put, say } from "/static/parts.js";

const run = by("run");
const id = run?.dataset.id;
const moved = {};  // only what was moved is sent: all else is as declared
let maySee = run?.dataset.maySee === "yes", step = null, turn = 0, waiting, told = null;

const explore = latest(async () => {
  const mine = { id, page, ...moved, turn: String(++turn) };
  clearTimeout(waiting);
  try {
    const found = await ask("/api/explore", mine);
    shown(found);
    if (found.pending) waiting = setTimeout(() => late(mine), 120);
    problem(null);
  } catch (error) { problem(error); }
});

async function late(mine) {
  try {
    const found = await ask("/api/explore", { ...mine, late: "1" });
    if (!found.stale && mine.turn === String(turn)) shown(found);
  } catch (error) { problem(error); }
}

function shown(found) {
  put(found.parts);
  for (const [name, text] of Object.entries(found.values)) {
    const input = { delta: "log_delta" }[name] ?? name, output = by(`out-${input}`);
    if (output) output.textContent = text;
    if (by(input)?.type === "range") by(input).setAttribute("aria-valuetext", text);
  }
  by("explore").dataset.shown = String(turn);
  by("explore").dataset.pending = found.pending ? "yes" : "no";
  by("reset")?.setAttribute("aria-disabled", String(!found.explored));  // it keeps the focus
  if (found.explored && !found.pending) say(by("said").textContent.replace(/\s+/g, " "));
}

// The declared values of a later look: sliders that were not moved follow them.
function renew(html) {
  const made = document.createElement("template");
  made.innerHTML = html;
  for (const fresh of made.content.querySelectorAll("#controls :is(input, select, .hint)")) {
    const old = by(fresh.id), value = old.value;
    if (fresh.matches(".hint")) { old.textContent = fresh.textContent; continue; }
    const declared = fresh.value;
    if (fresh.matches("select")) old.replaceChildren(...fresh.childNodes);
    else for (const name of ["min", "max", "step", "value"]) old.setAttribute(name, fresh.getAttribute(name));
    old.value = old.name in moved ? value : declared;
  }
}

async function results() {
  const found = await ask("/api/results", { id, page });
  by("ask").hidden = true;
  by("waiting").hidden = !found.waiting;
  if (found.waiting) by("known").hidden = true;
  if (found.waiting) {
    if (by("waiting").textContent !== found.waiting) by("waiting").textContent = found.waiting;
    return;
  }
  by("known").hidden = true;
  by("results").hidden = false;
  put(found.parts);
  if (!by("controls")) {
    put({ explore: found.controls });
    by("controls").addEventListener("input", (event) => { moved[event.target.name] = event.target.value; explore(); });
    by("controls").addEventListener("reset", () => { for (const name in moved) delete moved[name]; explore(); });
    by("controls").addEventListener("submit", (event) => event.preventDefault());
  } else renew(found.controls);
  await explore();
}

async function look() {
  try {
    const now = await ask("/api/progress", { id });
    put(now.parts);
    maySee = now.maySee;
    if (by("name").textContent !== now.name) {  // a large run is read after its page is there
      by("name").textContent = now.name;
      document.title = `${now.name} · epsgauge`;
    }
    by("run").dataset.state = now.state;
    if (told !== null && told !== now.state) say(`The run is ${now.state}.`, 0);
    told = now.state;
    by("ask").hidden = maySee;
    if (maySee && step !== now.step) {
      if (by("results").hidden && by("waiting").hidden) by("known").hidden = false;
      await results();
      step = now.step;
    }
    problem(null);
  } catch (error) { problem(error); }
}

if (run) {
  by("open").addEventListener("click", async () => {
    try {
      await ask(`/api/open?${new URLSearchParams({ id })}`, {}, { method: "POST" });
      await look();
      by("main").focus();
    } catch (error) { problem(error); }
  });
  every(1, look);
}
