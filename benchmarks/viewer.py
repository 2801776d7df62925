"""How long the viewer's server takes to answer a slider: every picture of a run of 2,000 judged models, over HTTP.

    python benchmarks/viewer.py [--moves 60] [--json out.json]
    python benchmarks/viewer.py --folder runs/     # first answers about runs of yours: nothing kept, then all kept

A move changes one slider; all pictures that depend on it are drawn again. The bounds that take a moment come with a
second request, which is timed apart.
"""

from __future__ import annotations

import argparse
import html
import http.client
import json
import os
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

from timing import machine, on_one_thread

on_one_thread()

import numpy as np  # noqa: E402

import epsgauge as eg  # noqa: E402
from epsgauge.reporting.viewer.server import Viewer  # noqa: E402
from epsgauge.runner.executors import InProcess  # noqa: E402

FIT, JUDGED = 400, 2000
LIMIT = 100.0  # milliseconds


class Losses:
    """Losses of members are lower: any number of models in no time."""

    def train(self, data, *, seed, size=None):
        return set(np.asarray(data[0]).tolist()), seed

    def losses(self, model, points):
        members, seed = model
        ids = np.asarray(points[0])
        return np.random.default_rng(seed).normal(size=len(ids)) - 1.5 * np.isin(ids, list(members))


def a_run(out: Path) -> None:
    plan = eg.Plan(
        name="benchmark",
        n_models=FIT + JUDGED,
        data={"use": "zeros", "size": 400},
        trainer=Losses(),
        game={"train_size": 20, "reference_size": 199, "challenge": "average"},
        audit={"attack": "percentile", "fit_models": FIT, "claimed_eps": 1.0, "claimed_delta": 1e-5,
               "claimed_adjacency": "substitute"},
    )  # fmt: skip
    eg.run(plan, out=out, executor=InProcess())


def moves(n: int) -> dict[str, list[dict[str, float | str]]]:
    """Places of each slider, none of them twice."""
    return {
        "δ": [{"log_delta": round(-8 + 6 * i / n, 3)} for i in range(n)],
        "level": [{"level": round(0.5 + 0.49 * i / n, 4)} for i in range(n)],
        "percentile": [{"percentile": round(1 + 97 * i / n, 1)} for i in range(n)],
        "method": [
            {"method": name, "log_delta": round(-7.95 + i / n, 4)}
            for i, name in zip(range(n), ("jeffreys", "clopper-pearson", "bayes", "exact") * n, strict=False)
        ],
    }


class Browser:
    """Asks as a page does, over one connection."""

    def __init__(self, viewer: Viewer) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=120)
        self.connection.request("GET", viewer.address.partition(str(viewer.port))[2])
        answer = self.connection.getresponse()
        answer.read()
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def get(self, path: str, **query: float | str) -> tuple[float, bytes]:
        """Milliseconds of wall-clock time, and what came."""
        start = time.perf_counter()
        self.connection.request("GET", f"{path}?{urlencode(query)}", headers={"Cookie": self.cookie})
        answer = self.connection.getresponse()
        body = answer.read()
        took = 1e3 * (time.perf_counter() - start)
        if answer.status != 200:
            raise SystemExit(f"{path} answered {answer.status}: {body[:300].decode()}")
        return took, body


def first_answers(folder: Path) -> None:
    """How soon a page is there with what is known, in a viewer that has just begun."""
    with tempfile.TemporaryDirectory() as kept:
        os.environ["XDG_CACHE_HOME"] = kept
        for title in ("nothing kept", "all kept"):
            viewer = Viewer(folder, apart=True)
            thread = threading.Thread(target=viewer.serve, daemon=True)
            thread.start()
            browser, begun = Browser(viewer), time.perf_counter()
            every, _ = browser.get("/api/list")
            ids = [row.partition('"')[0] for row in browser.get("/api/list")[1].decode().split('data-id=\\"')[1:]]
            pages = [browser.get("/run", id=html.unescape(each.rstrip("\\")))[0] for each in ids[:5]]
            while json.loads(browser.get("/api/list")[1])["pending"]:
                time.sleep(0.2)
            took, again = time.perf_counter() - begun, browser.get("/api/list")[0]
            print(
                f"{title:14s}{len(ids):5d} runs   list {every:.0f} ms, pages {np.round(pages).astype(int)} ms, "
                f"all verdicts {took:.1f} s, list then {again:.0f} ms"
            )
            viewer.stop()
            thread.join(5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=60, help="of each slider")
    parser.add_argument("--json", type=Path, help="write the numbers into this file")
    parser.add_argument("--folder", type=Path, help="time the first answers about the runs in this folder instead")
    options = parser.parse_args()
    if options.folder is not None:
        first_answers(options.folder)
        return
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        a_run(Path(folder, "run"))
        viewer = Viewer(folder)
        thread = threading.Thread(target=viewer.serve, daemon=True)
        thread.start()
        browser = Browser(viewer)
        first, _ = browser.get("/api/results", id="run")
        browser.get("/api/explore", id="run", log_delta=-4.321)  # imports, and tables that are made once
        turn = 0
        for name, places in moves(options.moves).items():
            took, cpu, size = [], [], []
            for place in places:
                turn += 1
                before = time.process_time()
                ms, body = browser.get("/api/explore", id="run", turn=turn, **place)
                cpu.append(1e3 * (time.process_time() - before))
                took.append(ms)
                size.append(len(body))
            found[name] = _summary(took, cpu, size)
        late = [browser.get("/api/explore", id="run", turn=turn + 1, late=1, percentile=p)[0] for p in (5, 20, 50, 80)]
        viewer.stop()
        thread.join(5)
    for name, value in machine().items():
        print(f"{name:18s}{value}")
    print(f"\n{JUDGED:,} judged models; first page with the declared verdict {first:.0f} ms\n")
    print(
        f"{'slider':12s}{'median':>9s}{'p95':>9s}{'CPU':>9s}   ms, all pictures, over HTTP; {options.moves} moves each"
    )
    for name, row in found.items():
        mark = "" if row["median"] <= LIMIT else f"   above {LIMIT:.0f} ms"
        print(f"{name:12s}{row['median']:9.1f}{row['p95']:9.1f}{row['cpu']:9.1f}   {row['kB']:.0f} kB{mark}")
    print(f"{'pending':12s}{np.median(late):9.1f}{'':9s}{'':9s}   the other bounds after a move")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "sliders": found, "pending": late}, indent=2))


def _summary(took: list[float], cpu: list[float], size: list[int]) -> dict[str, float]:
    return {
        "median": float(np.median(took)),
        "p95": float(np.percentile(took, 95)),
        "cpu": float(np.median(cpu)),
        "kB": float(np.median(size)) / 1e3,
    }


if __name__ == "__main__":
    main()
