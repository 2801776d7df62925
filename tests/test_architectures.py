"""Networks of the paper's pipelines; Adam; gradients in pieces."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_encoders import LABELS, LENGTH, SENTENCES, make
from torch.nn.functional import cross_entropy

from epsgauge.data.text_tokens import tokens
from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.references import beside
from epsgauge.trainers import pretrained
from epsgauge.trainers.architectures import cifar10_cnn, transformer
from epsgauge.trainers.dpsgd import DpSgd
from epsgauge.trainers.protocol import observed
from epsgauge.trainers.sgd import Sgd
from epsgauge.trainers.stacked.chain import supports

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    return {kind: make(folder / kind, kind) for kind in ("bert", "roberta")}


@pytest.fixture
def points(encoders):
    return {kind: (tokens(SENTENCES, folder, LENGTH), LABELS) for kind, folder in encoders.items()}


def state(model):
    return torch.cat([p.detach().ravel() for p in model.parameters()])


# The CNN


def test_the_cnn_has_the_papers_parameters():
    model = cifar10_cnn()
    images = torch.rand(2, 3, 32, 32)
    assert sum(p.numel() for p in model.parameters()) == 973_962
    assert model(images).shape == (2, 10)
    assert supports(model, images) is None


def test_the_cnn_is_a_model_by_name():
    data = (RNG.random((1, 3, 32, 32), dtype=np.float32), np.array([9]))
    settings = {"model": "cifar10-cnn", "batch_size": 1, "epochs": 1, "noise_multiplier": 1.0, "learning_rate": 0.1}
    models = [DpSgd(engine=engine, **settings).train(data, seed=1) for engine in ("opacus", "stacked")]
    torch.testing.assert_close(state(models[0]), state(models[1]), rtol=1e-4, atol=1e-5)
    with pytest.raises(InvalidInput, match=r"must take points of shape \(6,\)"):
        Sgd(model="cifar10-cnn").train((X, Y), seed=0)


# Transformers


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_gradients_of_each_point_are_those_of_the_point_alone(encoders, points, kind):
    """Of every trained parameter, in one batch of sentences of different lengths, without dropout."""
    from opacus.grad_sample import GradSampleModule

    model = transformer(str(encoders[kind]), 3).train()
    assert all(p.requires_grad for p in model.parameters())
    for layer in model.modules():
        if isinstance(layer, torch.nn.Dropout):
            layer.p = 0.0
    x, y = (torch.from_numpy(part[:7]) for part in points[kind])
    assert len({int(n) for n in (x != model.pad).sum(1)}) > 3
    alone = []
    for i in range(len(x)):
        loss = cross_entropy(model(x[i : i + 1]), y[i : i + 1])
        alone.append(torch.autograd.grad(loss, list(model.parameters())))
    hooks = GradSampleModule(model, loss_reduction="mean")
    cross_entropy(model(x), y).backward()
    for (name, p), *each in zip(model.named_parameters(), *alone, strict=True):
        torch.testing.assert_close(p.grad_sample, torch.stack(each), rtol=1e-4, atol=1e-6, msg=name)
        if not name.endswith("key.bias"):  # which softmax takes no notice of
            assert p.grad_sample.abs().max() > 1e-4, name
    hooks.cleanup()


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_scores_are_those_of_transformers(encoders, points, kind):
    model = transformer(str(encoders[kind]), 3).eval()
    x = torch.from_numpy(points[kind][0])
    expected = model.inner(input_ids=x, attention_mask=(x != model.pad).long()).logits
    torch.testing.assert_close(model(x), expected, rtol=1e-5, atol=1e-6)


def test_what_takes_no_part_is_not_trained(encoders, monkeypatch):
    from transformers import BertForSequenceClassification

    made = BertForSequenceClassification.__init__

    def with_idle_layer(self, config):
        made(self, config)
        self.idle = torch.nn.Linear(2, 2)

    monkeypatch.setattr(BertForSequenceClassification, "__init__", with_idle_layer)
    pretrained._read.cache_clear()
    model = transformer(str(encoders["bert"]), 2)
    pretrained._read.cache_clear()
    assert [name for name, p in model.named_parameters() if not p.requires_grad] == [
        "inner.idle.weight",
        "inner.idle.bias",
    ]


def test_only_the_head_is_drawn_and_the_files_are_read_once(encoders, monkeypatch):
    pretrained._read.cache_clear()
    made = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        made.append(dict(transformer(str(encoders["bert"]), 2).named_parameters()))
    assert pretrained._read.cache_info().misses == 1
    for name, p in made[0].items():
        assert torch.equal(p, made[1][name])
        assert torch.equal(p, made[2][name]) == (name != "inner.classifier.weight")
        assert p.data_ptr() != made[1][name].data_ptr()
    assert 0.1 < float(made[0]["inner.classifier.weight"].detach().std()) < 0.6


def test_a_head_in_the_files_is_not_used(encoders, tmp_path):
    first = transformer(str(encoders["bert"]), 2)
    first.inner.save_pretrained(tmp_path)
    for n_classes in (2, 5):
        model = transformer(str(tmp_path), n_classes)
        assert model(torch.tensor([[2, 5, 3]])).shape == (1, n_classes)
        assert torch.equal(model.inner.bert.pooler.dense.weight, first.inner.bert.pooler.dense.weight)
    torch.manual_seed(0)
    assert not torch.equal(transformer(str(tmp_path), 2).inner.classifier.weight, first.inner.classifier.weight)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("trainer", [Sgd, DpSgd])
def test_a_transformer_is_fine_tuned(encoders, points, kind, trainer):
    """A seed decides everything, dropout and head too, in the first model of a process and in later ones."""
    private = {"noise_multiplier": 0.3} if trainer is DpSgd else {}
    fine = trainer(
        model="transformer",
        encoder=kind,
        n_classes=2,
        optimiser="adam",
        learning_rate=0.01,
        batch_size=8,
        epochs=1,
        physical_batch=5,
        **private,
    )
    data = points[kind]
    pretrained._read.cache_clear()
    with beside(encoders[kind].parent):
        assert fine.group(data, size=len(LABELS)) is None
        losses = [observed(fine, data, data, len(LABELS), seed=s, size=len(LABELS))["loss"] for s in (1, 1, 2)]
    np.testing.assert_array_equal(losses[0], losses[1])
    assert np.abs(losses[0] - losses[2]).max() > 1e-3


def test_a_transformer_learns(encoders, points):
    settings = {"model": "transformer", "encoder": str(encoders["roberta"]), "n_classes": 2, "optimiser": "adam"}
    trainer = Sgd(**settings, learning_rate=0.003, batch_size=13, epochs=60)
    data = points["roberta"]
    assert trainer.losses(trainer.train(data, seed=0), data).mean() < 0.1


def test_token_ids_of_another_encoder(encoders):
    trainer = Sgd(model="transformer", encoder=str(encoders["bert"]), n_classes=2)
    for x, words in [
        (np.full((3, 4), 999), "token ids must be from 0 to 18, but got 999 to 999: they are those of another encoder"),
        (np.ones((3, 4)), "points must be rows of token ids, but got torch.float32 of shape"),
        (np.ones((3, 30), dtype=int), "model transformer must take points of shape (30,) and type torch.int64, but"),
    ]:
        with pytest.raises(InvalidInput) as caught:
            trainer.train((x, np.zeros(3, dtype=int)), seed=0)
        assert words in str(caught.value)


def test_weights_that_are_not_those_of_the_config(encoders, tmp_path):
    import json
    import shutil

    shutil.copytree(encoders["bert"], tmp_path / "odd")
    config = json.loads((tmp_path / "odd" / "config.json").read_text(encoding="utf-8"))
    for change, words in [
        ({"num_hidden_layers": 3}, "must have the weights that its config.json says, but 16 are missing"),
        ({"model_type": "nothing"}, "must be files that transformers can read, but: "),
        (
            {"pad_token_id": None},
            "must have a pad token and take position ids, as BERT and RoBERTa do, but bert has no",
        ),
    ]:
        (tmp_path / "odd" / "config.json").write_text(json.dumps({**config, **change}))
        pretrained._read.cache_clear()
        with pytest.raises(InvalidInput) as caught:
            transformer(str(tmp_path / "odd"), 2)
        assert words in str(caught.value)


def test_without_transformers(encoders, monkeypatch):
    pretrained._read.cache_clear()
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"needs transformers. Install it with: pip install '.\[torch,text\]'"):
        transformer(str(encoders["bert"]), 2)


# Pieces


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
@pytest.mark.parametrize(
    "trainer",
    [
        Sgd(batch_size=16, epochs=3, engine="torch"),
        DpSgd(batch_size=16, epochs=3, noise_multiplier=0.5, max_grad_norm=0.5, engine="opacus"),
        DpSgd(batch_size=1, epochs=1, noise_multiplier=0.5, engine="opacus"),  # a third of the draws are empty
    ],
)
def test_pieces_change_nothing(trainer, optimiser):
    whole = replace(trainer, optimiser=optimiser, learning_rate=0.05)
    expected = whole.train((X, Y), seed=2)
    for physical_batch in (1, 5, 1000):
        pieces = replace(whole, physical_batch=physical_batch)
        model = pieces.train((X, Y), seed=2)
        torch.testing.assert_close(state(model), state(expected), rtol=0, atol=1e-6)
        np.testing.assert_allclose(pieces.losses(model, (X, Y)), whole.losses(model, (X, Y)), rtol=1e-5)


def test_pieces_are_pieces(tmp_path, monkeypatch):
    (tmp_path / "mine_seeing.py").write_text(
        "from torch import nn\nseen = []\n"
        "class Seeing(nn.Linear):\n"
        "    def __init__(self): super().__init__(6, 2)\n"
        "    def forward(self, x):\n        seen.append(len(x))\n        return super().forward(x)\n"
        "def build(): return nn.Sequential(nn.Identity(), See(), nn.Linear(6, 2))\n"
        "class See(nn.Module):\n    def forward(self, x):\n        seen.append(len(x))\n        return x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import mine_seeing

    for trainer in (Sgd(batch_size=20, epochs=1), DpSgd(batch_size=20, epochs=1, noise_multiplier=1.0)):
        mine_seeing.seen.clear()
        pieces = replace(trainer, model="mine_seeing:build", physical_batch=8)
        pieces.losses(pieces.train((X, Y), seed=0), (X, Y))
        assert max(mine_seeing.seen) == 8
        assert len(mine_seeing.seen) > 2 * 3 + 5


def test_adam_is_adam_on_the_noisy_mean():
    """Its first step moves every weight by the learning rate, whatever the gradient."""
    trainer = DpSgd(
        model="logistic", batch_size=40, epochs=1, noise_multiplier=1.0, optimiser="adam", learning_rate=0.01
    )
    moved = state(trainer.train((X, Y), seed=0)).abs()
    torch.testing.assert_close(moved, torch.full_like(moved, 0.01), rtol=1e-3, atol=0)


def test_adam_is_not_stacked():
    points = (X[:2], Y[:2])
    assert Sgd().group(points, size=40) is not None
    assert Sgd(optimiser="adam").group(points, size=40) is None


def test_layers_that_mix_points_are_named(tmp_path, monkeypatch):
    (tmp_path / "mine_mixing.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Mixing(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.places, self.head = nn.Embedding(6, 3), nn.Linear(18, 2)\n"
        "    def forward(self, x):\n"
        "        return self.head((x[:, :, None] * self.places(torch.arange(6)[None])).flatten(1))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    trainer = DpSgd(model="mine_mixing:Mixing", batch_size=20, epochs=1, noise_multiplier=1.0)
    with pytest.raises(InvalidInput, match="see the points along the first axis of its input, but that of places"):
        trainer.train((X, Y), seed=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "transformer"}, 'a name on the hub such as "roberta-base", or "package:folder", but got None.'),
        ({"encoder": "x"}, "encoder must be left out unless model = \"transformer\", but got 'x'."),
        ({"model": "cifar10-cnn", "n_classes": 2}, 'n_classes must be 10 with model = "cifar10-cnn", but got 2.'),
        ({"optimiser": "adamw"}, "optimiser must be one of sgd, adam, but got 'adamw'."),
        ({"optimiser": "adam", "momentum": 0.9}, 'momentum must be 0 with optimiser = "adam", which has its own, but'),
        ({"optimiser": "adam", "engine": "stacked"}, 'optimiser must be "sgd" with engine = "stacked", but got'),
        ({"physical_batch": 0}, "physical_batch must be 1 or more, but got 0"),
        ({"physical_batch": 1.5}, "physical_batch must be a whole number"),
    ],
)
def test_bad_settings(settings, message):
    for make_trainer in (Sgd, lambda **s: DpSgd(noise_multiplier=1.0, **s)):
        with pytest.raises(InvalidInput) as caught:
            make_trainer(**settings)
        assert message in str(caught.value)
