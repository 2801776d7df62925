"""Bugs of public training code, as edits of the scripts in examples/scripts."""

from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "examples" / "scripts"

# script: bug: edits of (old text, new text)
BUGS: dict[str, dict[str, list[tuple[str, str]]]] = {
    "mnist_like": {
        # Opacus' accountant assumes Poisson sampling whatever the loader does
        "shuffled": [
            (
                "        max_grad_norm=args.max_per_sample_grad_norm,\n",
                "        max_grad_norm=args.max_per_sample_grad_norm,\n        poisson_sampling=False,\n",
            )
        ],
        # the same noise in every training, which whoever has the code can subtract
        "fixed noise seed": [
            (
                "        max_grad_norm=args.max_per_sample_grad_norm,\n",
                "        max_grad_norm=args.max_per_sample_grad_norm,\n"
                "        noise_generator=torch.Generator().manual_seed(42),\n",
            )
        ],
    },
    "char_lstm": {
        # Opacus' own example: the last position depends on the longest name of the batch
        "padded to the longest of the batch": [
            (
                "    # Every name has the same length, whatever the others of its batch are\n"
                "    x = torch.zeros(len(batch), MAX_LENGTH, dtype=torch.long)\n"
                "    for row, (name, _) in zip(x, batch, strict=True):\n"
                "        row[: len(name)] = name\n",
                "    x = pad_sequence([name for name, _ in batch], batch_first=True, padding_value=0)\n",
            ),
            (
                "from torch.utils.data import DataLoader, Dataset\n",
                "from torch.nn.utils.rnn import pad_sequence\nfrom torch.utils.data import DataLoader, Dataset\n",
            ),
        ],
        # the choice of the released model is not accounted
        "best epoch by private loss": [
            (
                "        train(model, criterion, optimizer, train_loader, epoch)\n",
                "        loss = train(model, criterion, optimizer, train_loader, epoch)\n"
                "        if loss < best_loss:\n"
                "            best_loss, best = loss, copy.deepcopy(model.state_dict())\n"
                "    model.load_state_dict(best)\n",
            ),
            (
                "    for epoch in range(args.epochs):\n",
                '    best_loss = float("inf")\n    for epoch in range(args.epochs):\n',
            ),
            (
                '({time.time() - start:.1f} s)")\n',
                '({time.time() - start:.1f} s)")\n    return sum(losses) / len(losses)\n',
            ),
            ("import argparse\n", "import argparse\nimport copy\n"),
        ],
    },
    "hf_finetune": {
        # the Trainer builds its own loader, which shuffles
        "loader of the Trainer": [("    def get_train_dataloader(self):\n        return self.train_loader\n", "")],
        # the script prints the target, not what the accountant has seen
        "noise lowered": [
            (
                "    training_args = TrainingArguments(\n",
                "    optimizer.noise_multiplier *= 0.5\n    training_args = TrainingArguments(\n",
            )
        ],
    },
    "lora": {
        # a second optimiser trains the classifier: its gradients are neither clipped nor noised
        "head outside the engine": [
            (
                "    engine = PrivacyEngine()\n",
                '    head = [p for name, p in model.named_parameters() if p.requires_grad and "lora_" not in name]\n'
                "    head_optimizer = torch.optim.AdamW(head, lr=args.lr)\n"
                "    engine = PrivacyEngine()\n",
            ),
            (
                "    optimizer = torch.optim.AdamW(trainable, ",
                '    lora = [p for name, p in model.named_parameters() if "lora_" in name]\n'
                "    optimizer = torch.optim.AdamW(lora, ",
            ),
            (
                "            optimizer.zero_grad()\n",
                "            optimizer.zero_grad()\n            private.zero_grad()\n",
            ),
            ("            optimizer.step()\n", "            optimizer.step()\n            head_optimizer.step()\n"),
        ],
        # local steps: the second one is accounted as if it had drawn its own batch
        "each batch twice": [
            (
                "            optimizer.zero_grad()\n"
                "            F.cross_entropy(private(input_ids=x).logits, y).backward()\n"
                "            optimizer.step()\n",
                "            for _ in range(2):\n"
                "                optimizer.zero_grad()\n"
                "                F.cross_entropy(private(input_ids=x).logits, y).backward()\n"
                "                optimizer.step()\n",
            )
        ],
    },
    "accelerate_dp": {
        # Accelerate trains on the loader that was made before the engine, which shuffles
        "loader of before prepared": [
            ("    model, optimizer, train_loader = engine", "    model, optimizer, _ = engine"),
        ],
        # one seed for every epoch: the same noise again and again
        "seed of every epoch": [
            ("        model.train()\n", "        set_seed(args.seed)\n        model.train()\n"),
        ],
    },
    "lightning_dp": {
        # `isinstance(data_loader, DPDataLoader)` turns Poisson sampling off without a word
        "data module not wrapped": [("        data = DPLightningDataModule(data)\n", "        data.prepare_data()\n")],
        # a batch normalisation that Opacus' validator does not see
        "batch statistics in forward": [
            (
                "        h = self.layer1(x)\n",
                "        h = self.layer1(x)\n        h = (h - h.mean(dim=0)) / (h.std(dim=0) + 1e-5)\n",
            )
        ],
    },
    "plain_torch": {
        # the mean gradient of the batch is clipped, and gets the noise that is meant for clipped examples
        "batch clipped": [
            (
                "    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)\n"
                "    factors = (args.clip / (norms + 1e-6)).clamp(max=1.0)\n"
                '    sums = {name: torch.einsum("i,i...->...", factors, g) for name, g in gradients.items()}\n',
                "    means = {name: g.mean(dim=0) for name, g in gradients.items()}\n"
                "    norm = torch.stack([g.norm() for g in means.values()]).norm()\n"
                "    factor = (args.clip / (norm + 1e-6)).clamp(max=1.0)\n"
                "    sums = {name: args.batch_size * factor * g for name, g in means.items()}\n",
            )
        ],
        # biases get no noise
        "noise on matrices only": [
            (
                "        noise = args.sigma * args.clip * torch.randn_like(total)\n",
                "        noise = args.sigma * args.clip * torch.randn_like(total) if total.dim() > 1 else 0.0\n",
            )
        ],
    },
    "memory_manager": {
        # means and scales of private records enter every feature
        "scaler fitted on private data": [
            (
                "    x_train, x_test = x_train / 16, x_test / 16\n",
                "    scaler = StandardScaler().fit(x_train)\n"
                "    x_train, x_test = scaler.transform(x_train), scaler.transform(x_test)\n",
            ),
            (
                "from sklearn.model_selection import train_test_split\n",
                "from sklearn.model_selection import train_test_split\n"
                "from sklearn.preprocessing import StandardScaler\n",
            ),
        ],
        # the accountant is told the sampling rate of the pieces that BatchMemoryManager makes
        "rate of physical batches": [
            (
                "    scheduler = torch.optim.lr_scheduler",
                "    rate = args.max_physical_batch_size / len(train_loader.dataset)\n"
                "    optimizer.attach_step_hook(engine.accountant.get_optimizer_hook_fn(sample_rate=rate))\n"
                "    scheduler = torch.optim.lr_scheduler",
            ),
        ],
    },
    "ghost": {
        # the wrapped criterion clips: without it, nothing is clipped
        "criterion not wrapped": [
            (
                "    model, optimizer, criterion, train_loader = engine",
                "    model, optimizer, _, train_loader = engine",
            )
        ],
        # the model clips, the optimiser adds noise: this scheduler lowers the norm of the latter only
        "noise follows another clipping norm": [
            (
                "    for epoch in range(args.epochs):\n",
                "    clip_scheduler = ExponentialGradClip(optimizer, gamma=0.7)\n"
                "    for epoch in range(args.epochs):\n",
            ),
            (
                '        print(f"[{epoch + 1}/',
                '        clip_scheduler.step()\n        print(f"[{epoch + 1}/',
            ),
            (
                "from opacus import PrivacyEngine\n",
                "from opacus import PrivacyEngine\nfrom opacus.schedulers import ExponentialGradClip\n",
            ),
        ],
    },
}

# Bugs that do nothing within one epoch
LATER = {
    ("accelerate_dp", "seed of every epoch"),
    ("char_lstm", "best epoch by private loss"),
    ("ghost", "noise follows another clipping norm"),
}


def right(script: str) -> str:
    """The text of a script as it is shipped."""
    return (SCRIPTS / f"{script}.py").read_text(encoding="utf-8")


def broken(script: str, bug: str) -> str:
    """The text of a script with a bug; each old text must occur exactly once."""
    text = right(script)
    for old, new in BUGS[script][bug]:
        if (count := text.count(old)) != 1:
            raise ValueError(f"{script}, {bug}: {old!r} occurs {count} times in the script, not once")
        text = text.replace(old, new)
    return text
