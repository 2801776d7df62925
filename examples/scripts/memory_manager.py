"""Large batches in small memory: BatchMemoryManager, Adam and a schedule of the learning rate."""

import argparse
import random

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators import ModuleValidator
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def get_loaders(batch_size):
    x, y = load_digits(return_X_y=True)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
    x_train, x_test = x_train / 16, x_test / 16

    def tensors(x, y):
        return TensorDataset(torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y))

    train_loader = DataLoader(tensors(x_train, y_train), batch_size=batch_size, shuffle=True)
    return train_loader, DataLoader(tensors(x_test, y_test), batch_size=256)


def train_epoch(model, loader, optimizer, criterion, args, device):
    model.train()
    losses, correct, seen = [], 0, 0
    with BatchMemoryManager(
        data_loader=loader, max_physical_batch_size=args.max_physical_batch_size, optimizer=optimizer
    ) as memory_safe_loader:
        for images, target in memory_safe_loader:
            images, target = images.to(device), target.to(device)
            optimizer.zero_grad()
            output = model(images)
            loss = criterion(output, target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            correct += (output.argmax(1) == target).sum().item()
            seen += len(target)
    return np.mean(losses), correct / max(seen, 1)


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    hits = [(model(x.to(device)).argmax(1) == y.to(device)) for x, y in loader]
    return torch.cat(hits).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--max-physical-batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--max-grad-norm", type=float, default=1.2)
    args = parser.parse_args()
    seed_everything(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    train_loader, test_loader = get_loaders(args.batch_size)
    model = nn.Sequential(nn.Linear(64, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 10))
    model = ModuleValidator.fix(model)  # BatchNorm becomes GroupNorm
    ModuleValidator.validate(model, strict=True)
    model = model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    engine = PrivacyEngine()
    model, optimizer, train_loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        epochs=args.epochs,
        target_epsilon=args.epsilon,
        target_delta=args.delta,
        max_grad_norm=args.max_grad_norm,
    )
    print(f"Using sigma={optimizer.noise_multiplier:.3f} and C={args.max_grad_norm}")
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)

    for epoch in range(1, args.epochs + 1):
        loss, accuracy = train_epoch(model, train_loader, optimizer, criterion, args, device)
        scheduler.step()
        print(f"epoch {epoch}: loss {loss:.3f}, train {accuracy:.3f}, test {evaluate(model, test_loader, device):.3f}")
    print(f"Final: ε = {engine.get_epsilon(args.delta):.2f} at δ = {args.delta}")


if __name__ == "__main__":
    main()
