"""Small files that unpack to more than a machine has: refused in little memory, by every reader."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from faults.count import SECONDS, Count

ROWS = 600_000_000
ROOM = 2 * 2**30  # bytes of address space that a reader gets, and each process that it starts
READ = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({ROOM}, {ROOM}))
import epsgauge as eg
tool, path = sys.argv[1:]
try:
    if tool:
        eg.import_scores(path, tool=tool, adjacency="add-remove", models=None if tool == "privacy-meter" else "one")
    else:
        eg.Scores.read(path, adjacency="substitute", models="one")
except eg.InvalidInput as error:
    print(error)
    sys.exit(2)
"""


def header(rows: int) -> bytes:
    """Of an array as NumPy writes it."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows},)}}\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def npz(path: Path, names: tuple[str, ...], rows: int) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in names:
            out.writestr(f"{name}.npy", header(rows) + bytes(8 * rows if rows < 10**7 else 0))


def parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = pa.array([0]).take(pa.array([0] * 10**6, pa.int32()))
    column = pa.chunked_array([flat] * 30)
    pq.write_table(pa.table({"bit": column, "score": column}), path, row_group_size=10**7)


def stream(path: Path, kind: str) -> None:
    """Of privacy-estimates: two datasets."""
    import pyarrow as pa

    runs = pa.RunEndEncodedArray.from_arrays(pa.array([ROWS], pa.int32()), pa.array([0.5]))
    for folder, column in (("scores", "score"), ("challenge_bits", "challenge_bit")):
        (path / folder).mkdir(parents=True)
        batch = pa.record_batch([runs if kind == "runs" else pa.nulls(ROWS)], names=[column])
        with pa.ipc.new_stream(str(path / folder / "data.arrow"), batch.schema) as out:
            out.write_batch(batch)


def many_models(path: Path) -> None:
    path.mkdir()
    for model in range(30):
        npz(path / f"attack_result_{model}.npz", ("scores", "memberships"), 10**6)


# what it is -> the tool that wrote it, if any, the name of its file, and how it is made
CASES: dict[str, tuple[str, str, Callable[[Path], object]]] = {
    "counts": (
        "privacy-estimates",
        "counts.json",
        lambda path: path.write_text(json.dumps(dict.fromkeys(("TP", "FP", "TN", "FN"), ROWS))),
    ),
    "a stream of nothing": ("privacy-estimates", "nulls", lambda path: stream(path, "nulls")),
    "a stream of runs": ("privacy-estimates", "runs", lambda path: stream(path, "runs")),
    "runs of one value": ("", "a.parquet", parquet),
    "a header": ("", "a.npz", lambda path: npz(path, ("bit", "score"), ROWS)),
    "a header of a tool": ("jax-privacy", "b.npz", lambda path: npz(path, ("in_canary_scores",), ROWS)),
    "many models": ("privacy-meter", "models", many_models),
    "many numbers": (
        "jax-privacy",
        "a.json",
        lambda path: path.write_text(f'{{"in_canary_scores": [{"1," * 50_000_000}1], "out_canary_scores": [0]}}'),
    ),
}


def campaign(scratch: Path) -> list[Count]:
    count = Count("files that expand")
    for what, (tool, name, make) in CASES.items():
        path = scratch / f"expanding-{name}"
        make(path)
        count.tried += 1
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                [sys.executable, "-c", READ, tool, str(path)],
                capture_output=True,
                text=True,
                timeout=10 * SECONDS,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            count.bad("hung", what)
            continue
        count.refused += done.returncode == 2
        if done.returncode == 0:
            count.bad("wrong", f"{what} was read")
        elif done.returncode != 2:
            count.bad("traceback", f"{what}: exit {done.returncode}\n{done.stderr[-600:]}")
    return [count]
