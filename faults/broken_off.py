"""What breaks off in the middle: merges that are killed, and uploads whose sender leaves."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import numpy as np

import epsgauge as eg
from epsgauge.errors import EpsgaugeError
from epsgauge.runner.executors import InProcess
from faults.count import SECONDS, Count
from faults.stores import Noisy, table

MERGE = "import sys, epsgauge as eg; print(flush=True); eg.merge(sys.argv[1:3], out=sys.argv[3])"
VIEW = "import sys; from epsgauge.reporting.viewer.server import serve; serve(sys.argv[1], open_browser=False)"


def merges(n: int, seed: int, scratch: Path) -> Count:
    """Killed at any moment, at most as long after its start as a merge takes; the next one gives the whole run."""
    rng, count = np.random.default_rng(seed), Count("kills of a merge")
    plan = eg.Plan(name="a", n_models=300, data=table, trainer=Noisy(), game={"train_size": 10, "reference_size": 19})
    home = scratch / "merging"
    for name, models in (("a", range(150)), ("b", range(150, 300))):
        eg.run(plan, out=home / name, executor=InProcess(), models=models)
    start = time.perf_counter()
    expected = eg.merge([home / "a", home / "b"], out=home / "whole").done
    takes = time.perf_counter() - start
    words = [sys.executable, "-c", MERGE, str(home / "a"), str(home / "b")]
    for i in range(n):
        out = home / f"killed-{i}"
        with subprocess.Popen([*words, str(out)], stdout=subprocess.PIPE) as child:
            child.stdout.read(1)  # type: ignore[union-attr]
            time.sleep(float(rng.random()) * 2 * takes)
            child.kill()
        count.tried += 1
        try:
            if not out.exists():
                eg.merge([home / "a", home / "b"], out=out)
            if not np.array_equal(eg.Run.open(out).done, expected):
                count.bad("wrong", f"merge {i} (seed {seed}) has other models")
        except EpsgaugeError as error:
            count.bad("lost", f"merge {i} (seed {seed}): {error}")
    eg.merge([home / "a", home / "b"], out=home / "last")
    left = [path.name for path in home.iterdir() if path.name.startswith(".")]
    if left:
        count.bad("wrong", f"killed merges left {left}")
    return count


def uploads(n: int, seed: int, scratch: Path) -> Count:
    """Files of which a part is sent; the viewer answers the next request, and prints nothing."""
    rng, count = np.random.default_rng(seed), Count("uploads that break off")
    (scratch / "viewed").mkdir()
    body = b"bit,score\n" + b"1,0.5\n" * 2000
    command = [sys.executable, "-u", "-c", VIEW, str(scratch / "viewed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as viewer:
        address = viewer.stdout.readline().split()[-1]  # type: ignore[union-attr]
        port = int(re.findall(r":(\d+)/", address)[0])
        cookie = str(_answer(port, address.partition(str(port))[2], {}).getheader("set-cookie")).partition(";")[0]
        for i in range(n):
            count.tried += 1
            head = f"POST /api/scores?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n"
            head += f"Sec-Fetch-Site: same-origin\r\nContent-Length: {len(body)}\r\n\r\n"
            sent = head.encode() + body[: int(rng.integers(len(body)))]
            with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as sender:
                sender.sendall(sent)
            if i % 10 == 0 and _answer(port, "/", {"Cookie": cookie}).status != 200:
                count.bad("lost", f"after upload {i} (seed {seed}) the viewer did not answer")
        if _answer(port, "/", {"Cookie": cookie}).status != 200:
            count.bad("lost", f"after all uploads (seed {seed}) the viewer did not answer")
        viewer.send_signal(signal.SIGINT)
        _, said = viewer.communicate(timeout=SECONDS)
    if said:
        count.bad("traceback", said[-600:])
    return count


def _answer(port: int, path: str, headers: dict[str, str]):  # type: ignore[no-untyped-def]
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response


def campaign(n: int, seed: int, scratch: Path) -> list[Count]:
    return [merges(min(n, 50), seed, scratch), uploads(n, seed, scratch)]
