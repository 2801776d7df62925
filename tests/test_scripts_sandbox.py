"""Scripts in a sandbox: they see what they write, and no file of the user changes."""

import os
import subprocess

import pytest
from in_sandbox import sandboxed, user_folder


@pytest.fixture
def home(tmp_path):
    return user_folder(tmp_path)


PLAIN = """
    import csv, glob, io, json, logging, os, pickle, shutil, sqlite3, sys, tempfile
    from pathlib import Path

    with open("data.csv") as file:
        assert file.read() == "a,b\\n1,2\\n"
    with open("data.csv", "w") as file:
        csv.writer(file).writerow([3, 4])
    assert Path("data.csv").read_text().strip() == "3,4"
    with open("notes.log", "a") as log:
        log.write("second\\n")
    assert Path("notes.log").read_text() == "first\\nsecond\\n"
    with open("kept.txt", "r+") as file:
        file.seek(0, 2)
        file.write(" and more")
    assert open("link.txt").read() == "kept and more"
    Path("link.txt").write_text("through a link")
    assert open("kept.txt").read() == "through a link" and os.path.islink("link.txt")

    try:
        open("kept.txt", "x")
        raise AssertionError
    except FileExistsError as error:
        assert "scratch" not in str(error), error
    try:
        open("missing/new.txt", "w")
        raise AssertionError
    except FileNotFoundError as error:
        assert "scratch" not in str(error), error

    shutil.rmtree("checkpoints/old")
    assert not os.path.exists("checkpoints/old") and not Path("latest").exists()
    assert sorted(os.listdir("checkpoints")) == ["best.npy", "last.pt", "model.pkl"]
    os.makedirs("checkpoints/old/deep", exist_ok=True)
    assert os.listdir("checkpoints/old") == ["deep"]
    os.remove("checkpoints/last.pt")
    assert not Path("checkpoints/last.pt").is_file()
    assert glob.glob("checkpoints/*.pt") == [] and list(Path("checkpoints").glob("*.pt")) == []
    try:
        os.stat("checkpoints/last.pt")
        raise AssertionError
    except FileNotFoundError:
        pass

    with tempfile.NamedTemporaryFile(dir="checkpoints", delete=False) as spare:
        pickle.dump([1, 2], spare)
    os.replace(spare.name, "checkpoints/model.pkl")
    assert pickle.load(open("checkpoints/model.pkl", "rb")) == [1, 2]
    with tempfile.NamedTemporaryFile(dir=".", suffix=".tmp") as spare:
        assert glob.glob("*.tmp") == [os.path.basename(spare.name)]
    assert glob.glob("*.tmp") == []
    os.rename("checkpoints", "renamed")
    assert sorted(os.listdir("renamed")) == ["best.npy", "model.pkl", "old"] and not os.path.isdir("checkpoints")
    shutil.move("renamed", "checkpoints")
    shutil.copytree("checkpoints", "Kopie für später")
    shutil.copy("kept.txt", "Kopie für später")
    assert {entry.name: entry.is_dir() for entry in os.scandir("Kopie für später")} == {
        "best.npy": False, "model.pkl": False, "old": True, "kept.txt": False}
    assert sorted(next(os.walk("."))[1]) == ["Kopie für später", "checkpoints", "empty", "latest"]
    os.rmdir("empty")
    os.unlink("latest")
    os.symlink("Kopie für später", "latest")
    Path("latest/inside.txt").write_text("x")
    assert Path("Kopie für später/inside.txt").read_text() == "x" == Path("latest/inside.txt").read_text()
    os.chmod("kept.txt", 0o600)
    os.utime("notes.log", (1, 1))
    os.truncate("kept.txt", 3)
    assert os.stat("kept.txt").st_size == 3 and os.path.getmtime("notes.log") == 1
    os.link("kept.txt", "hard.txt")

    connection = sqlite3.connect("runs.db")
    connection.execute("create table if not exists t (a)")
    connection.execute("insert into t values (7)")
    connection.commit()
    connection.close()
    assert sqlite3.connect("file:runs.db?mode=ro", uri=True).execute("select a from t").fetchall() == [(7,)]

    logging.basicConfig(filename="training.log", level="INFO")
    logging.info("ü")
    assert "INFO:root:ü" in Path("training.log").read_text()
    os.mkdir("work")
    os.chdir("work")
    Path("here.txt").write_text("here")
    assert Path.cwd().parent.name == "Müllers Übung 1" and open("../data.csv").read().strip() == "3,4"
    os.chdir("..")
    assert json.loads(json.dumps(sorted(os.listdir("work")))) == ["here.txt"]
    with open(os.devnull, "w") as nothing:
        nothing.write("x")
    print("done")
"""


