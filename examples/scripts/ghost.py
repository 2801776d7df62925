"""Ghost clipping: per-example gradients are clipped without being stored."""

import argparse

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=100)
parser.add_argument("--lr", type=float, default=0.3)
parser.add_argument("--noise", type=float, default=1.3)
parser.add_argument("--clip", type=float, default=2.0)


def main(args):
    images, labels = load_digits(return_X_y=True)
    dataset = TensorDataset(torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(labels))
    train_loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True)

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = optim.SGD(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss(reduction="mean")

    engine = PrivacyEngine(accountant="rdp")
    model, optimizer, criterion, train_loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        criterion=criterion,
        data_loader=train_loader,
        noise_multiplier=args.noise,
        max_grad_norm=args.clip,
        grad_sample_mode="ghost",
    )

    for epoch in range(args.epochs):
        total, batches = 0.0, 0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total, batches = total + loss.item(), batches + 1
        print(f"[{epoch + 1}/{args.epochs}] loss {total / batches:.4f}")

    torch.save({"model": model.state_dict(), "args": vars(args)}, "ghost.pt")
    print(f"ε = {engine.get_epsilon(delta=1e-5):.3f} for δ = 1e-5")


if __name__ == "__main__":
    main(parser.parse_args())
