"""DP-SGD by hand: gradients of single examples by torch.func, clipping, Gaussian noise and Poisson sampling."""

import argparse

import torch
from opacus.accountants import RDPAccountant
from sklearn.datasets import load_digits
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=50, help="expected size of a batch")
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--sigma", type=float, default=1.1)
parser.add_argument("--clip", type=float, default=1.0)
parser.add_argument("--delta", type=float, default=1e-5)
args = parser.parse_args()

features, labels = load_digits(return_X_y=True)
train_x, train_y = torch.tensor(features[:1500] / 16, dtype=torch.float32), torch.tensor(labels[:1500])
test_x, test_y = torch.tensor(features[1500:] / 16, dtype=torch.float32), torch.tensor(labels[1500:])

model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
accountant = RDPAccountant()
rate = args.batch_size / len(train_x)
steps_per_epoch = int(1 / rate)


def loss_of_example(params, x, y):
    return cross_entropy(functional_call(model, params, (x[None],)), y[None])


per_example_gradients = vmap(grad(loss_of_example), in_dims=(None, 0, 0))


def private_gradients(x, y):
    """The sum of clipped gradients plus noise, divided by the expected batch size."""
    params = {name: p.detach() for name, p in model.named_parameters()}
    gradients = per_example_gradients(params, x, y)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in gradients.values()]).norm(dim=0)
    factors = (args.clip / (norms + 1e-6)).clamp(max=1.0)
    sums = {name: torch.einsum("i,i...->...", factors, g) for name, g in gradients.items()}
    noisy = {}
    for name, total in sums.items():
        noise = args.sigma * args.clip * torch.randn_like(total)
        noisy[name] = (total + noise) / args.batch_size
    return noisy


for epoch in range(args.epochs):
    for _ in range(steps_per_epoch):
        chosen = torch.rand(len(train_x)) < rate
        gradients = private_gradients(train_x[chosen], train_y[chosen])
        for name, p in model.named_parameters():
            p.grad = gradients[name]
        optimizer.step()
        accountant.step(noise_multiplier=args.sigma, sample_rate=rate)
    with torch.no_grad():
        accuracy = (model(test_x).argmax(dim=1) == test_y).float().mean()
    print(f"epoch {epoch + 1}: accuracy {accuracy:.3f}, ε = {accountant.get_epsilon(args.delta):.2f}, δ = {args.delta}")

torch.save(model.state_dict(), "model.pt")
