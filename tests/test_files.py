"""Every file that is written: whole or not at all, never through a link, and after the look is logged."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ask, refused, told
from tiny_runs import plan, played

import epsgauge as eg
from epsgauge import files
from epsgauge.runner.view import Run

COUNTS = ("--tp", "31", "--tn", "996", "--fp", "5", "--fn", "968", "--delta", "1e-5")
posix = pytest.mark.skipif(sys.platform == "win32", reason="links and rights as on Unix")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files") / "run"
    played(plan(), folder)
    return folder


# what writes a file -> its name, and the command
WRITERS = {
    "export csv": ("a.csv", lambda run, out: ("export", run, "-o", out)),
    "export npz": ("a.npz", lambda run, out: ("export", run, "-o", out)),
    "report html": ("a.html", lambda run, out: ("report", run, "-o", out)),
    "report md": ("a.md", lambda run, out: ("report", run, "-o", out)),
    "report of scores": ("a.json", lambda run, out: ("estimate", *COUNTS, "--report", out)),
    "figure": ("a.svg", lambda run, out: ("estimate", *COUNTS, "--figure", out)),
    "compare": ("b.svg", lambda run, out: ("compare", run, run, "--figure", out)),
}
FULL = OSError(28, "No space left on device")


def left(folder):
    return sorted(path.name for path in folder.iterdir())


@posix
@pytest.mark.parametrize("writer", WRITERS)
def test_a_link_is_replaced_and_not_followed(writer, folder, tmp_path):
    name, command = WRITERS[writer]
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / name).symlink_to(precious)
    assert told(*command(folder, tmp_path / name)).returncode == 0
    assert precious.read_text(encoding="utf-8") == "mine"
    assert not (tmp_path / name).is_symlink()
    assert (tmp_path / name).stat().st_size > 100
    assert left(tmp_path) == sorted([name, "precious"])


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(os, "fsync", lambda number: done.append(os.fstat(number).st_size))
    monkeypatch.setattr(os, "replace", lambda spare, file: done.append(file.name))
    files.replace(tmp_path / "a", "whole")
    assert done == [5, "a"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_cannot_be_finished_leaves_the_old_one(writer, folder, tmp_path, monkeypatch):
    name, command = WRITERS[writer]
    (tmp_path / name).write_text("old")

    def full(*args):
        raise FULL

    monkeypatch.setattr("os.replace", full)
    assert "No space left on device" in refused(*command(folder, tmp_path / name))
    assert (tmp_path / name).read_text(encoding="utf-8") == "old"
    assert left(tmp_path) == [name]


@posix
def test_new_files_are_not_written_through_links(tmp_path):
    precious = tmp_path / "precious"
    (tmp_path / "scores.plan").symlink_to(precious)
    said = refused("declare", tmp_path / "scores.plan", "--adjacency", "substitute")
    assert "exists, and a declaration is never replaced" in said
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "plan.toml").symlink_to(precious)
    assert "cannot be written: File exists." in refused("init", tmp_path / "new")
    assert not precious.exists()


def test_nothing_is_left_of_a_new_file_that_cannot_be_finished(tmp_path):
    class Full(str):
        def encode(self, *args):
            raise FULL

    with pytest.raises(OSError, match="No space"):
        files.create(tmp_path / "a", Full("x"))
    assert left(tmp_path) == []


@posix
def test_who_may_read_a_file_stays_and_pipes_are_written_to(tmp_path, monkeypatch):
    path = tmp_path / "a"
    files.replace(path, "one")
    path.chmod(0o600)
    files.replace(path, b"two")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"two", 0o600)
    files.replace(Path(os.devnull), "nothing")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    long = tmp_path / ("n" * 255)
    files.replace(long, "whole")
    assert long.read_text(encoding="utf-8") == "whole"
    files.replace(tmp_path / "b", os.fsdecode(b"caf\xe9"))  # the name of a folder
    assert (tmp_path / "b").read_text(encoding="utf-8") == "caf\\udce9"
    monkeypatch.chdir(tmp_path)
    for nowhere in (tmp_path, Path(".")):
        with pytest.raises(OSError, match=r"directory|busy|Device"):
            files.replace(nowhere, "x")


@posix
def test_standard_output_is_a_file_as_any_other(tmp_path):
    here = tmp_path / "stdout"
    here.symlink_to("/proc/self/fd/1")
    if not here.exists():
        pytest.skip("no /proc")
    code = f"from pathlib import Path; from epsgauge.files import replace; replace(Path({str(here)!r}), 'said')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert (done.stdout, done.stderr, here.is_symlink()) == ("said", "", True)


@pytest.mark.parametrize(("command", "name"), [("export", "a.csv"), ("report", "a.html"), ("report", "a.json")])
def test_the_look_is_logged_before_results_are_written(command, name, folder, tmp_path, monkeypatch):
    before = len(Run.open(folder).looks)
    seen, real = [], os.replace

    def watched(spare, file):
        if Path(file).parent == tmp_path:
            seen.append(len(Run.open(folder).looks))
        return real(spare, file)

    monkeypatch.setattr("os.replace", watched)
    ask(command, folder, "-o", tmp_path / name)
    assert seen == [before + 1]


@posix
def test_a_probe_is_saved_so_too(tmp_path):
    found = eg.Probe(
        eg.DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=3), 1e-5, "add-remove", None, None, None, (), 1, 0.5
    )
    (tmp_path / "probe.json").symlink_to(tmp_path / "precious")
    found.save(tmp_path / "probe.json")
    assert left(tmp_path) == ["probe.json"]
    assert eg.Probe.read(tmp_path / "probe.json") == found
    with pytest.raises(eg.InvalidInput, match="could not be written"):
        found.save(tmp_path)


def test_a_file_that_cannot_be_replaced_is_written_as_it_is(tmp_path, monkeypatch):
    """One that is mounted by itself, as containers do."""
    file = tmp_path / "report.html"
    file.write_text("old")
    number = file.stat().st_ino

    def busy(*_):
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "replace", busy)
    files.replace(file, "new")
    assert (file.read_text(encoding="utf-8"), file.stat().st_ino, [f.name for f in tmp_path.iterdir()]) == (
        "new",
        number,
        [file.name],
    )
    with pytest.raises(OSError, match="busy"):
        files.replace(tmp_path / "another", "new")
