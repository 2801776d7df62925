"""Scripts in a sandbox that use torch and other compiled libraries."""

import os
import subprocess
import sys

import pytest
from in_sandbox import SOURCE, sandboxed, user_folder


@pytest.fixture
def home(tmp_path):
    return user_folder(tmp_path)


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


def test_wandb_stays_disabled(home):
    (home / "wandb.py").write_text("def init(project, mode=None):\n    return mode\n", encoding="utf-8")
    script = """
        import sys
        sys.path.insert(0, ".")
        import wandb
        assert wandb.init(project="a", mode="offline") == wandb.init("a") == "disabled"
    """
    assert sandboxed(home, script)[0] == ""


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
