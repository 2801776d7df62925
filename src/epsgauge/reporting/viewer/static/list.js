import { ask, by, every, problem } from "/static/parts.js";

const verdicts = new Map();  // id and number of models -> fragment

function update(html) {
  const made = document.createElement("template");
  made.innerHTML = `<table><tbody>${html}</tbody></table>`;
  const rows = [...made.content.querySelectorAll("tr")], table = by("rows");
  const old = new Map([...table.rows].map((row) => [row.dataset.id, row]));
  for (const row of rows) {
    const before = old.get(row.dataset.id);
    old.delete(row.dataset.id);
    if (!before || before.cells.length !== row.cells.length) {
      if (before) before.replaceWith(row); else table.append(row);
      continue;
    }
    [...row.cells].forEach((cell, i) => {
      if (i < 2) return;  // what can have the focus stays
      const same = cell.dataset.verdict && cell.dataset.of === before.cells[i].dataset.of;
      if (!same && cell.innerHTML !== before.cells[i].innerHTML) before.cells[i].replaceWith(cell);
    });
  }
  for (const gone of old.values()) gone.remove();
  by("list").hidden = !rows.length;
  by("empty").hidden = rows.length > 0;
}

async function fill() {
  for (const cell of document.querySelectorAll("[data-verdict]:not([data-filled])")) {
    const key = `${cell.dataset.verdict} ${cell.dataset.of}`;
    if (!verdicts.has(key)) {
      try {
        verdicts.set(key, (await ask("/api/verdict", { id: cell.dataset.verdict })).html);
      } catch (error) { problem(error); return; }
    }
    cell.innerHTML = verdicts.get(key);
    cell.dataset.filled = "yes";
  }
}

fill().then(() => every(2, async () => {
  try {
    const now = await ask("/api/list");
    update(now.parts.rows);
    by("left-out").textContent = now.leftOut ?? "";
    by("left-out").hidden = !now.leftOut;
    problem(null);
    await fill();
  } catch (error) { problem(error); }
}));
