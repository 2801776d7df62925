"""Train one small language model with DP-SGD on texts and the canaries whose coin is in; then score all canaries.

python train.py coins.csv scores.csv
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import epsgauge as eg

LENGTH = 16  # tokens of a text
PAD = 0


def sentences(n, seed=0):
    """Texts to train on, where there are no better ones: each word is followed by one of three, and some are rare."""
    from epsgauge.data.planted.common import COMMON

    rng = np.random.default_rng(seed)
    often = 1.0 / np.arange(1, len(COMMON) + 1)
    after = rng.choice(len(COMMON), size=(len(COMMON), 3), p=often / often.sum())
    texts = []
    for _ in range(n):
        at, words = rng.integers(len(COMMON)), []
        for _ in range(10):
            words.append(COMMON[at])
            at = after[at, rng.integers(3)]
        texts.append(" ".join(words))
    return texts


class LanguageModel(nn.Module):
    """Predicts a word from the three before it (Bengio et al. 2003)."""

    def __init__(self, vocabulary, width):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.hidden = nn.Linear(3 * width, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        before = [nn.functional.pad(tokens, (back, 0), value=PAD)[:, : tokens.shape[1]] for back in range(3)]
        return self.out(torch.tanh(self.hidden(torch.cat([self.embed(each) for each in before], dim=-1))))


def tokens_of(texts, vocabulary):
    """Texts as rows of numbers, cut or padded to one length."""
    rows = [[vocabulary[word] for word in text.split()][:LENGTH] for text in texts]
    return torch.tensor([row + [PAD] * (LENGTH - len(row)) for row in rows])


def losses(model, tokens):
    """The loss of each token but the first, 0 where there is none: [texts, LENGTH - 1]."""
    logits = model(tokens[:, :-1]).transpose(1, 2)
    return nn.functional.cross_entropy(logits, tokens[:, 1:], ignore_index=PAD, reduction="none")


def losses_of_secrets(model, tokens, n_last):
    """The loss of the last words of each canary, which are its secret."""
    with torch.no_grad():
        each = torch.cat([losses(model, part) for part in tokens.split(200)])
    place, ends = torch.arange(LENGTH - 1), (tokens != PAD).sum(1) - 1
    secret = (place < ends[:, None]) & (place >= (ends - n_last)[:, None])
    return (each * secret).sum(1)


def train(coins, texts, *, noise=1.0, epochs=10, batch=100, rate=16.0, width=32, seed=0):
    """Scores of all canaries, and the ε that Opacus's accountant gives at δ = 1e-5."""
    torch.manual_seed(seed)
    planted, included = [row["text"] for row in coins.rows], [row["text"] for row in coins.included]
    words = dict.fromkeys(word for text in [*texts, *planted] for word in text.split())  # of canaries in and out
    vocabulary = {word: i for i, word in enumerate(words, start=PAD + 1)}
    model = LanguageModel(len(vocabulary) + 1, width)
    canaries, n_last = tokens_of(planted, vocabulary), [len(row["secret"].split()) for row in coins.rows]
    before = losses_of_secrets(model, canaries, torch.tensor(n_last))
    data = DataLoader(TensorDataset(tokens_of([*texts, *included], vocabulary)), batch_size=batch)
    engine = PrivacyEngine()
    model, optimizer, data = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate),
        data_loader=data,
        noise_multiplier=noise,
        max_grad_norm=1.0,
    )
    for _ in range(epochs):
        for (some,) in data:
            optimizer.zero_grad()
            losses(model, some).mean(1).mean().backward()
            optimizer.step()
    after = losses_of_secrets(model, canaries, torch.tensor(n_last))
    eps = engine.get_epsilon(1e-5) if noise > 0 else float("inf")
    return (before - after).numpy(), eps


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("coins")
    parser.add_argument("scores")
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--corpus", type=Path, help="one text per line")
    asked = parser.parse_args()
    made = eg.read_coins(asked.coins)
    texts = asked.corpus.read_text().splitlines()[: asked.texts] if asked.corpus else sentences(asked.texts)
    found, eps = train(made, texts, noise=asked.noise, epochs=asked.epochs)
    made.write_scores(found, asked.scores)
    sys.stdout.write(f"wrote {asked.scores}; the accountant's ε is {eps:.2f} at δ = 1e-5\n")