@pytest.mark.parametrize("locked", [False, True])
def test_a_script_sees_what_it_changes_and_the_user_keeps_it(home, locked):
    error, sandbox = sandboxed(home, PLAIN, locked=locked)
    assert error == ""
    assert sandbox == {"changes": [], "refused": [], "last": "done"}


def test_children_see_the_prelude_and_not_each_other(home):
    first = """
        import os, tempfile
        from pathlib import Path
        Path("prepared.txt").write_text("by the prelude")
        os.remove("kept.txt")
        os.mkdir("out")
        Path("out/0.txt").write_text("prelude")
        cache = Path(tempfile.mkdtemp()) / "cache"
        cache.write_text("0")
        os.environ["CACHE"] = str(cache)
    """
    after = """
        import os, sys, shutil
        from pathlib import Path
        assert Path("prepared.txt").read_text() == "by the prelude"
        assert not Path("kept.txt").exists() and os.listdir("out") == ["0.txt"]
        assert not Path("mine.txt").exists()
        cache = Path(os.environ["CACHE"])
        assert cache.read_text() == "0"
        cache.write_text("changed")
        Path("mine.txt").write_text(sys.argv[1])
        Path("data.csv").write_text(sys.argv[1])
        with open("prepared.txt", "a") as file:
            file.write(sys.argv[1])
        Path("out/1.txt").write_text("child")
        assert sorted(os.listdir("out")) == ["0.txt", "1.txt"]
        shutil.rmtree("out")
        shutil.rmtree("checkpoints")
        assert not Path("out").exists() and sorted(os.listdir()) == [
            "after.py", "data.csv", "empty", "latest", "link.txt", "mine.txt", "notes.log", "prepared.txt", "train.py"]
        assert Path("prepared.txt").read_text() == "by the prelude" + sys.argv[1] and cache.read_text() == "changed"
    """
    assert sandboxed(home, first, after)[:3] == ["", "", ""]


def test_writing_by_other_routes_is_refused(home):
    script = """
        import _io, os, posix, sqlite3
        from pathlib import Path
        here = os.getcwd()
        kept = os.open("kept.txt", os.O_RDONLY)
        folder = os.open(here, os.O_RDONLY)
        attempts = {
            "FileIO": lambda: _io.FileIO(here + "/kept.txt", "w"),
            "posix.open": lambda: posix.open(here + "/kept.txt", os.O_WRONLY),
            "remove": lambda: posix.remove("kept.txt"),
            "remove below a folder": lambda: posix.remove("kept.txt", dir_fd=folder),
            "rename": lambda: posix.rename("kept.txt", "/tmp/x"),
            "mkdir": lambda: posix.mkdir("new"),
            "chmod": lambda: os.chmod(kept, 0o777),
            "Connection": lambda: sqlite3.Connection(here + "/runs.db"),
            "symlink": lambda: posix.symlink("a", "b"),
            "tty": lambda: open("/dev/tty", "r+"),
        }
        for name, attempt in attempts.items():
            try:
                attempt()
            except PermissionError as error:
                assert "outside of its sandbox" in str(error), error
            else:
                raise AssertionError(name)
        os.remove("kept.txt", dir_fd=folder)
        assert not os.path.exists("kept.txt")
    """
    error, sandbox = sandboxed(home, script)
    assert error == ""
    assert len(sandbox["refused"]) == 10


