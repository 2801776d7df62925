"""Scripts that run in a sandbox, in their own processes, and a proof that no file of the user changed."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import epsgauge

SOURCE = str(Path(epsgauge.__file__).parents[1])
# Runs a script, then in forked children another one; prints what happened.
RUN = """
import json, os, runpy, sys, traceback
from pathlib import Path
from epsgauge.scripts.sandbox import last_lines, sandbox

scratch, locked, *scripts = sys.argv[1:]
scratch, out = Path(scratch), os.dup(1)

def run(script, *args):
    sys.argv = [script, *args]
    try:
        runpy.run_path(script, run_name="__main__")
    except BaseException as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return ""

told = []
with sandbox(scratch, locked=locked == "locked") as box:
    told.append(run(scripts[0]))
    for number in range(2 if len(scripts) > 1 else 0):
        read, write = os.pipe()
        if not (pid := os.fork()):
            box.child_of(scratch / f"child {number}")
            error = run(scripts[1], str(number))
            sys.stdout.flush()
            os.write(write, error.encode())
            os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        told.append(os.read(read, 65536).decode())
    told.append({"changes": box.changes, "refused": box.refused})
told[-1]["last"] = last_lines(scratch)
os.write(out, json.dumps(told).encode())
"""


def digest(folder):
    """Content, mode and time of every file."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else os.path.islink(path)
        found[str(path.relative_to(folder))] = (content, status.st_mode, status.st_mtime_ns)
    return found


def user_folder(tmp_path):
    """A user's folder with everything in it that a script could spoil."""
    home = tmp_path / "Müllers Übung 1"
    (home / "checkpoints/old").mkdir(parents=True)
    (home / "empty").mkdir()
    (home / "data.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (home / "notes.log").write_text("first\n", encoding="utf-8")
    (home / "kept.txt").write_text("kept", encoding="utf-8")
    for name in ("last.pt", "best.npy", "model.pkl", "old/1.pt", "old/2.pt"):
        (home / "checkpoints" / name).write_bytes(b"of the user")
    (home / "latest").symlink_to("checkpoints/old")
    (home / "link.txt").symlink_to("kept.txt")
    return home


def sandboxed(home, script, after=None, *, cwd=None, locked=False):
    """What the script's processes told: errors of the first and its children, then the sandbox."""
    scripts = []
    for name, text in (("train.py", script), ("after.py", after)):
        if text is not None:
            (home / name).write_text(textwrap.dedent(text), encoding="utf-8")
            scripts.append(str(home / name))
    before = digest(home)
    command = [sys.executable, "-c", RUN, str(home.parent / "scratch"), "locked" if locked else "", *scripts]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE}
    done = subprocess.run(command, cwd=cwd or home, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    shown = [path.read_text(encoding="utf-8")[-3000:] for path in home.parent.glob("scratch/**/stderr.txt")]
    print(*shown)  # noqa: T201  # pytest shows it if the test fails
    assert digest(home) == before
    return json.loads(done.stdout)
