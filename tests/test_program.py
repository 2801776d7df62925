"""A program in any language as a trainer: files, arguments, errors, and nothing left running."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from patience import until

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.trainers.program import SHOWN, Program, ProgramFailed
from epsgauge.trainers.protocol import Observer, as_trainer, knows_size, observed

DATA = (np.array([[0.1, 1.0], [2.0, 3.0], [4.0, 1 / 3]], dtype=np.float32), np.array([0, 1, 1]))
POINTS = (np.array([[0.1, 1.0], [-7.5, 1e-30]], dtype=np.float32), np.array([0, 1]))
# Loss of a point: squared distance to the mean of the training points, and the seed's last digit on top.
AWK = (
    "FNR == NR { for (i = 1; i <= 2; i++) mean[i] += $i; n++; next } "
    '{ d = 0; for (i = 1; i <= 2; i++) d += ($i - mean[i] / n) ^ 2; printf "%.17g\\n", d + seed % 10 > out }'
)


def script(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_a_python_program_with_arrays(tmp_path):
    path = script(
        tmp_path,
        """
        import os, pathlib, sys
        import numpy as np
        folder = pathlib.Path(sys.argv[1])
        x, y, points, labels = (np.load(folder / f) for f in
                                ("train_0.npy", "train_1.npy", "points_0.npy", "points_1.npy"))
        assert x.dtype == np.float32 and x.shape == (3, 2) and y.tolist() == [0, 1, 1] and labels.tolist() == [0, 1]
        seed, size = int(sys.argv[2]), int((folder / "size.txt").read_text(encoding="utf-8"))
        assert seed == int((folder / "seed.txt").read_text(encoding="utf-8")) == int(os.environ["EPSGAUGE_SEED"])
        assert size == int(os.environ["EPSGAUGE_SIZE"]) == 4
        assert os.getcwd() == sys.argv[3]
        np.save(folder / "losses.npy", ((points - x.mean(0)) ** 2).sum(1) + seed % 10)
        """,
    )
    program = Program(command=["{python}", path, "{folder}", "{seed}", os.getcwd()], format="npy")
    losses = observed(program, DATA, POINTS, 2, seed=123, size=4)["loss"]
    np.testing.assert_allclose(losses, ((POINTS[0] - DATA[0].mean(0)) ** 2).sum(1) + 3, rtol=1e-6)


def test_an_awk_program_with_text():
    """Its braces are its own; only {folder}, {seed}, {size} and {python} are replaced."""
    command = ["awk", "-F,", "-v", "seed={seed}", "-v", "out={folder}/losses.csv", AWK]
    program = Program(command=[*command, "{folder}/train.csv", "{folder}/points.csv"])
    losses = program.observe(DATA, POINTS, seed=123)
    expected = ((POINTS[0].astype(float) - DATA[0].astype(float).mean(0)) ** 2).sum(1) + 3
    np.testing.assert_allclose(losses, expected, rtol=1e-12)
    assert isinstance(program, Observer)
    assert as_trainer(program, "program") is program
    assert knows_size(program)


def test_the_text_files_hold_the_very_numbers(tmp_path):
    copy = Program(
        command=["/bin/sh", "-c", 'cp "$0"/*.csv "$1"; printf "1\\n2\\n" > "$0/losses.csv"', "{folder}", str(tmp_path)]
    )
    texts = (POINTS[0], np.array(["yes, and", 'a "no"']))
    assert copy.observe(DATA, texts, seed=0).tolist() == [1.0, 2.0]
    rows = np.loadtxt(tmp_path / "train.csv", delimiter=",")
    np.testing.assert_array_equal(rows[:, :2].astype(np.float32), DATA[0])
    np.testing.assert_array_equal(rows[:, 2], DATA[1])
    assert (tmp_path / "points.csv").read_text(encoding="utf-8").splitlines()[
        1
    ] == '-7.5,1.0000000031710769e-30,"a ""no"""'


def test_nothing_reads_an_argument_as_shell(tmp_path):
    mark = tmp_path / "mark"
    program = Program(command=["printf", "%s", f"; touch {mark} $(touch {mark}) `touch {mark}`"])
    with pytest.raises(
        ProgramFailed, match=r"losses must be written to losses\.csv in its folder, but there is no such"
    ):
        program.observe(DATA, POINTS, seed=0)
    assert not mark.exists()


def ended(pid):
    """Whether a process has ended; a zombie that nobody has waited for has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ends(pid):
    """The kernel may take a moment."""
    until(lambda: ended(pid), f"process {pid} ends")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_timeout_kills_the_program_and_its_children(tmp_path, monkeypatch):
    """Both ignore SIGTERM, and the child holds the output open. The time begins once they are there."""
    pids, wait = tmp_path / "pids", subprocess.Popen.wait

    def wait_for_both(process, timeout=None):
        until(pids.exists, "the program starts")
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", wait_for_both)
    line = f"trap '' TERM; echo started; sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"
    with pytest.raises(ProgramFailed) as caught:
        Program(command=["/bin/sh", "-c", line], timeout=0.1).observe(DATA, POINTS, seed=0)
    assert "must end within timeout = 0.1 seconds, but it was still running and has been killed" in str(caught.value)
    assert str(caught.value).endswith("Its output ends with:\nstarted")
    numbers = [int(n) for n in pids.read_text(encoding="utf-8").split()]
    assert len(numbers) == 2
    for number in numbers:
        ends(number)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("while_it_starts", [False, True])
def test_ctrl_c_kills_the_program(tmp_path, while_it_starts):
    """A real SIGINT to a Python that waits for a program, or that is about to."""
    pid, go_on = tmp_path / "pid", tmp_path / "go on"
    code = f"""
