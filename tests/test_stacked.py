"""Many models at once: equal to Opacus model by model, whatever the neighbours; noise; what cannot be stacked."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch.nn.functional import cross_entropy

from epsgauge.errors import InvalidInput
from epsgauge.trainers import opacus_engine
from epsgauge.trainers.protocol import Group
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.stacked import convolution
from epsgauge.trainers.stacked.chain import supports
from epsgauge.trainers.stacked.draws import draws
from epsgauge.trainers.stacked.engine import fit_many
from epsgauge.trainers.stacked.group import group_for, width_for
from epsgauge.trainers.stacked.images import pool
from epsgauge.trainers.stacked.plain import PlainRecipe
from epsgauge.trainers.streams import streams, torch_seed, torch_seeded

N = 60
CPU = torch.device("cpu")
_made = torch.Generator().manual_seed(0)
FLAT = torch.randn(N, 6, generator=_made)
IMAGES = torch.randn(N, 2, 8, 8, generator=_made)
IMAGES[:, :, :3] = 0  # blank, as the edges of digits are
WORDS = torch.randint(0, 12, (N, 5), generator=_made)
PLACES = torch.randn(N, 4, 6, generator=_made)
Y = torch.randint(0, 3, (N,), generator=_made)
RECIPE = Recipe(
    steps=20,
    sample_rate=0.2,
    batch_size=12,
    noise_multiplier=0.0,
    max_grad_norm=0.7,
    learning_rate=0.5,
    momentum=0.0,
)


CASES = {
    "linear": (FLAT, lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))),
    "linear alone": (FLAT, lambda: nn.Linear(6, 3)),
    "no bias": (
        FLAT,
        lambda: nn.Sequential(
            nn.Linear(6, 5, bias=False),
            nn.GELU(),
            nn.Sequential(nn.Linear(5, 4, bias=False), nn.SiLU()),
            nn.Linear(4, 3),
        ),
    ),
    "flatten first": (IMAGES, lambda: nn.Sequential(nn.Flatten(), nn.Linear(128, 5), nn.ReLU(), nn.Linear(5, 3))),
    "convolution": (
        IMAGES,
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(4, 5, 3, stride=2, padding=1, bias=False), nn.Tanh(), nn.AvgPool2d(2)),
            *(nn.Flatten(), nn.Linear(5, 3)),
        ),
    ),
    "odd convolutions": (
        IMAGES,
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, (3, 2), stride=(1, 2), dilation=(2, 1), padding=(2, 0)), nn.Sigmoid()),
            *(nn.MaxPool2d(3, 2, 1), nn.Conv2d(4, 5, 3, padding="same"), nn.ELU(), nn.AdaptiveAvgPool2d((2, 1))),
            *(nn.Flatten(), nn.Linear(10, 3)),
        ),
    ),
    "group norm": (
        IMAGES,
        lambda: nn.Sequential(
            *(nn.GroupNorm(1, 2), nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Conv2d(4, 4, 3)),
            *(nn.GroupNorm(4, 4, affine=False), nn.Flatten(), nn.Linear(64, 3)),
        ),
    ),
    "layer norm": (
        FLAT,
        lambda: nn.Sequential(
            nn.LayerNorm(6), nn.Linear(6, 5), nn.LayerNorm(5), nn.LeakyReLU(0.1), nn.Identity(), nn.Linear(5, 3)
        ),
    ),
    "layer norm of images": (
        IMAGES,
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 4, 3), nn.LayerNorm((4, 6, 6)), nn.LayerNorm((6, 6)), nn.LayerNorm(6)),
            *(nn.Flatten(), nn.Linear(144, 3)),
        ),
    ),
    "embedding": (
        WORDS,
        lambda: nn.Sequential(
            nn.Embedding(12, 4), nn.Linear(4, 5), nn.Tanh(), nn.LayerNorm(5), nn.Flatten(), nn.Linear(25, 3)
        ),
    ),
    "places": (
        PLACES,
        lambda: nn.Sequential(
            *(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3), nn.Softplus(), nn.Softmax(-1)),
            *(nn.Flatten(), nn.Linear(12, 3)),
        ),
    ),
    "linear on images": (
        IMAGES,
        lambda: nn.Sequential(
            nn.Linear(8, 5), nn.Softmax(1), nn.Tanh(), nn.Flatten(), nn.Linear(80, 3), nn.LogSoftmax(1)
        ),
    ),
}


def built(factory, seed):
    with torch_seeded(streams(seed).initialisation, CPU):
        return factory()


def by_opacus(factory, data, recipe, seed):
    start, batches, noise = streams(seed)
    with torch_seeded(start, CPU):
        model = factory()
        opacus_engine.fit(
            model,
            *data,
            recipe,
            batches=np.random.default_rng(batches),
            noise=torch.Generator().manual_seed(torch_seed(noise)),
        )
    return model


def together(factory, datas, recipe, seeds, *, size=None, width=None):
    models = [built(factory, seed) for seed in seeds]
    group = Group(size=size or len(models), width=width or width_for(recipe))
    fit_many(models, datas, recipe, streams=[streams(seed) for seed in seeds], group=group)
    return models


def data_of(x, seed):
    """The data of a model: the last point is its own."""
    x, y = x.clone(), Y.clone()
    x[-1], y[-1] = x[seed], Y[seed]
    return x, y


def state(model):
    return torch.cat([p.detach().ravel() for p in model.parameters()])


def gap(a, b):
    return float((state(a) - state(b)).abs().max())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("changes", "width"), [({}, None), ({"momentum": 0.9, "noise_multiplier": 0.3}, 7)], ids=["plain", "overflow"]
)
def test_each_layer_is_as_opacus_has_it(case, changes, width):
    """With noise too, as both engines draw the same; at width 7 nearly every batch is computed in pieces."""
    x, factory = CASES[case]
    recipe = replace(RECIPE, **changes)
    seeds = [1, 2, 3]
    models = together(factory, [data_of(x, s) for s in seeds], recipe, seeds, size=4, width=width)
    for model, seed in zip(models[1:], seeds[1:], strict=True):
        assert gap(model, by_opacus(factory, data_of(x, seed), recipe, seed)) < 1e-5
        assert gap(model, built(factory, seed)) > 0.03


def test_the_cases_clip():
    for case, (x, factory) in CASES.items():
        model = built(factory, 1)
        norms = []
        for i in range(N):
            gradient = torch.autograd.grad(cross_entropy(model(x[i : i + 1]), Y[i : i + 1]), list(model.parameters()))
            norms.append(float(torch.cat([g.ravel() for g in gradient]).norm()))
        assert max(norms) > RECIPE.max_grad_norm, case


@pytest.mark.parametrize("size", [1, 3, 17])
def test_groups_of_any_size(size):
    x, factory = CASES["linear"]
    models = together(factory, [data_of(x, s) for s in range(size)], RECIPE, range(size))
    for seed, model in enumerate(models):
        assert gap(model, by_opacus(factory, data_of(x, seed), RECIPE, seed)) < 1e-5


@pytest.mark.parametrize("case", ["linear", "convolution", "embedding"])
def test_empty_batches_are_steps(case):
    x, factory = CASES[case]
    recipe = replace(RECIPE, batch_size=1, sample_rate=0.4 / N, noise_multiplier=0.2, momentum=0.5, learning_rate=0.1)
    group = Group(size=2, width=width_for(recipe))
    places = [np.arange(N)] * 2
    generators = [np.random.default_rng(streams(s).batches) for s in (1, 2)]
    counts = np.concatenate([d.counts for d in draws(recipe, generators, places, group)])
    assert (counts == 0).all(axis=1).any()
    assert (counts == 0).sum() > 5
    models = together(factory, [data_of(x, s) for s in (1, 2)], recipe, [1, 2])
    for seed, model in zip((1, 2), models, strict=True):
        assert gap(model, by_opacus(factory, data_of(x, seed), recipe, seed)) < 1e-5


def test_no_draw_is_cut_off():
    """Widths change how a batch is laid out, and no point of it."""
    places = [np.arange(N) + 1, np.arange(N - 1) + 1]
    seen = []
    for width in (3, 12, 60):
        generators = [np.random.default_rng(s) for s in (1, 2)]
        (some,) = draws(RECIPE, generators, places, Group(size=3, width=width))
        seen.append([[np.sort(r[r > 0]) for r in some.pieces(s).swapaxes(0, 1)] for s in range(RECIPE.steps)])
        assert (some.counts[:, 2] == 0).all()
    rng = np.random.default_rng(2)
    for step in range(RECIPE.steps):
        drawn = np.flatnonzero(rng.random(N - 1) < RECIPE.sample_rate) + 1
        for laid_out in seen:
            np.testing.assert_array_equal(laid_out[step][1], drawn)


def test_a_point_left_out():
    """Models of a group may have n or n − 1 points; rate, steps and divisor are those of n."""
    _, factory = CASES["linear"]
    recipe = replace(RECIPE, noise_multiplier=0.5)
    datas = [(FLAT, Y), (FLAT[:-1], Y[:-1]), (FLAT[1:], Y[1:]), (FLAT[:0], Y[:0])]
    models = together(factory, datas, recipe, range(4), size=5)
    for seed, (model, data) in enumerate(zip(models, datas, strict=True)):
        assert gap(model, by_opacus(factory, data, recipe, seed)) < 1e-5


def test_ties_of_pooling_go_where_torch_sends_them():
    """Small whole numbers and blank areas: nearly every window has a tie."""
    images = torch.randint(0, 2, (3, 4, 5, 9, 9), generator=torch.Generator().manual_seed(1)).float()
    images[:, :, :, :4] = 0
    for module in (
        nn.MaxPool2d(2),
        nn.MaxPool2d(3, 2, 1),
        nn.MaxPool2d(2, 1, ceil_mode=True),
        nn.MaxPool2d(2, dilation=2),
    ):
        plain = images.flatten(0, 1).requires_grad_()
        out = module(plain)
        g = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
        (expected,) = torch.autograd.grad(out, plain, g)
        layer = pool(module)
        here = layer.forward(images.movedim(2, -1).contiguous())
        assert torch.equal(here.movedim(-1, 2).flatten(0, 1), out)
        back = layer.backward(g.unflatten(0, (3, 4)).movedim(2, -1).contiguous())
        assert torch.equal(back.movedim(-1, 2).flatten(0, 1), expected)


def test_ties_on_blank_pixels_in_training():
    x = (IMAGES[:, :1] > 1).float()

    def factory():
        model = nn.Sequential(
            *(
                nn.Conv2d(1, 4, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(4, 4, 3, padding=1),
                nn.MaxPool2d(2),
            ),
            *(nn.Flatten(), nn.Linear(16, 3)),
        )
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(8).round_().div_(8)  # so that sums are exact, and equal ones are equal
        return model

    for below, share in ((2, 0.5), (4, 0.1)):
        windows = built(factory, 1)[:below](x).unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
        first, second = windows.topk(2).values.unbind(-1)
        assert (first == second).float().mean() > share
    models = together(factory, [(x, Y)] * 2, RECIPE, [1, 2])
    for seed, model in zip((1, 2), models, strict=True):
        assert gap(model, by_opacus(factory, (x, Y), RECIPE, seed)) < 1e-5


def with_dropout():
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, 3))


@pytest.mark.parametrize("case", ["linear", "convolution", "embedding", "group norm", "dropout"])
def test_neighbours_do_not_matter(case):
    """Bit for bit: other neighbours, none, ones with the same or other data, and ones whose batches overflow."""
    x, factory = (FLAT, with_dropout) if case == "dropout" else CASES[case]
    recipe = replace(RECIPE, noise_multiplier=0.5, momentum=0.5)
    shuffled = torch.randperm(N, generator=torch.Generator().manual_seed(3))
    mine, other, half = data_of(x, 5), (x[shuffled], Y[shuffled]), (x[:30], Y[:30])

    def second(datas, seeds):
        return state(together(factory, datas, recipe, seeds, size=4, width=16)[1])

    expected = second([mine, mine, mine, mine], [1, 7, 2, 3])
    assert torch.equal(second([half, mine], [11, 7]), expected)
    assert torch.equal(second([(x[:0], Y[:0]), mine], [9, 7]), expected)  # a place kept for one that is not played
    assert torch.equal(second([other, mine, other], [12, 7, 13]), expected)
    tripled = (torch.cat([x] * 3), torch.cat([Y] * 3))  # about 36 points a step
    assert torch.equal(second([tripled, mine, half, tripled], [4, 7, 5, 6]), expected)
    assert not torch.allclose(second([mine, mine], [1, 8]), expected, atol=1e-2)


def test_patches_made_once_or_at_each_step(monkeypatch):
    """Which of them depends on how many points the neighbours have of their own; the bits do not."""
    x, factory = CASES["convolution"]
    states = []
    for most in (2**26, 0):
        monkeypatch.setattr(convolution, "_LARGEST_TABLE", most)
        states.append(state(together(factory, [data_of(x, 1)] * 3, RECIPE, [1, 2, 3])[2]))
    assert torch.equal(*states)


# Noise


def changes_by_noise(scale, *, size=40, steps=2):
    """What steps on points of zeros change: noise alone. [steps, models, parameters] in units of σ C / batch."""
    zeros, labels = torch.zeros(N, 20), torch.zeros(N, dtype=torch.int64)
    recipe = replace(RECIPE, noise_multiplier=1.5 * scale, max_grad_norm=2.0, learning_rate=1.0)

    def after(n_steps):
        models = together(
            lambda: nn.Linear(20, 15, bias=False), [(zeros, labels)] * size, replace(recipe, steps=n_steps), range(size)
        )
        return torch.stack([state(model) for model in models]).double()

    start = torch.stack([state(built(lambda: nn.Linear(20, 15, bias=False), s)) for s in range(size)]).double()
    states = [start, *(after(n) for n in range(1, steps + 1))]
    return np.stack([(a - b).numpy() for a, b in itertools.pairwise(states)]) / (1.5 * 2.0 / 12)


def two_sided(total, n):
    """The p-value of a sum of n squared standard normal numbers."""
    return 2 * min(stats.chi2.cdf(total, n), stats.chi2.sf(total, n))


def test_noise_has_the_right_scale_and_is_independent():
    z = changes_by_noise(1.0)
    assert two_sided(float((z**2).sum()), z.size) > 1e-3
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    # rows of different models and steps: with 300 numbers each, a correlation is normal with deviation 300^-½
    rows = z.reshape(-1, z.shape[2])
    r = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
    assert np.abs(r).max() < stats.norm.isf(1e-3 / (2 * len(r))) / np.sqrt(z.shape[2])
    assert two_sided(float((changes_by_noise(1.1) ** 2).sum()), z.size) < 1e-12


def test_final_losses_are_those_of_opacus(capsys):
    """Over 200 seeds, from seeds of their own; and a noise that is larger by a tenth is found out."""
    recipe = replace(RECIPE, steps=6, noise_multiplier=8.0)
    wide = torch.randn(N, 50, generator=torch.Generator().manual_seed(4))  # many parameters: losses that vary little

    def loss(model):
        with torch.no_grad():
            return float(cross_entropy(model(wide), Y))

    def factory():
        return nn.Sequential(nn.Linear(50, 3))

    theirs = np.array([loss(by_opacus(factory, (wide, Y), recipe, s)) for s in range(200)])

    def ours(scale, first):
        scaled = replace(recipe, noise_multiplier=scale * recipe.noise_multiplier)
        models = together(factory, [(wide, Y)] * 200, scaled, range(first, first + 200))
        return np.array([loss(model) for model in models])

    def compare(losses):
        difference = losses.mean() - theirs.mean()
        error = np.sqrt(losses.var(ddof=1) / 200 + theirs.var(ddof=1) / 200)
        return stats.ks_2samp(losses, theirs).pvalue, difference, error

    right, wrong = compare(ours(1.0, 1000)), compare(ours(1.1, 1000))
    with capsys.disabled():
        for name, (p, difference, error) in (("stacked", right), ("noise times 1.1", wrong)):
            words = f"{name} against Opacus: KS p = {p:.3g}, means differ by {difference:.4f} ± {error:.4f}"
            print(f"\n{words}", end="")  # noqa: T201
    assert right[0] > 0.01
    assert abs(right[1]) < 3 * right[2]
    assert wrong[0] < 1e-4
    assert abs(wrong[1]) > 4 * wrong[2]
    np.testing.assert_allclose(ours(1.0, 0), theirs, rtol=1e-4)  # and with the same seeds, one by one


# Without privacy


def slow_sgd(factory, data, recipe, seed):
    x, y = data
    start, batches, _ = streams(seed)
    rng = np.random.default_rng(batches)
    with torch_seeded(start, CPU):
        model = factory()
    optimiser = torch.optim.SGD(model.parameters(), lr=recipe.learning_rate, momentum=recipe.momentum)
    for _ in range(recipe.epochs):
        for batch in np.array_split(rng.permutation(len(x)), recipe.batches):
            if len(batch):
                optimiser.zero_grad()
                cross_entropy(model(x[batch]), y[batch]).backward()
                optimiser.step()
    return model


@pytest.mark.parametrize("case", CASES)
def test_plain_sgd(case):
    x, factory = CASES[case]
    recipe = PlainRecipe(epochs=2, batches=7, batch_size=9, learning_rate=0.1, momentum=0.5)
    models = together(factory, [data_of(x, s) for s in (1, 2)], recipe, [1, 2], size=3)
    for seed, model in zip((1, 2), models, strict=True):
        assert gap(model, slow_sgd(factory, data_of(x, seed), recipe, seed)) < 1e-5


def test_plain_sgd_skips_an_empty_batch():
    """60 batches of one point, of which one is left out: its batch is no step, and momentum stays."""
    x, factory = CASES["linear"]
    recipe = PlainRecipe(epochs=2, batches=N, batch_size=1, learning_rate=0.05, momentum=0.9)
    datas = [(x, Y), (x[:-1], Y[:-1])]
    for seed, model in enumerate(together(factory, datas, recipe, [0, 1])):
        assert gap(model, slow_sgd(factory, datas[seed], recipe, seed)) < 1e-5


def test_layer_norm_without_shift():
    """Opacus has no rule for it; autograd has."""

    def factory():
        return nn.Sequential(nn.LayerNorm(6, bias=False), nn.Linear(6, 3))

    recipe = PlainRecipe(epochs=2, batches=7, batch_size=9, learning_rate=0.1, momentum=0.0)
    (model,) = together(factory, [(FLAT, Y)], recipe, [1])
    assert gap(model, slow_sgd(factory, (FLAT, Y), recipe, 1)) < 1e-5


# Parts of a model


@pytest.mark.parametrize("frozen", [0, 2])
def test_a_frozen_layer_stays(frozen):
    def factory():
        model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
        model[frozen].requires_grad_(False)
        return model

    recipe = replace(RECIPE, noise_multiplier=0.5)
    _, model = together(factory, [(FLAT, Y)] * 2, recipe, [1, 2])
    assert gap(model, by_opacus(factory, (FLAT, Y), recipe, 2)) < 1e-5
    assert torch.equal(model[frozen].weight, built(factory, 2)[frozen].weight)


def test_dropout_leaves_out_as_often_as_it_says():
    def factory():
        model = nn.Sequential(nn.Dropout(0.25), nn.Linear(50, 2, bias=False))
        nn.init.zeros_(model[1].weight)
        return model

    recipe = replace(RECIPE, steps=1, batch_size=N, sample_rate=1.0, max_grad_norm=1e6, learning_rate=1.0)
    ones, labels = torch.ones(N, 50), torch.zeros(N, dtype=torch.int64)
    one, two = together(factory, [(ones, labels)] * 2, recipe, [1, 2])
    kept = one[1].weight[0].double() * 2 * 0.75 * N  # of N points; a gradient is ½ of an input, which is 0 or 4/3
    torch.testing.assert_close(kept, kept.round(), atol=1e-3, rtol=0)
    assert two_sided_binomial(int(kept.sum().round()), 50 * N, 0.75) > 1e-3
    assert not torch.equal(one[1].weight, two[1].weight)
    again, _ = together(factory, [(ones, labels)] * 2, recipe, [1, 3])
    assert torch.equal(one[1].weight, again[1].weight)


def two_sided_binomial(k, n, p):
    return stats.binomtest(k, n, p).pvalue


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def forward(self, x):
        return self.layer(x)


class OwnLinear(nn.Linear):
    pass


def shared():
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, layer, nn.Linear(6, 3))


def hooked():
    model = nn.Sequential(nn.Linear(6, 3))
    model[0].register_forward_hook(lambda *_: None)
    return model


def half_frozen():
    model = nn.Sequential(nn.Linear(6, 3))
    model[0].bias.requires_grad_(False)
    return model


@pytest.mark.parametrize(
    ("x", "factory", "reason"),
    [
        (FLAT, lambda: nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3)), "its layer 1 is a BatchNorm1d"),
        (FLAT, lambda: nn.Sequential(nn.Sequential(nn.Linear(6, 3), nn.RReLU())), "its layer 0.1 is a RReLU"),
        (FLAT, Own, "its layer itself is a Own, whose forward is not known"),
        (FLAT, lambda: nn.Sequential(OwnLinear(6, 3)), "its layer 0 is a OwnLinear, whose forward is not known"),
        (FLAT, shared, "its layer 1 shares parameters with another"),
        (FLAT, hooked, "its layer 0 has hooks"),
        (FLAT, half_frozen, "its layer 0 is a Linear of which only a part is trained"),
        (FLAT, lambda: nn.Sequential(nn.Tanh()), "it has no parameters to train"),
        (FLAT, lambda: nn.Sequential(nn.Linear(6, 3), nn.Softmax(0)), "its layer 1 is a Softmax"),
        (PLACES, lambda: nn.Sequential(nn.Linear(6, 3)), "its outputs have 2 dimensions a point"),
        (IMAGES, lambda: nn.Sequential(nn.Conv2d(2, 2, 3, groups=2)), "its layer 0 is a Conv2d with groups or padding"),
        (IMAGES, lambda: nn.Sequential(nn.Conv2d(2, 2, 2, padding="same")), "padding that is not the same on both"),
        (FLAT, lambda: nn.Sequential(nn.Conv2d(2, 2, 3)), "its layer 0 is a Conv2d"),
        (IMAGES, lambda: nn.Sequential(nn.MaxPool2d(2, return_indices=True)), "its layer 0 is a MaxPool2d"),
        (WORDS, lambda: nn.Sequential(nn.Embedding(12, 4, padding_idx=0)), "is a Embedding with padding_idx"),
        (Y, lambda: nn.Sequential(nn.Embedding(12, 4)), "a point is a single number"),
    ],
)
def test_what_cannot_be_stacked(x, factory, reason):
    model = factory()
    assert reason in supports(model, x)
    with pytest.raises(InvalidInput) as caught:
        fit_many([model], [(x, Y)], RECIPE, streams=[streams(0)], group=Group(size=1, width=12))
    expected = (
        f'the model must be one that engine = "stacked" can train, but {supports(model, x)}. Use engine = "opacus".'
    )
    assert str(caught.value) == expected


def test_what_can_be_stacked():
    for x, factory in CASES.values():
        assert supports(factory(), x) is None


# Groups


def test_groups_depend_on_the_constants_alone():
    assert width_for(RECIPE) == 24
    assert width_for(replace(RECIPE, batch_size=100, sample_rate=0.1)) == 136
    assert width_for(PlainRecipe(epochs=1, batches=7, batch_size=9, learning_rate=0.1, momentum=0.0)) == 9
    digits = torch.zeros(1, 64)
    recipe = replace(RECIPE, steps=100, batch_size=100, sample_rate=0.1)
    mlp = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    cnn = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.Flatten(), nn.Linear(512, 10))
    assert group_for(nn.Linear(64, 10), digits, recipe) == Group(size=100, width=136)
    assert group_for(mlp, digits, recipe) == Group(size=36, width=136)
    assert group_for(cnn, digits.view(1, 1, 8, 8), recipe) == Group(size=8, width=136)
    assert group_for(mlp, digits, replace(recipe, steps=100_000)).size == 1
    assert not any(m._forward_hooks for m in cnn.modules())
