"""Fuzz of every file that is read: bytes that turn, stretches that are missing, and values that nobody would write."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import epsgauge as eg
from epsgauge.auditing.beforehand import declaration_of
from epsgauge.data.idx import read_idx
from epsgauge.scores.importers.source import Source
from epsgauge.trainers.exchange import read_losses
from faults.count import Count
from faults.stores import BYTES

N = 200  # rows of scores, or losses
NASTY = (
    "nan", "-inf", "1e400", "-1", "0", "1e-400", "9" * 5000, '""', '"\\u0000"', '"[/x]"', "true", "[]", "[" * 2000,
    "{}", '"' + "x" * 200_000 + '"', "1979-05-27T07:32:00Z", "'\x1b]52;c;aGk=\x07'", "\ud800", "\u202e", "[[a]]",
)  # fmt: skip
PLAN = """name = "a"
seed = 0
n_models = 40
data = "digits"
trainer = { use = "dpsgd", model = "logistic", epochs = 1, batch_size = 50, noise_multiplier = 1.0 }
[game]
train_size = 500
reference_size = 19
[adversary]
sees = "losses"
[audit]
delta = 1e-5
level = 0.95
claimed_eps = 3.0
claimed_delta = 1e-5
claimed_adjacency = "substitute"
[execution]
workers = 2
"""


def scores() -> eg.Scores:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, N)
    return eg.Scores(np.arange(N), np.zeros(N, np.int64), bits, rng.normal(size=N) + bits, adjacency="substitute")


def idx_file(path: Path) -> None:
    path.write_bytes(b"\0\0\x08\x02" + (20).to_bytes(4) + (10).to_bytes(4) + bytes(range(200)))


def losses_file(path: Path) -> None:
    path.write_text("".join(f"{loss!r}\n" for loss in np.random.default_rng(0).normal(size=N).tolist()))


def of_tool(tool: str) -> Callable[[Path], object]:
    return partial(eg.import_scores, tool=tool, adjacency="add-remove", models="one")


def stream_file(path: Path) -> None:
    import pyarrow as pa

    batch = pa.record_batch([scores().score], names=["score"])
    with pa.ipc.new_stream(str(path), batch.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
        out.write_batch(batch)


def json_file(path: Path, **names: str) -> None:
    """Names of the tool -> columns of the table."""
    path.write_text(json.dumps({name: getattr(scores(), column).tolist() for name, column in names.items()}))


def guesses_file(path: Path) -> None:
    """A result of Privacy Meter 1.0.1, with a list for each threshold."""
    held = scores()
    lists = [(held.score > threshold).astype(int).tolist() for threshold in (-1, 0, 1)]
    path.write_text(json.dumps({"true_labels": held.bit.tolist(), "predicted_labels": lists}))


# file name -> how it is made and how it is read
READERS: dict[str, tuple[Callable[[Path], object], Callable[[Path], object]]] = {
    "scores.csv": (lambda path: scores().write(path), eg.Scores.read),
    "scores.npz": (lambda path: scores().write(path), eg.Scores.read),
    "scores.parquet": (lambda path: scores().write(path), eg.Scores.read),
    "scores.arrow": (stream_file, lambda path: Source(path.parent, "").dataset("score")),
    "leakpro.json": (partial(json_file, signal_values="score", true_labels="bit"), of_tool("leakpro")),
    "guesses.json": (guesses_file, of_tool("privacy-meter")),
    "attack_result_0.npz": (
        lambda path: np.savez(path, scores=scores().score, memberships=scores().bit),
        of_tool("privacy-meter"),
    ),
    "plan.toml": (lambda path: path.write_text(PLAN), eg.Plan.read),
    "declared.json": (
        lambda path: eg.declare(path, adjacency="substitute", delta=1e-6),
        declaration_of,
    ),
    "images.idx": (idx_file, read_idx),
    "losses.csv": (losses_file, lambda path: read_losses(path.parent, N, "csv")),
}


def campaign(n: int, seed: int, scratch: Path) -> list[Count]:
    """`n` mutations of each kind of file."""
    return [_of_bytes(name, n, seed, scratch) for name in READERS] + [
        _cut(n, seed, scratch),
        _of_plans(n, seed, scratch),
    ]


def _of_bytes(name: str, n: int, seed: int, scratch: Path) -> Count:
    make, read = READERS[name]
    path, rng, count = scratch / name, np.random.default_rng(seed), Count(f"bytes of {name}")
    path.unlink(missing_ok=True)
    make(path)
    raw = path.read_bytes()
    for i in range(n):
        changed = bytearray(raw)
        mutate = BYTES[rng.integers(len(BYTES))]
        if len(changed) >= 2 * 4096 or "page" not in mutate.__name__:
            mutate(changed, rng)
        path.write_bytes(changed)
        count.read(partial(_answered, read, path), True, f"{mutate.__name__} of {name} (seed {seed}, number {i})")
    path.write_bytes(raw)
    return count


def _answered(read: Callable[[Path], object], path: Path) -> bool:
    """A changed digit is another number, which no reader can know."""
    read(path)
    return True


def _cut(n: int, seed: int, scratch: Path) -> Count:
    """Scores that end too early are refused: they would be a smaller audit."""
    rng, count = np.random.default_rng(seed), Count("scores cut short")
    for i in range(n):
        name = ("scores.csv", "scores.npz", "scores.parquet")[i % 3]
        path = scratch / name
        raw = path.read_bytes()
        keep = int(rng.integers(len(raw)))
        path.write_bytes(raw[:keep])
        count.read(lambda path=path: len(eg.Scores.read(path)), N, f"{name} cut after {keep} of {len(raw)} bytes")
        path.write_bytes(raw)
    return count


def _of_plans(n: int, seed: int, scratch: Path) -> Count:
    """Values that nobody would write, keys that are lost or come twice."""
    rng, count, path = np.random.default_rng(seed), Count("values of plan.toml"), scratch / "plan.toml"
    for _ in range(n):
        lines = PLAN.splitlines()
        at = int(rng.integers(len(lines)))
        kind = int(rng.integers(4))
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(int(rng.integers(len(lines))), lines[at])
        else:
            value = NASTY[rng.integers(len(NASTY))]
            lines[at] = f"{lines[at].partition('=')[0]}= {value}" if kind == 2 else f"more = {value}"
        path.write_text("\n".join(lines), encoding="utf-8", errors="surrogatepass")
        count.read(partial(_answered, eg.Plan.read, path), True, f"plan with {lines[min(at, len(lines) - 1)][:80]!r}")
    return count