import os, signal, subprocess, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts tests in the background ignores it
import numpy as np
from epsgauge.trainers.program import Program
class Slow(subprocess.Popen):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        while not os.path.exists({str(go_on)!r}):
            time.sleep(0.01)
subprocess.Popen = Slow
data = (np.zeros((2, 1)), np.zeros(2))
command = ["/bin/sh", "-c", "echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 600"]
Program(command=command).observe(data, data, seed=0)
"""
    if not while_it_starts:
        go_on.touch()
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, encoding="utf-8")
    until(lambda: pid.exists() or parent.poll() is not None, "the program starts")
    assert parent.poll() is None, parent.stderr.read()
    parent.send_signal(signal.SIGINT)
    go_on.touch()
    _, said = parent.communicate()
    assert "KeyboardInterrupt" in said
    ends(int(pid.read_text(encoding="utf-8")))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_child_does_not_outlive_a_program_that_ended_well(tmp_path):
    pid = tmp_path / "pid"
    line = f'sleep 600 & echo $! > {pid}; printf "1\\n2\\n" > "$0/losses.csv"'
    assert Program(command=["/bin/sh", "-c", line, "{folder}"]).observe(DATA, POINTS, seed=0).tolist() == [1.0, 2.0]
    ends(int(pid.read_text(encoding="utf-8")))


SH = ["/bin/sh", "-c"]


@pytest.mark.parametrize(
    ("command", "settings", "message"),
    [
        (
            [*SH, "echo out of luck >&2; exit 7"],
            {},
            "but it ended with exit code 7. Its output ends with:\nout of luck",
        ),
        ([*SH, "kill -SEGV $$"], {}, "but it ended with signal SIGSEGV. It wrote no output."),
        ([*SH, "echo 1 > $0/losses.csv", "{folder}"], {}, "one number for each of the 2 points, but holds 1."),
        ([*SH, "printf '1\\n\\nlow\\n' > $0/losses.csv", "{folder}"], {}, "one number per line, but line 3 is 'low'."),
        ([*SH, "printf '1,2\\n' > $0/losses.csv", "{folder}"], {}, "one number per line, but line 1 is '1,2'."),
        (
            [*SH, "echo x > $0/losses.npy", "{folder}"],
            {"format": "npy"},
            "losses.npy must be an array of numbers, but: ",
        ),
        ([*SH, ": > $0/losses.npy", "{folder}"], {"format": "npy"}, "losses.npy must be an array of numbers, but: "),
        (["{python}", "-c", "pass"], {"format": "npy"}, "losses must be written to losses.npy in its folder"),
    ],
)
def test_programs_that_fail(command, settings, message):
    with pytest.raises(ProgramFailed) as caught:
        Program(command=command, **settings).observe(DATA, POINTS, seed=0)
    assert message in str(caught.value)
    assert isinstance(caught.value, EpsgaugeError)


def test_only_the_end_of_a_long_output_is_shown():
    with pytest.raises(ProgramFailed) as caught:
        Program(command=["awk", 'BEGIN { for (i = 0; i < 9999; i++) print "line é", i; exit 3 }']).observe(
            DATA, POINTS, seed=0
        )
    shown = str(caught.value).partition("ends with:\n")[2]
    assert len(shown) == SHOWN
    assert shown.endswith("line é 9998")


def test_losses_that_are_pickles_are_not_read(tmp_path):
    path = script(
        tmp_path,
        "import numpy as np, sys; np.save(sys.argv[1] + '/losses.npy', np.array([{}, {}], dtype=object))",
    )
    with pytest.raises(ProgramFailed, match=r"losses\.npy must be an array of numbers"):
        Program(command=["{python}", path, "{folder}"], format="npy").observe(DATA, POINTS, seed=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Program(command="python x.py"),
            "command must be a list of arguments, as no shell reads it, but got 'py",
        ),
        (lambda: Program(command=[]), "command must be a list of arguments, the program first, but got []"),
        (
            lambda: Program(command=["ls", 1]),
            "command must be a list of arguments, the program first, but got ['ls', 1]",
        ),
        (lambda: Program(command=["ls"], timeout=0), "timeout must be above 0, but got 0"),
        (lambda: Program(command=["ls"], format="json"), 'format must be "csv" or "npy", but got \'json\''),
        (
            lambda: Program(command=["no-such-program"]).observe(DATA, POINTS, seed=0),
            "command must be a program that can be started, but 'no-such-program': ",
        ),
        (
            lambda: Program(command=["ls"], format="npy").observe((np.array([{}]),), POINTS, seed=0),
            "array 0 of the data must be numbers or texts for .npy files",
        ),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value)


def test_a_worker_that_ends_takes_its_programs_with_it(tmp_path):
    """A worker whose parent was killed ends without `finally`: what it has started must not go on."""
    code = f"""
import os, threading, time
from epsgauge.trainers import leaving, program
trainer = program.Program(command=["/bin/sh", "-c", "echo $$ > {tmp_path}/pid; sleep 600"])
threading.Thread(target=lambda: trainer.observe(([1.0],), ([1.0],), seed=0), daemon=True).start()
while not (os.path.exists("{tmp_path}/pid") and open("{tmp_path}/pid").read().strip()):
    time.sleep(0.01)
leaving.end_all()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    ends(int((tmp_path / "pid").read_text(encoding="utf-8")))
