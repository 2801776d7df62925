"""Fine-tune a tiny BERT for classification with the Trainer of transformers and Opacus."""

import argparse

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)


class ReviewDataset(Dataset):
    """Synthetic reviews: good ones have more tokens below 50."""

    def __init__(self, size, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(2, (size,), generator=generator)
        tokens = torch.randint(5, 100, (size, 16), generator=generator)
        low = torch.rand(size, 16, generator=generator) < 0.4 * self.labels[:, None]
        self.input_ids = torch.where(low, tokens % 45 + 5, tokens)
        lengths = torch.randint(8, 17, (size, 1), generator=generator)
        self.attention_mask = (torch.arange(16) < lengths).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {
            "input_ids": self.input_ids[i] * self.attention_mask[i],
            "attention_mask": self.attention_mask[i],
            "labels": self.labels[i],
        }


class DPCallback(TrainerCallback):
    """Opacus needs its own zero_grad: the Trainer calls that of the model."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    def on_step_end(self, args, state, control, **kwargs):
        self.optimizer.zero_grad()


class DPTrainer(Trainer):
    def __init__(self, *args, train_loader, **kwargs):
        super().__init__(*args, **kwargs)
        self.train_loader = train_loader

    def get_train_dataloader(self):
        return self.train_loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--learning-rate", type=float, default=5e-3)
    parser.add_argument("--target-epsilon", type=float, default=8.0)
    parser.add_argument("--target-delta", type=float, default=1e-3)
    parser.add_argument("--max-grad-norm", type=float, default=0.5)
    parser.add_argument("--output-dir", default="bert-private")
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()
    set_seed(args.seed)

    train_set, eval_set = ReviewDataset(512, seed=1), ReviewDataset(128, seed=2)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(vocab_size=100, max_position_embeddings=16, attn_implementation="eager", **sizes)
    model = BertForSequenceClassification(config)
    model.train()
    # Positions are the same in every record, which Opacus' gradients of embeddings cannot handle
    model.bert.embeddings.position_embeddings.weight.requires_grad = False
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=args.learning_rate)

    privacy_engine = PrivacyEngine(accountant="rdp")
    model, optimizer, train_loader = privacy_engine.make_private_with_epsilon(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(train_set, batch_size=args.batch_size, shuffle=True),
        target_epsilon=args.target_epsilon,
        target_delta=args.target_delta,
        epochs=args.epochs,
        max_grad_norm=args.max_grad_norm,
    )
    training_args = TrainingArguments(
        output_dir=args.output_dir,
        num_train_epochs=args.epochs,
        per_device_train_batch_size=args.batch_size,
        remove_unused_columns=False,
        logging_steps=16,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        seed=args.seed,
    )
    trainer = DPTrainer(
        model=model,
        args=training_args,
        train_dataset=train_set,
        train_loader=train_loader,
        eval_dataset=eval_set,
        optimizers=(optimizer, None),
        callbacks=[DPCallback(optimizer)],
    )
    trainer.train()
    print(trainer.evaluate())
    print(f"Trained with ε = {args.target_epsilon} at δ = {args.target_delta}")


if __name__ == "__main__":
    main()
