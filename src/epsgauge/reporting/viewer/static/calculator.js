import { ask, by, latest, page, problem, put, say } from "/static/parts.js";

const form = by("counts");
let turn = 0, waiting;

const typed = () => Object.fromEntries(new FormData(form));

const compute = latest(async () => {
  const mine = { ...typed(), page, turn: String(++turn) };
  clearTimeout(waiting);
  try {
    shown(await ask("/api/calculator", mine), mine);
    problem(null);
  } catch (error) {
    problem(error);
    by("answers").classList.add("old");  // which is of other counts
  }
});

function shown(found, mine) {
  if (found.stale || mine.turn !== String(turn)) return;
  put(found.parts);
  by("answers").classList.remove("old");
  by("answers").dataset.shown = mine.turn;
  by("answers").dataset.pending = found.pending ? "yes" : "no";
  if (found.pending) waiting = setTimeout(() => late(mine), 250);
  else say(by("said").textContent.replace(/\s+/g, " "));
}

async function late(mine) {
  try { shown(await ask("/api/calculator", { ...mine, late: "1" }), mine); } catch (error) { problem(error); }
}

function address() {
  const counts = Object.entries(typed()).filter(([, value]) => value !== "");
  history.replaceState(null, "", `/calculator?${new URLSearchParams(counts)}`);
}

form.addEventListener("input", () => { address(); compute(); });
form.addEventListener("submit", (event) => { event.preventDefault(); address(); compute(); });

const asked = ["adjacency", "bits", "models"];
let held = null;  // the file that the server has: what is said of it later needs no second upload

async function send(name, body) {
  const { delta, level, claimed } = typed();
  const about = Object.fromEntries(asked.map((id) => [id, by(id).value]));
  const which = body ? { name } : { held: held.key };
  by("reading").textContent = `Reading ${name} …`;
  const query = new URLSearchParams({ ...which, ...about, delta, level, claimed });
  let found;
  try {
    found = await ask(`/api/scores?${query}`, {}, body ? { method: "POST", body } : { method: "POST" });
  } catch (error) {
    found = { ...error.found, failed: error };
  }
  held = found.held ? { key: found.held, name } : null;
  if (found.failed) {
    by("reading").textContent = held ? `${name} is here: say more about it above, or choose another file.` : "";
    problem(found.failed);
    if (found.asks) by(found.asks).focus(); else by("problem").scrollIntoView({ block: "center" });
    return;
  }
  put(found.parts);
  by("reading").textContent = `${name} was read: its audit stands below.`;
  by("dropped").focus();
  by("dropped").scrollIntoView();
  problem(null);
}

const read = (file) => { if (file) send(file.name, file); };
for (const id of asked) by(id).addEventListener("change", () => { if (held) send(held.name); });
by("file").addEventListener("change", (event) => read(event.target.files[0]));
const drop = by("drop");
for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => event.preventDefault());
drop.addEventListener("dragover", () => drop.classList.add("over"));
drop.addEventListener("dragleave", () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { drop.classList.remove("over"); read(event.dataTransfer.files[0]); });

compute();
