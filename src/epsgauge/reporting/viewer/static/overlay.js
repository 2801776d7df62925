import { ask, by, problem } from "/static/parts.js";

by("open")?.addEventListener("click", async (event) => {
  const ids = JSON.parse(event.currentTarget.dataset.ids);
  try {
    await ask(`/api/open?${new URLSearchParams(ids.map((id) => ["id", id]))}`, {}, { method: "POST" });
    location.reload();
  } catch (error) { problem(error); }
});
