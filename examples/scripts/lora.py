"""Private LoRA with PEFT: a BERT is frozen, low-rank matrices in its attention and the classifier are trained."""

import argparse

import torch
from opacus import PrivacyEngine
from peft import LoraConfig, get_peft_model
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split
from transformers import BertConfig, BertForSequenceClassification

VOCABULARY, LENGTH, WIDTH = 64, 12, 32


def make_data(size=800):
    """A sequence is positive if more than half of its tokens are odd."""
    x = torch.randint(VOCABULARY, (size, LENGTH), generator=torch.Generator().manual_seed(0))
    return TensorDataset(x, ((x % 2).sum(dim=1) > LENGTH / 2).long())


def make_model(rank):
    # BertForSequenceClassification.from_pretrained("bert-base-uncased") for a real one
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 2 * WIDTH}
    sizes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    bert = BertForSequenceClassification(BertConfig(vocab_size=VOCABULARY, max_position_embeddings=LENGTH, **sizes))
    lora = LoraConfig(
        task_type="SEQ_CLS", r=rank, lora_alpha=8, target_modules=["query", "value"], modules_to_save=["classifier"]
    )
    return get_peft_model(bert, lora)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--noise-multiplier", type=float, default=0.8)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--adapter", default="adapter")
    args = parser.parse_args()

    train_set, test_set = random_split(make_data(), [640, 160], generator=torch.Generator().manual_seed(1))
    model = make_model(args.rank)
    model.print_trainable_parameters()
    model.train()
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=args.lr, weight_decay=0.01)
    engine = PrivacyEngine()
    private, optimizer, train_loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(train_set, batch_size=args.batch_size),
        noise_multiplier=args.noise_multiplier,
        max_grad_norm=args.max_grad_norm,
    )
    for epoch in range(args.epochs):
        private.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(private(input_ids=x).logits, y).backward()
            optimizer.step()
        private.eval()
        with torch.no_grad():
            x, y = next(iter(DataLoader(test_set, batch_size=len(test_set))))
            accuracy = (private(input_ids=x).logits.argmax(dim=1) == y).float().mean()
        print(f"epoch {epoch + 1}: accuracy {accuracy:.3f}, ε = {engine.get_epsilon(delta=1e-4):.2f}")

    model.save_pretrained(args.adapter)
