"""Opacus with Accelerate: a private MLP on the digits of scikit-learn."""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=50)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--target-epsilon", type=float, default=4.0)
    parser.add_argument("--delta", type=float, default=1e-4)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output-dir", default="checkpoints")
    return parser.parse_args()


def get_data():
    images, labels = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels))
    return random_split(data, [1500, 297], generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def evaluate(accelerator, model, loader):
    model.eval()
    right, total = 0, 0
    for images, labels in loader:
        predictions, labels = accelerator.gather_for_metrics((model(images).argmax(dim=1), labels))
        right, total = right + (predictions == labels).sum().item(), total + len(labels)
    return right / total


def main():
    args = parse_args()
    accelerator = Accelerator(project_dir=args.output_dir)
    set_seed(args.seed)
    train_set, test_set = get_data()
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    train_loader = DataLoader(train_set, batch_size=args.batch_size, shuffle=True)

    engine = PrivacyEngine()
    model, optimizer, train_loader = engine.make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        target_epsilon=args.target_epsilon,
        target_delta=args.delta,
        epochs=args.epochs,
        max_grad_norm=args.max_grad_norm,
    )
    model, optimizer, train_loader, test_loader = accelerator.prepare(
        model, optimizer, train_loader, DataLoader(test_set, batch_size=100)
    )
    for epoch in range(args.epochs):
        model.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
        accuracy = evaluate(accelerator, model, test_loader)
        accelerator.print(f"epoch {epoch + 1}: accuracy {accuracy:.3f}, ε = {engine.get_epsilon(args.delta):.2f}")
    accelerator.wait_for_everyone()
    accelerator.save(accelerator.unwrap_model(model).state_dict(), "model.pt")


if __name__ == "__main__":
    main()
