"""Ways to train with Opacus, as edits of small.py, and the code of the finding that each is refuted with."""

from __future__ import annotations

from pathlib import Path

SMALL = Path(__file__).with_name("small.py")
Edits = list[tuple[str, str]]

MAKE = """model, optimizer, loader = engine.make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=not given.shuffled,
)
"""
BACKWARD = "        nn.functional.cross_entropy(model(features), labels).backward()\n"
LOOP = "    for features, labels in loader:\n"
STEP = "        optimizer.zero_grad()\n" + BACKWARD + "        optimizer.step()\n"
EPSILON = "engine.get_epsilon(1e-5)"
LOADER = "loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)\n"
ENGINE = 'engine = PrivacyEngine(accountant="rdp")\n'
MODEL = "model = nn.Linear(6, 2)\n"
OPTIMIZER = "optimizer = torch.optim.Adam(model.parameters(), lr=0.05)\n"
POISSON = "    poisson_sampling=not given.shuffled,\n"
EPOCH = '    print(f"epoch'
BY_HAND = """from opacus import GradSampleModule
from opacus.accountants import RDPAccountant
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer

model = GradSampleModule(model)
optimizer = DPOptimizer(optimizer, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=20)
accountant = RDPAccountant()
"""
HOOK = "optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=0.1))\n"
DP_LOADER = "loader = DPDataLoader.from_data_loader(loader)\n"
LAYERS = (MODEL, "model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))\n")


def _given(more: str) -> tuple[str, str]:
    """Another argument of make_private."""
    return POISSON, f"{POISSON}    {more},\n"


def _loop(new: str) -> tuple[str, str]:
    return LOOP + STEP, new


def _scheduler(name: str, gamma: float) -> tuple[str, str]:
    return (
        "for epoch in",
        f"from opacus.schedulers import {name}\nscheduler = {name}(optimizer, gamma={gamma})\nfor epoch in",
    )


STEP_BOTH = "        optimizer.step()\n        scheduler.step()\n"
ASKED = (EPSILON, "accountant.get_epsilon(1e-5)")
WITH_EPSILON: Edits = [
    ("make_private(", "make_private_with_epsilon("),
    ("    noise_multiplier=1.0,\n", "    target_epsilon=4.0, target_delta=1e-5, epochs=given.epochs,\n"),
]
GHOST: Edits = [
    LAYERS,
    ("model, optimizer, loader = engine", "model, optimizer, criterion, loader = engine"),
    _given('criterion=nn.CrossEntropyLoss(), grad_sample_mode="ghost"'),
    (BACKWARD, "        criterion(model(features), labels).backward()\n"),
]
MEMORY_MANAGER = _loop(
    "    from opacus.utils.batch_memory_manager import BatchMemoryManager\n"
    "    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=6, optimizer=optimizer) as physical:\n"
    "        for features, labels in physical:\n" + "".join(f"    {line}\n" for line in STEP.splitlines())
)
GHOST_IN_PIECES = _loop(MEMORY_MANAGER[1].replace(BACKWARD.strip(), GHOST[3][1].strip()))
ADAPTIVE = (
    'clipping="adaptive", target_unclipped_quantile=0.5, clipbound_learning_rate=0.2, max_clipbound=10.0, '
    "min_clipbound=0.1, unclipped_num_std=2.0"
)

SHUFFLED = "    poisson_sampling=False,\n"
DP_LOADER_OF_ITS_OWN = """from opacus.data_loader import DPDataLoader
loader = DPDataLoader(TensorDataset(x, y), sample_rate=0.1)
"""
SAMPLER = """from opacus.utils.uniform_sampler import UniformWithReplacementSampler
sampler = UniformWithReplacementSampler(num_samples=200, sample_rate=0.1)
loader = DataLoader(TensorDataset(x, y), batch_sampler=sampler)
"""
TESTS = "tests = DataLoader(TensorDataset(x[:50], y[:50]), batch_size=25)\n"
TESTED = """    model.eval()
    with torch.no_grad():
        print(sum(model(features).sum() for features, _ in tests))
    model.train()
"""
CHECKPOINT = """engine.save_checkpoint(path="model.pt", module=model, optimizer=optimizer)
engine.load_checkpoint(path="model.pt", module=model, optimizer=optimizer)"""