def test_programs_signals_and_the_network_are_refused(home):
    script = """
        import os, platform, signal, socket, subprocess, sys, time
        platform.platform(), platform.processor()
        def refused(call):
            try:
                call()
            except PermissionError as error:
                return str(error)
            raise AssertionError
        orphans, leads = os.pipe()
        if not (leader := os.fork()):
            os.setpgid(0, 0)
            if os.fork():
                os.write(leads, b"1")
                os._exit(0)
            os.closerange(0, 256)
            time.sleep(30)  # in a group whose leader is gone
            os._exit(0)
        os.read(orphans, 1)
        group = leader
        os.waitpid(leader, 0)
        sentences = [
            refused(lambda: subprocess.run(["rm", "-rf", "checkpoints"])),
            refused(lambda: subprocess.check_output("echo x > kept.txt", shell=True)),
            refused(lambda: os.system("rm kept.txt")),
            refused(lambda: os.execv(sys.executable, [sys.executable])),
            refused(lambda: os.kill(os.getppid(), signal.SIGTERM)),
            refused(lambda: os.killpg(os.getpgid(os.getppid()), signal.SIGCONT)),
            refused(lambda: os.killpg(group, signal.SIGTERM)),
            refused(lambda: socket.socket().bind(("0.0.0.0", 8123))),
        ]
        assert os.spawnv(os.P_WAIT, "/bin/rm", ["rm", "kept.txt"]) == 127  # it forks, and the child is refused
        assert "cannot be kept in a sandbox: rm -rf checkpoints" in sentences[0], sentences
        socket.socket().bind(("127.0.0.1", 0))
        if not (pid := os.fork()):
            os.setpgid(0, 0)
            signal.pause()
        os.kill(pid, 0)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        import multiprocessing
        from pathlib import Path
        if __name__ == "__main__":
            for method in ("fork", "spawn", "forkserver"):
                process = multiprocessing.get_context(method).Process(target=Path("kept.txt").write_text, args=[method])
                process.start()
                process.join()
                assert Path("kept.txt").read_text() == method and process.exitcode == 0
            process = multiprocessing.Process(target=signal.pause)
            process.start()
            process.terminate()
            process.join()
            with multiprocessing.Pool(2) as pool:
                assert pool.map(abs, [-1, -2]) == [1, 2]
            import joblib
            assert joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-i) for i in range(3)) == [0, 1, 2]
    """
    child = """
        import socket
        try:
            socket.create_connection(("192.0.2.1", 80), timeout=1)
        except PermissionError as error:
            assert "192.0.2.1:80" in str(error)
        else:
            raise AssertionError
    """
    *errors, sandbox = sandboxed(home, script, child)
    assert errors == ["", "", ""]
    assert len(sandbox["refused"]) == 8


def test_a_script_is_quiet_and_has_no_terminal(home, tmp_path):
    script = """
        import sys, warnings
        from pathlib import Path
        import numpy
        assert Path("elsewhere.txt").exists() is False and Path.cwd().name == "other"
        Path("elsewhere.txt").write_text("x")
        for _ in range(10_000):
            print("x" * 1023)
        assert sys.stdin.read() == "" and not sys.stdout.isatty()
        input("name? ")
    """
    other = tmp_path / "other"
    other.mkdir()
    error, sandbox = sandboxed(home, script, cwd=other)
    assert error == "NeedsTerminal: the script calls input(), but has no terminal: give it the answer as an argument"
    assert list(other.iterdir()) == []
    assert sandbox["last"].endswith(error.removeprefix("NeedsTerminal: "))
    assert (tmp_path / "scratch/stdout.txt").stat().st_size >= 10_240_000


