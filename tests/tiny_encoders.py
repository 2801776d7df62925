"""Encoders of two layers with random weights, and a tokenizer of a few words, for tests."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # before the first import of transformers: no test goes to the network

import numpy as np
import torch

WORDS = ["a", "the", "film", "is", "was", "good", "bad", "fine", "dull", "not", "and", "of", "plot", "story", "music"]
SPECIAL = {"bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], "roberta": ["<s>", "<pad>", "</s>", "<unk>"]}
LENGTH = 9
SENTENCES = np.array(
    [" ".join(np.random.default_rng(i).choice(WORDS, size=1 + i % 6)) for i in range(24)] + ["the plot is good"] * 2
)
LABELS = np.array([int("good" in s or "fine" in s) for s in SENTENCES])


def make(folder, kind):
    """Weights, config and tokenizer in a folder, as save_pretrained leaves them; no head, as encoders are shared."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    vocabulary = {word: i for i, word in enumerate(SPECIAL[kind] + WORDS)}
    pad, start, end, unknown = (
        ("[PAD]", "[CLS]", "[SEP]", "[UNK]") if kind == "bert" else ("<pad>", "<s>", "</s>", "<unk>")
    )
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(start, vocabulary[start]), (end, vocabulary[end])]
    core.post_processor = processors.TemplateProcessing(single=f"{start} $A {end}", special_tokens=ends)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=pad, unk_token=unknown, cls_token=start, sep_token=end, model_max_length=20
    )
    tokenizer.save_pretrained(folder)
    shape = {
        "vocab_size": len(vocabulary),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 20,
        "max_position_embeddings": 24,
        "pad_token_id": vocabulary[pad],
        "initializer_range": 0.3,  # so that nothing is too small to be seen
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if kind == "bert":
            model = BertModel(BertConfig(**shape))
        else:
            model = RobertaModel(RobertaConfig(type_vocab_size=1, **shape), add_pooling_layer=False)
    model.save_pretrained(folder)
    return folder
