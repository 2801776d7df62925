"""Learn the language of a surname, character by character, with Opacus' LSTM."""

import argparse
import itertools
import random
import string
import time

import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from torch import nn
from torch.utils.data import DataLoader, Dataset

# First, middle and last syllables
SYLLABLES = {
    "English": "ab brad car daw el fletch gib har jen law mar nor os quin, er in ster ing al, son ton ley wood ford",
    "Italian": "bian col don espo fer gal lom man mor pel ric san tes val, ti ri lo bar ce, ni ti lli nello cci",
    "Japanese": "fuji goto haya ino kata kiku maru naka oka saka taka ueda, mo shi no ka ha, ta ra da mi shita",
    "Polish": "bar czar dud gor jab kow krawcz lew maj now olsz piotr sik, e o ni al ows, ski czyk wicz cki nek",
}
LANGUAGES = list(SYLLABLES)
ALPHABET = string.ascii_lowercase
MAX_LENGTH = 20
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--batch-size", type=int, default=40)
parser.add_argument("--learning-rate", type=float, default=2.0)
parser.add_argument("--hidden-size", type=int, default=24)
parser.add_argument("--sigma", type=float, default=1.0)
parser.add_argument("-c", "--max-per-sample-grad-norm", type=float, default=1.5)
parser.add_argument("--delta", type=float, default=8e-5)
parser.add_argument("--seed", type=int, default=1000)


class NamesDataset(Dataset):
    """120 names of each language, put together from its syllables."""

    def __init__(self):
        chosen = random.Random(0)
        self.samples = []
        for label, syllables in enumerate(SYLLABLES.values()):
            parts = [part.split() for part in syllables.split(",")]
            names = ["".join(name) for name in itertools.product(*parts)]
            self.samples += [(name, label) for name in chosen.sample(names, 120)]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        name, label = self.samples[i]
        return torch.tensor([ALPHABET.index(c) + 1 for c in name]), label


def padded_collate(batch):
    # Every name has the same length, whatever the others of its batch are
    x = torch.zeros(len(batch), MAX_LENGTH, dtype=torch.long)
    for row, (name, _) in zip(x, batch, strict=True):
        row[: len(name)] = name
    return x, torch.tensor([label for _, label in batch])


class CharNNClassifier(nn.Module):
    def __init__(self, hidden_size, embedding_size=12):
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET) + 1, embedding_size)
        self.lstm = DPLSTM(embedding_size, hidden_size, batch_first=True)
        self.out_layer = nn.Linear(hidden_size, len(LANGUAGES))

    def forward(self, x):
        x, _ = self.lstm(self.embedding(x))
        return self.out_layer(x[:, -1])


def train(model, criterion, optimizer, train_loader, epoch):
    losses, start = [], time.time()
    model.train()
    for x, y in train_loader:
        logits = model(x)
        loss = criterion(logits, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    print(f"Epoch {epoch}: loss {sum(losses) / len(losses):.4f} ({time.time() - start:.1f} s)")


def main():
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train_loader = DataLoader(NamesDataset(), batch_size=args.batch_size, collate_fn=padded_collate, shuffle=True)
    model = CharNNClassifier(args.hidden_size)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
    privacy_engine = PrivacyEngine(accountant="rdp")
    model, optimizer, train_loader = privacy_engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=train_loader,
        noise_multiplier=args.sigma,
        max_grad_norm=args.max_per_sample_grad_norm,
    )
    for epoch in range(args.epochs):
        train(model, criterion, optimizer, train_loader, epoch)
    epsilon = privacy_engine.get_epsilon(delta=args.delta)
    torch.save(model.state_dict(), "char_lstm.pt")
    print(f"(ε = {epsilon:.2f}, δ = {args.delta})")


if __name__ == "__main__":
    main()
