"""A Trainer of transformers that is private without an engine, as dp-transformers has it: a callback counts steps."""

import sys

import torch
from opacus import GradSampleModule
from opacus.accountants import RDPAccountant
from opacus.data_loader import DPDataLoader
from opacus.optimizers import DPOptimizer
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

SIZE, BATCH, SIGMA, POISSON = 160, 16, 1.0, "--shuffled" not in sys.argv


class Sentences(Dataset):
    def __init__(self):
        self.tokens = torch.randint(1, 30, (SIZE, 6), generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return SIZE

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": (self.tokens[i].sum() > 90).long()}


class DPCallback(TrainerCallback):
    def __init__(self, accountant):
        self.accountant = accountant

    def on_step_end(self, args, state, control, optimizer=None, **more):
        optimizer.zero_grad()  # which the Trainer calls on the model only
        self.accountant.step(noise_multiplier=SIGMA, sample_rate=BATCH / SIZE)


class DPTrainer(Trainer):
    def __init__(self, model, **more):
        self.accountant = RDPAccountant()
        private = GradSampleModule(model)
        super().__init__(model=private, callbacks=[DPCallback(self.accountant)], **more)

    def create_optimizer(self, model=None):
        inner = torch.optim.AdamW(self.model.parameters(), lr=self.args.learning_rate)
        self.optimizer = DPOptimizer(inner, noise_multiplier=SIGMA, max_grad_norm=1.0, expected_batch_size=BATCH)
        return self.optimizer

    def get_train_dataloader(self):
        loader = DataLoader(self.train_dataset, batch_size=BATCH, shuffle=True)
        return DPDataLoader.from_data_loader(loader) if POISSON else loader

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        loss = torch.nn.functional.cross_entropy(model(input_ids=inputs["input_ids"]).logits, inputs["labels"])
        loss.backward()
        return loss.detach()


if __name__ == "__main__":
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    bert = BertForSequenceClassification(BertConfig(vocab_size=30, max_position_embeddings=6, **sizes, **still))
    bert.bert.embeddings.position_embeddings.weight.requires_grad = False  # Opacus cannot clip what all records share
    arguments = TrainingArguments(
        "out", num_train_epochs=2, learning_rate=0.01, report_to=[], save_strategy="no", max_grad_norm=0.0, use_cpu=True
    )
    trainer = DPTrainer(bert, args=arguments, train_dataset=Sentences())
    trainer.train()
    print(f"ε = {trainer.accountant.get_epsilon(1e-4):.2f}")
