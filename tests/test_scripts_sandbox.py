"""Scripts in a sandbox, in their own processes: they see what they write, and no file of the user changes."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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


@pytest.fixture
def home(tmp_path):
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


def test_what_numpy_pandas_and_torch_write_is_read_back(home):
    script = """
        import sys
        import numpy as np, torch
        from pathlib import Path
        torch.save({"a": torch.ones(2)}, "checkpoints/last.pt")
        torch.save([1], Path("checkpoints/ü.pt"))
        assert torch.load("checkpoints/last.pt")["a"].tolist() == [1, 1]
        assert torch.load("checkpoints/last.pt", mmap=True)["a"].tolist() == [1, 1]
        assert torch.load(Path("checkpoints/ü.pt")) == [1]
        np.save("checkpoints/best.npy", np.arange(3))
        np.savez("all.npz", a=np.ones(1))
        np.savetxt("table.txt", np.ones((2, 2)))
        np.ones(2).tofile("raw.bin")
        assert np.load("checkpoints/best.npy").tolist() == [0, 1, 2] and np.load("all.npz")["a"] == 1
        assert np.loadtxt("table.txt").shape == (2, 2) and np.fromfile("raw.bin").tolist() == [1, 1]
        assert np.genfromtxt("data.csv", delimiter=",", skip_header=1).tolist() == [1, 2]
        scripted = torch.jit.script(torch.nn.Linear(2, 2))
        torch.jit.save(scripted, "scripted.pt")
        torch.jit.load("scripted.pt")
        from safetensors.torch import save_file, load_file
        save_file({"a": torch.zeros(1)}, "model.safetensors")
        assert load_file("model.safetensors")["a"] == 0
        import pandas as pd
        pd.DataFrame({"a": [1]}).to_csv("data.csv")
        assert pd.read_csv("data.csv")["a"].tolist() == [1]
    """
    error, sandbox = sandboxed(home, script, script, locked=True)[::3]
    assert (error, sandbox["refused"]) == ("", [])


def test_torch_stays_on_the_cpu(home):
    script = """
        import pickle, torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset
        assert not torch.cuda.is_available()
        device = torch.device("cuda:0")
        assert device.type == "cpu" and isinstance(device, torch.device)
        assert pickle.loads(pickle.dumps(device)) == device
        assert torch.device("cpu", 0).index == 0 and torch.device("meta").type == "meta"
        torch.cuda.set_device(0), torch.cuda.manual_seed_all(0), torch.cuda.synchronize(), torch.cuda.empty_cache()
        model = nn.Linear(3, 2, device="cuda").to("cuda").to(device).cuda()
        x = torch.randn(4, 3, device="cuda:1").to(0, non_blocking=True).cuda().pin_memory()
        x = x + torch.zeros_like(x, device="cuda") + x.new_zeros(3, device="cuda") + torch.tensor([1.0], device=device)
        assert x.dtype == torch.float32 and x.to(torch.float64).dtype == torch.float64
        torch.manual_seed(0), torch.randperm(3, generator=torch.Generator(device="cuda").manual_seed(0))
        torch.save(model.state_dict(), "a.pt")
        model.load_state_dict(torch.load("a.pt", map_location="cuda:0"))
        import warnings
        warnings.simplefilter("ignore")
        scaler = torch.amp.GradScaler("cuda")
        with torch.autocast("cuda"):
            loss = torch.compile(model)(x).sum()
        scaler.scale(loss).backward()
        model.compile()
        torch.compile(mode="reduce-overhead")(nn.Linear(1, 1))(torch.ones(1))
        torch.set_num_threads(7), torch.set_num_interop_threads(7)
        assert torch.get_num_threads() == 1
        data = TensorDataset(torch.arange(4))
        loader = DataLoader(data, 2, num_workers=2, persistent_workers=True, prefetch_factor=4, pin_memory=True)
        assert loader.num_workers == 0 and sum(len(batch) for batch, in loader) == 4
        @torch.jit.script
        def f(x):
            return x + torch.zeros(1)
        f(torch.ones(1))
    """
    error, sandbox = sandboxed(home, script)
    assert error == ""
    assert sandbox["changes"] == [
        "CUDA was mapped to the CPU",
        "torch.compile was left out",
        "DataLoader workers were left out: num_workers=0",
    ]


def test_opacus_and_transformers_run_inside(home):
    script = """
        import warnings
        warnings.simplefilter("ignore")
        import torch
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset
        from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
        loader = DataLoader(TensorDataset(torch.randn(40, 3), torch.zeros(40).long()), batch_size=10, num_workers=2)
        model = torch.nn.Linear(3, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        engine = PrivacyEngine()
        model, optimizer, loader = engine.make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0)
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        engine.save_checkpoint(path="checkpoints/last.pt", module=model, optimizer=optimizer)
        sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
        config = BertConfig(vocab_size=9, **sizes)
        data = [{"input_ids": [1, 2, 3], "labels": 1} for _ in range(8)]
        arguments = TrainingArguments("checkpoints", num_train_epochs=1, save_steps=1, save_total_limit=1, report_to=[])
        trainer = Trainer(BertForSequenceClassification(config), arguments, train_dataset=data)
        trainer.train()
        trainer.save_model("checkpoints/old")
        BertForSequenceClassification.from_pretrained("checkpoints/old")
    """
    error, sandbox = sandboxed(home, script, locked=True)
    assert (error, sandbox["refused"]) == ("", [])


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


def test_the_kernel_refuses_compiled_code_that_writes_elsewhere(home):
    can = "import sys; from epsgauge.scripts.kernel import lock; print(lock(sys.argv[1]))"
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    done = subprocess.run([sys.executable, "-c", can, str(home)], env=environment, capture_output=True, check=True)
    if done.stdout.strip() != b"True":
        pytest.skip("this kernel has no Landlock that also refuses to truncate (Linux 6.2)")
    script = """
        import pyarrow as pa, pyarrow.parquet as pq
        pq.write_table(pa.table({"a": [1]}), "data.csv")
    """
    error, _ = sandboxed(home, script, locked=True)
    assert error.startswith("PermissionError")


def test_programs_signals_and_the_network_are_refused(home):
    script = """
        import os, platform, signal, socket, subprocess, sys
        platform.platform(), platform.processor()
        def refused(call):
            try:
                call()
            except PermissionError as error:
                return str(error)
            raise AssertionError
        sentences = [
            refused(lambda: subprocess.run(["rm", "-rf", "checkpoints"])),
            refused(lambda: subprocess.check_output("echo x > kept.txt", shell=True)),
            refused(lambda: os.system("rm kept.txt")),
            refused(lambda: os.execv(sys.executable, [sys.executable])),
            refused(lambda: os.kill(os.getppid(), signal.SIGTERM)),
            refused(lambda: socket.socket().bind(("0.0.0.0", 8123))),
        ]
        assert os.spawnv(os.P_WAIT, "/bin/rm", ["rm", "kept.txt"]) == 127  # it forks, and the child is refused
        assert "cannot be kept in a sandbox: rm -rf checkpoints" in sentences[0], sentences
        socket.socket().bind(("127.0.0.1", 0))
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
    assert len(sandbox["refused"]) == 6


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
        assert Path(tmp_path / "a.txt").read_text(encoding="utf-8") == "inside"
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
