"""Probe the scripts of examples/scripts, right and with bugs from public code: what is found, missed and alarmed.

    python tools/probe_scripts.py [--only mnist_like …]

Prints the codes of each probe, its CPU time, and the ratio to a plain run of one epoch. Exits with 1 after an alarm.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent.parent
sys.path.insert(0, str(HERE / "tests" / "scripts"))

from bugs import BUGS, LATER, broken, right  # noqa: E402

from epsgauge.errors import EpsgaugeError  # noqa: E402
from epsgauge.scripts.messages import Order  # noqa: E402
from epsgauge.scripts.session import probe_script  # noqa: E402

MORE = {"plain_torch": {"data": "train_x,train_y"}}


def used() -> float:
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    return now.ru_utime + now.ru_stime


def plain(file: Path, epochs: str) -> float:
    """CPU seconds of the script by itself."""
    before, one = used(), {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, str(file), "--epochs", epochs]
    subprocess.run(words, cwd=file.parent, env={**os.environ, **one}, capture_output=True, check=True)
    return used() - before


def probed(script: str, file: Path, epochs: str) -> tuple[list[str], float]:
    """Codes, or an error, and CPU seconds."""
    before = used()
    try:
        found = probe_script(Order(str(file), ("--epochs", epochs), **MORE.get(script, {})))
        codes = [finding.code for finding in found.refuted]
    except EpsgaugeError as error:
        codes = [f"error: {error}"]
    return codes, used() - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(BUGS), default=list(BUGS), metavar="SCRIPT")
    found = bugs = alarms = 0
    for script in parser.parse_args().only:
        for bug in (None, *BUGS[script]):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, f"{script}.py")
                file.write_text(right(script) if bug is None else broken(script, bug), encoding="utf-8")
                epochs = "3" if (script, bug) in LATER else "1"
                codes, seconds = probed(script, file, epochs)
                left = sorted(path.name for path in Path(folder).iterdir())
                ratio = "" if bug is not None else f", {seconds / plain(file, epochs):.1f} times the script"
            said = ", ".join(codes) or ("no alarm" if bug is None else "MISSED")
            print(f"{script:<16}{bug or 'right':<38}{seconds:6.1f} s of CPU{ratio}  {said}", flush=True)
            if left != [f"{script}.py"]:
                print(f"  FILES LEFT: {left}")
            error = bool(codes) and codes[0].startswith("error")
            bugs, found = bugs + (bug is not None), found + (bug is not None and bool(codes) and not error)
            alarms += bug is None and bool(codes)
    print(f"bugs found: {found} of {bugs}; alarms on right scripts: {alarms}")
    return alarms > 0


if __name__ == "__main__":
    sys.exit(main())