def test_nothing_stays_behind_in_this_process(tmp_path, capfd):
    import builtins
    import sqlite3
    import tempfile

    from epsgauge.scripts.sandbox import sandbox

    before = (builtins.open, os.stat, os.getcwd, sqlite3.connect, builtins.input, dict(os.environ), tempfile.tempdir)
    with sandbox(tmp_path / "scratch") as box:
        (tmp_path / "a.txt").write_text("inside", encoding="utf-8")
        os.write(1, b"quiet")
        with pytest.raises(RuntimeError, match="forked child"):
            box.child_of(tmp_path / "scratch/child")
        assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "inside"
    after = (builtins.open, os.stat, os.getcwd, sqlite3.connect, builtins.input, dict(os.environ), tempfile.tempdir)
    assert before == after
    assert not (tmp_path / "a.txt").exists()
    (tmp_path / "a.txt").write_text("outside", encoding="utf-8")
    assert subprocess.run(["true"], check=True).returncode == 0
    assert capfd.readouterr().out == ""


def test_the_overlay_answers_as_a_file_system_does(home):
    """Random calls on a folder inside, and their twins on a copy in the temporary folder, which is written as it is."""
    script = """
        import os, random, shutil, sys, tempfile
        from pathlib import Path

        def tree(root):
            found = {}
            for folder, folders, files in os.walk(root):
                for name in folders + files:
                    path = os.path.join(folder, name)
                    found[os.path.relpath(path, root)] = (
                        os.readlink(path) if os.path.islink(path) else Path(path).is_dir() or Path(path).read_text())
            return found

        def call(what, root, a, b):
            a, b = os.path.join(root, a), os.path.join(root, b)
            try:
                match what:
                    case "write": Path(a).write_text(what)
                    case "append":
                        with open(a, "a") as file:
                            file.write(what)
                    case "update":
                        with open(a, "r+") as file:
                            file.write("U")
                    case "new": open(a, "x").close()
                    case "read": return Path(a).read_text()
                    case "list": return sorted(os.listdir(a))
                    case "scan": return sorted((e.name, e.is_dir(follow_symlinks=False)) for e in os.scandir(a))
                    case "kind": return os.path.isdir(a), os.path.isfile(a), os.path.lexists(a), os.path.islink(a)
                    case "real": return os.path.relpath(os.path.realpath(a), os.path.realpath(root))
                    case "size": return os.path.isfile(a) and os.stat(a).st_size
                    case "truncate": os.truncate(a, 1)
                    case "link": os.symlink(os.path.basename(b), a)
                    case "rename": os.replace(a, b)
                    case "move": shutil.move(a, b) and None
                    case "copy": shutil.copy(a, b) and None
                    case "tree": shutil.copytree(a, b) and None
                    case "rmtree": shutil.rmtree(a)
                    case name: getattr(os, name)(a)
            except (OSError, shutil.Error) as error:
                return type(error).__name__

        def is_below(b, a):
            return os.path.realpath(os.path.join(twin, b)).startswith(os.path.realpath(os.path.join(twin, a)))

        inside, twin = "root", os.path.join(tempfile.mkdtemp(), "root")
        draw = random.Random(sys.argv[-1][-1])
        shutil.copytree(inside, twin, symlinks=True)
        names = [f"{a}{b}" for a in ("", "a/", "b/", "a/b/", "l/") for b in "abl"] + ["a/b/c/d"]
        calls = ("write append update new read list scan kind real size truncate link rename move copy tree rmtree "
                 "mkdir makedirs remove rmdir readlink").split()
        done = []
        for _ in range(150):
            what, a, b = draw.choice(calls), draw.choice(names), draw.choice(names)
            if what == "tree" and (len(tree(twin)) > 20 or is_below(b, a)):
                continue  # it would not end
            done.append((what, a, b, call(what, inside, a, b), call(what, twin, a, b)))
            assert done[-1][3] == done[-1][4], done[-8:]
            assert tree(inside) == tree(twin), (done[-8:], tree(inside), tree(twin))
    """
    for folder in ("root/a/b", "root/b"):
        (home / folder).mkdir(parents=True)
    for file in ("root/a/a", "root/a/b/a", "root/b/b"):
        (home / file).write_text(file, encoding="utf-8")
    (home / "root/l").symlink_to("a")
    assert sandboxed(home, script, script)[:3] == ["", "", ""]
