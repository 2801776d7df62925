"""A short form of `make faults`: what is broken on purpose is refused with a sentence, or changes no answer."""

import pytest

from faults import broken_off, clusters, commands, directories, expanding, forgeries, readers, stores
from faults.count import Count


def check(counts, tried, *, refused=0):
    for count in counts:
        assert count.tried == tried, count.fault
        assert count.refused >= refused, count.fault
        assert count.harmless, count.examples


def test_mutations_of_a_store(tmp_path):
    check(stores.campaign(40, 0, tmp_path), 40, refused=13)


def test_forgeries(tmp_path):
    edits, turned, killed = forgeries.campaign(20, 0, tmp_path)
    check([edits], 3 * len(forgeries.EDITS), refused=2 * (len(forgeries.EDITS) - 1))
    check([turned], 20, refused=15)
    check([killed], 20)


def test_mutations_of_files(tmp_path):
    check(readers.campaign(8, 0, tmp_path), 8)


def test_command_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = stores.a_run(tmp_path / "run")
    check(commands.campaign(40, 0, tmp_path, run), 40, refused=10)


def test_hostile_directories(tmp_path, monkeypatch):
    """One command, and the worst of them: the others are in tests of their own."""
    monkeypatch.setattr(directories, "COMMANDS", (["status"],))
    worst = ("run.lock is a pipe", "store.sqlite is a link", "meta never ends")
    monkeypatch.setattr(directories, "CASES", {what: directories.CASES[what] for what in worst})
    run, named = stores.a_run(tmp_path / "run"), stores.a_run(tmp_path / "named", directories.NAME)
    hostile, shown = directories.campaign(run, named, tmp_path)
    check([hostile], 3, refused=2)
    check([shown], 1)


@pytest.mark.long
def test_clusters_without_a_head_and_workers_that_are_stopped(tmp_path):
    counts = clusters.campaign(tmp_path)
    check(counts, 1)
    assert all(count.refused == 1 for count in counts if "stopped (" not in count.fault)


def test_files_that_expand(tmp_path, monkeypatch):
    """Those that take a second: a stream, a header, and counts."""
    few = ("counts", "a stream of runs", "a header of a tool")
    monkeypatch.setattr(expanding, "CASES", {what: expanding.CASES[what] for what in few})
    check(expanding.campaign(tmp_path), 3, refused=3)


def test_what_breaks_off(tmp_path):
    check(broken_off.campaign(3, 0, tmp_path), 3)


@pytest.mark.parametrize(
    ("answer", "harm"),
    [(lambda: 1 / 0, "traceback"), (lambda: "another", "wrong"), (lambda: stores.np.zeros(1)[2], "traceback")],
)
def test_harm_is_counted(answer, harm):
    count = Count("a fault")
    count.read(answer, "the same", "example")
    assert (count.tried, getattr(count, harm), count.harmless) == (1, 1, False)
