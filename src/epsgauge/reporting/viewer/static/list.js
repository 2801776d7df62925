import { ask, by, problem, put } from "/static/parts.js";

// Rows stay where they are unless their order changes; what has the focus keeps it.
function update(html) {
  const made = document.createElement("template");
  made.innerHTML = `<table><tbody>${html}</tbody></table>`;
  const table = by("rows"), held = document.activeElement, inside = table.contains(held);
  const old = new Map([...table.rows].map((row) => [row.dataset.id, row]));
  [...made.content.querySelectorAll("tr")].forEach((fresh, place) => {
    let row = old.get(fresh.dataset.id);
    old.delete(fresh.dataset.id);
    if (row && row.cells.length === fresh.cells.length) {
      [...fresh.cells].forEach((cell, i) => {
        if (i > 0 && cell.innerHTML !== row.cells[i].innerHTML && !row.cells[i].contains(held)) row.cells[i].replaceWith(cell);
      });
    } else if (row) {
      const picked = row.querySelector("input")?.checked, input = fresh.querySelector("input");
      if (input) input.checked = picked;
      row.replaceWith(fresh);
      row = fresh;
    } else row = fresh;
    if (table.rows[place] !== row) table.insertBefore(row, table.rows[place] ?? null);
  });
  for (const gone of old.values()) gone.remove();
  if (inside && table.contains(held) && document.activeElement !== held) held.focus();
}

let waiting, asked = 0;

async function refresh() {
  clearTimeout(waiting);
  const mine = ++asked;
  let soon = false;
  try {
    const now = await ask(`/api/list${location.search}`);
    if (mine !== asked) return;  // the address has changed since
    const { rows, ...others } = now.parts;
    const held = document.activeElement?.getAttribute("href");
    update(rows);
    put(others);
    if (held && document.activeElement === document.body) linked(held)?.focus();
    by("list").hidden = !now.any;
    by("empty").hidden = now.any;
    by("left-out").textContent = now.leftOut ?? "";
    by("left-out").hidden = !now.leftOut;
    soon = now.pending > 0;
    problem(null);
  } catch (error) { problem(error); }
  if (mine === asked) waiting = setTimeout(later, soon ? 400 : 2000);
}

const later = () => (document.hidden ? (waiting = setTimeout(later, 1000)) : refresh());

// A link that sorts turns round when it was used: the one of the same column has the focus then.
function linked(href) {
  const sort = new URL(href, location.href).searchParams.get("sort") ?? "name";
  return [...document.querySelectorAll("#heads a")].find((a) => (new URL(a.href).searchParams.get("sort") ?? "name") === sort);
}

const form = by("filter");

function show(address, add = true) {
  if (add) history.pushState(null, "", address);
  const query = new URLSearchParams(location.search);
  for (const name of ["q", "verdict"]) if (document.activeElement !== form.elements[name]) form.elements[name].value = query.get(name) ?? "";
  refresh();
}

function typed() {
  const query = new URLSearchParams(location.search);
  for (const name of ["q", "verdict"]) {
    query.delete(name);
    if (form.elements[name].value.trim()) query.set(name, form.elements[name].value.trim());
  }
  history.replaceState(null, "", query.size ? `/?${query}` : "/");
  refresh();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-list]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(link.getAttribute("href"));
});
form.addEventListener("input", typed);
form.addEventListener("submit", (event) => { event.preventDefault(); typed(); });
addEventListener("popstate", () => show(location.href, false));
waiting = setTimeout(later, 300);
