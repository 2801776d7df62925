"""Private LoRA: the transformer is frozen, low-rank matrices in its attention and the head are trained."""

import argparse

import torch
from opacus import PrivacyEngine
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

VOCABULARY, LENGTH, WIDTH, HEADS = 64, 12, 32, 4


class LoRALinear(nn.Module):
    """A frozen linear layer plus a trained one of low rank."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Linear(base.in_features, rank, bias=False)
        self.lora_b = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_b.weight)
        self.scaling = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scaling * self.lora_b(self.lora_a(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (f(h).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(h)
        return x + self.mlp(self.norm2(x))


class Classifier(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        self.blocks = nn.ModuleList(Block() for _ in range(layers))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x):
        h = self.tokens(x) + self.positions
        for block in self.blocks:
            h = block(h)
        return self.head(h.mean(dim=1))


def add_lora(model, rank, alpha):
    for block in model.blocks:
        block.query = LoRALinear(block.query, rank, alpha)
        block.value = LoRALinear(block.value, rank, alpha)
    for name, parameter in model.named_parameters():
        parameter.requires_grad = "lora_" in name or name.startswith("head.")


def make_data(size=800):
    """A sequence is positive if more than half of its tokens are odd."""
    x = torch.randint(VOCABULARY, (size, LENGTH), generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, ((x % 2).sum(dim=1) > LENGTH / 2).long())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--noise-multiplier", type=float, default=0.8)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--adapter", default="adapter.pt")
    args = parser.parse_args()

    train_set, test_set = random_split(make_data(), [640, 160], generator=torch.Generator().manual_seed(1))
    model = Classifier()
    add_lora(model, args.rank, alpha=8)
    trainable = [p for p in model.parameters() if p.requires_grad]
    print(f"{sum(p.numel() for p in trainable)} of {sum(p.numel() for p in model.parameters())} parameters are trained")

    optimizer = torch.optim.AdamW(trainable, lr=args.lr, weight_decay=0.01)
    engine = PrivacyEngine()
    model, optimizer, train_loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(train_set, batch_size=args.batch_size),
        noise_multiplier=args.noise_multiplier,
        max_grad_norm=args.max_grad_norm,
    )
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            x, y = next(iter(DataLoader(test_set, batch_size=len(test_set))))
            accuracy = (model(x).argmax(dim=1) == y).float().mean()
        print(f"epoch {epoch + 1}: accuracy {accuracy:.3f}, ε = {engine.get_epsilon(delta=1e-4):.2f}")

    adapter = {name: tensor for name, tensor in model.state_dict().items() if "lora_" in name or "head." in name}
    torch.save(adapter, args.adapter)