# way: edits of small.py, and the code of what it is refuted with; None: nothing
WAYS: dict[str, tuple[Edits, str | None]] = {
    "make_private": ([], None),
    "make_private, PRV": ([(ENGINE, "engine = PrivacyEngine()\n")], None),
    # this accountant is an approximation, and says less than is spent
    "make_private, GDP": ([(ENGINE, 'engine = PrivacyEngine(accountant="gdp")\n')], "P100"),
    "make_private_with_epsilon, RDP": (WITH_EPSILON, None),
    "make_private_with_epsilon, PRV": ([*WITH_EPSILON, (ENGINE, "engine = PrivacyEngine()\n")], None),
    "accountant.get_epsilon": ([(EPSILON, "engine.accountant.get_epsilon(delta=1e-5)")], None),
    "no epsilon asked": ([(f": ε = {{{EPSILON}:.2f}}", "")], None),
    "ghost": (GHOST, None),
    "ghost, BatchMemoryManager": ([*GHOST[:3], GHOST_IN_PIECES], None),
    "per layer": ([LAYERS, _given('clipping="per_layer"'), ("max_grad_norm=1.0", "max_grad_norm=[1.0] * 4")], None),
    "adaptive": ([LAYERS, _given(ADAPTIVE)], None),
    "functorch": ([LAYERS, _given('grad_sample_mode="functorch"')], None),
    "expanded weights": ([LAYERS, _given('grad_sample_mode="ew"')], None),
    "sum of losses": (
        [_given('loss_reduction="sum"'), (BACKWARD, BACKWARD.replace("labels)", 'labels, reduction="sum")'))],
        None,
    ),
    "without a wrapper": (
        [
            ("model, optimizer, loader = engine", "hooks, optimizer, loader = engine"),
            _given("wrap_model=False"),
        ],
        None,
    ),
    "rand_on_empty": ([_given("rand_on_empty=True"), ("batch_size=20", "batch_size=2")], None),
    "BatchMemoryManager": ([MEMORY_MANAGER], None),
    "virtual steps": (
        [
            ("    poisson_sampling=not given.shuffled,\n", "    poisson_sampling=True,\n"),
            _loop(
                "    for features, labels in loader:\n"
                "        pieces = list(zip(features.split(8), labels.split(8)))\n"
                "        for i, (features, labels) in enumerate(pieces):\n"
                "            optimizer.signal_skip_step(do_skip=i < len(pieces) - 1)\n"
                + "".join(f"    {line}\n" for line in STEP.splitlines())
            ),
        ],
        None,
    ),
    "accumulated gradients, shuffled": (
        [
            (POISSON, SHUFFLED),
            _loop(
                "    for i, (features, labels) in enumerate(loader):\n" + BACKWARD + "        if i % 2:\n"
                "            optimizer.step()\n            optimizer.zero_grad()\n"
            ),
        ],
        "P111",
    ),
    "noise scheduler": ([_scheduler("ExponentialNoise", 0.9), (EPOCH, "    scheduler.step()\n" + EPOCH)], None),
    "noise scheduler, each step": (
        [_scheduler("ExponentialNoise", 0.95), ("        optimizer.step()\n", STEP_BOTH)],
        None,
    ),
    "clipping scheduler": ([_scheduler("ExponentialGradClip", 0.8), (EPOCH, "    scheduler.step()\n" + EPOCH)], None),
    "shuffled": ([(POISSON, SHUFFLED)], "P111"),
    "parameter groups": (
        [
            LAYERS,
            (
                "torch.optim.Adam(model.parameters(), lr=0.05)",
                'torch.optim.AdamW([{"params": model[0].parameters(), "lr": 0.01, "weight_decay": 0.1}, '
                '{"params": model[2].parameters()}], lr=0.05)',
            ),
        ],
        None,
    ),
    "frozen layers": (
        [
            (MODEL, LAYERS[1] + "for p in model[0].parameters():\n    p.requires_grad_(False)\n"),
            ("model.parameters(), lr", "[p for p in model.parameters() if p.requires_grad], lr"),
        ],
        None,
    ),
    "closure": (
        [
            (
                STEP,
                "        def closure():\n            optimizer.zero_grad()\n"
                "            loss = nn.functional.cross_entropy(model(features), labels)\n"
                "            loss.backward()\n            return loss\n        optimizer.step(closure)\n",
            )
        ],
        None,
    ),
    "DPOptimizer by hand": (
        [(ENGINE + MAKE, BY_HAND + HOOK + DP_LOADER), ASKED],
        None,
    ),
    "DPOptimizer by hand, steps counted in the loop": (
        [
            (ENGINE + MAKE, BY_HAND + DP_LOADER),
            (
                "        optimizer.step()\n",
                "        optimizer.step()\n        accountant.step(noise_multiplier=1.0, sample_rate=0.1)\n",
            ),
            ASKED,
        ],
        None,
    ),
    "DPOptimizer by hand, shuffled": (
        [(ENGINE + MAKE, BY_HAND + HOOK), ASKED],
        "P111",
    ),
    "DPOptimizer by hand, no accountant": (
        [
            (ENGINE + MAKE, BY_HAND + DP_LOADER),
            (f": ε = {{{EPSILON}:.2f}}", ""),
        ],
        None,
    ),
    "DPDataLoader before make_private": ([(LOADER, DP_LOADER_OF_ITS_OWN), (POISSON, SHUFFLED)], None),
    "UniformWithReplacementSampler": ([(LOADER, SAMPLER), (POISSON, SHUFFLED)], None),
    "validation between epochs": ([(MODEL, TESTS + MODEL), (EPOCH, TESTED + EPOCH)], None),
    "a validation loader first": ([(MODEL, f"{TESTS}print(sum(len(batch) for batch, _ in tests))\n{MODEL}")], None),
    "checkpoint of the engine": ([('torch.save(model.state_dict(), "model.pt")', CHECKPOINT)], None),
    "until an epsilon": (
        [
            (
                "        optimizer.step()\n",
                "        optimizer.step()\n        if engine.get_epsilon(1e-5) > 4:\n            break\n",
            )
        ],
        None,
    ),
}


def way(name: str) -> str:
    """The text of a script; each old text must occur exactly once."""
    text = SMALL.read_text(encoding="utf-8")
    for old, new in WAYS[name][0]:
        if (count := text.count(old)) != 1:
            raise ValueError(f"{name}: {old!r} occurs {count} times in small.py, not once")
        text = text.replace(old, new)
    return text
