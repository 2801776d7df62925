"""`eg.watching`: a watch sees every step of a loop that was not edited, and the loop goes on with what it returns."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.probing.recorder import Enough, Recorder
from epsgauge.trainers.watches import GradientCanaries

torch = pytest.importorskip("torch")


def recorder(walk=0.0, stop=None):
    return Recorder(walk=walk, stop=stop, keep=None)


def canaries(privacy=None):
    found = GradientCanaries(
        directions=np.array([0]),
        bits=np.array([1]),
        adjacency="add-remove",
        privacy=privacy or eg.DPSGD(1.0, 1.0, 1),
        sees="updates",
        seed=np.random.SeedSequence(0),
    )
    found.begin()
    return found


def hooks():
    return len(sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks)


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))


def backward(net):
    net(torch.ones(3, 2)).sum().backward()


def loop(net, optimizer, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        backward(net)
        optimizer.step()


@pytest.mark.parametrize("kind", ["SGD", "Adam", "groups"])
def test_every_step_is_seen_and_the_model_moves_by_what_the_watch_says(kind):
    net, watch = model(), recorder()
    params = list(net.parameters())
    before = [p.detach().clone() for p in params]
    given = [{"params": params[:1]}, {"params": params[1:], "lr": 0.5}] if kind == "groups" else params
    optimizer = (torch.optim.Adam if kind == "Adam" else torch.optim.SGD)(given, lr=0.1)
    with eg.watching(watch, max_grad_norm=2.0, divisor=4.0):
        loop(net, optimizer)
    assert (watch.n_steps, watch.shapes) == (3, [(2, 2), (2,), (1, 2), (1,)])
    backward(net)  # to the gradients of three equal steps
    grads = np.concatenate([p.grad.numpy().ravel() for p in params])
    assert watch.updates[0] == pytest.approx(grads * 2)
    for p, b in zip(params, before, strict=True):
        assert torch.equal(p, b)  # it stands still
    assert hooks() == 0


def test_without_a_watch_nothing_happens():
    net, other = model(), model()
    with eg.watching(None, max_grad_norm=1.0) as steps:
        assert steps(3) == 3
        loop(net, torch.optim.SGD(net.parameters(), lr=0.1))
        assert hooks() == 0
    loop(other, torch.optim.SGD(other.parameters(), lr=0.1))
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))


def watched(watch, *loops, error=None):
    """Loops inside a block, which may end with an error."""
    with eg.watching(watch):
        for net, optimizer in loops:
            loop(net, optimizer)
        if error is not None:
            raise error


@pytest.mark.parametrize("error", [ValueError, Enough, KeyboardInterrupt])
def test_hooks_are_gone_after_an_error(error):
    net, watch = model(), recorder(stop=2)
    loops = [(net, torch.optim.SGD(net.parameters(), lr=0.1))] if error is Enough else []
    with pytest.raises(error):
        watched(watch, *loops, error=error)
    assert hooks() == 0
    assert watch.n_steps == (2 if error is Enough else 0)


def test_the_innermost_block_sees_a_step():
    net, outer, inner = model(), recorder(), recorder()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with eg.watching(outer):
        with eg.watching(inner):
            loop(net, optimizer, 2)
        with eg.watching(None):
            loop(net, optimizer, 1)
        loop(net, optimizer, 1)
    assert (outer.n_steps, inner.n_steps) == (2, 2)


def test_a_parameter_without_a_gradient_is_zeros_and_stays_without():
    net, watch = model(), recorder(walk=1.0)
    frozen, unused = net[0].weight.requires_grad_(False), torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([*net.parameters(), unused], lr=0.1)
    with eg.watching(watch):
        loop(net, optimizer, 1)
    assert watch.shapes == [(2, 2), (2,), (1, 2), (1,), (3,)]
    assert not watch.updates[0][:4].any()
    assert frozen.grad is None
    found = canaries()  # a canary goes only where gradients, and so noise, are
    unused.grad = None
    with eg.watching(found, max_grad_norm=1.0):
        loop(net, optimizer, 1)
    assert found.n_steps == 1
    assert unused.grad is None


def test_a_canary_is_in_the_gradient_of_the_step():
    net, other, watch = model(), model(), canaries()
    with eg.watching(watch, max_grad_norm=2.0):
        loop(net, torch.optim.SGD(net.parameters(), lr=0.1), 1)
    loop(other, torch.optim.SGD(other.parameters(), lr=0.1), 1)
    moved = (other[0].weight - net[0].weight).detach().numpy()
    assert moved == pytest.approx(np.array([[0.2, 0.0], [0.0, 0.0]]), abs=1e-6)
    assert "llr" in watch.channels()


def test_closures():
    net, watch = model(), recorder()

    def closure():
        optimizer.zero_grad()
        loss = net(torch.ones(3, 2)).sum()
        loss.backward()
        return loss

    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with eg.watching(watch):
        optimizer.step(closure)
        optimizer.step(closure=closure)
    assert watch.n_steps == 2
    assert watch.updates[0].any()
    optimizer = torch.optim.LBFGS(net.parameters())
    with pytest.raises(InvalidInput, match="LBFGS calls its closure several times"), eg.watching(recorder()):
        optimizer.step(closure)


class Lookahead(torch.optim.Optimizer):
    """An optimizer that holds another one."""

    def __init__(self, inner):
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure=None):
        self.inner.step()


def test_of_optimizers_that_hold_others_the_lowest_counts_once():
    net, watch = model(), recorder()
    with eg.watching(watch):
        loop(net, Lookahead(torch.optim.SGD(net.parameters(), lr=0.1)))
    assert watch.n_steps == 3


def test_a_new_optimizer_for_the_same_parameters_goes_on():
    net, watch = model(), recorder()
    with eg.watching(watch):
        for rate in (0.1, 0.01):
            loop(net, torch.optim.SGD(net.parameters(), lr=rate), 2)
    assert watch.n_steps == 4


def test_bad_input_is_one_sentence():
    net = model()
    one, two = (torch.optim.SGD(layer.parameters(), lr=0.1) for layer in net)
    with pytest.raises(InvalidInput, match="sees one optimizer"):
        watched(recorder(), (net, one), (net, two))
    with pytest.raises(InvalidInput, match="an audit needs max_grad_norm"), eg.watching(canaries()):
        loop(net, one, 1)
    with pytest.raises(InvalidInput, match="steps\\(\\) needs the weights"), eg.watching(recorder()) as steps:
        steps()
    with (
        pytest.raises(InvalidInput, match="their shapes are others"),
        eg.watching(recorder(), weights=np.zeros(2)) as steps,
    ):
        steps(np.zeros(3))
    with pytest.raises(InvalidInput, match="weights must be arrays"), eg.watching(recorder(), weights=[1.0, 2.0]):
        pass
    assert hooks() == 0


# Weights before and after a step


@pytest.mark.parametrize("kind", ["torch", "numpy", "dict"])
def test_the_update_is_what_the_weights_lost(kind):
    made = {"b": np.ones(2), "w": np.ones(3)}
    weights = {"torch": torch.ones(3), "numpy": np.ones(3), "dict": made}[kind]
    parts = list(made.values()) if kind == "dict" else [weights]
    watch = recorder(walk=1.0)
    with eg.watching(watch, weights=weights, max_grad_norm=0.5) as steps:
        for part in parts:
            part -= 0.25
        first = [part + 0.25 for part in parts]
        assert steps() is weights or kind == "dict"
        assert watch.updates[0] == pytest.approx(0.5)
        for part in parts:
            part -= 0.5
        steps(weights)
    assert watch.updates[1] == pytest.approx(1.0)  # of where the script has put them
    for part, before in zip(parts, first, strict=True):
        assert not np.allclose(part, before)


def test_weights_that_stand_still():
    weights, watch = torch.ones(3, requires_grad=True), recorder()
    with eg.watching(watch, weights=iter([weights])) as steps, torch.no_grad():
        for _ in range(3):
            weights -= 1.0
            steps()
    assert weights.tolist() == [1.0] * 3
    assert [update.tolist() for update in watch.updates] == [[1.0] * 3] * 3


def test_arrays_of_jax_are_returned():
    jnp = pytest.importorskip("jax.numpy")
    params, watch = {"w": jnp.ones(3)}, recorder()
    with eg.watching(watch, weights=params) as steps:
        params = steps({"w": params["w"] - 0.5})
        assert params["w"].tolist() == [1.0] * 3
        with pytest.raises(InvalidInput, match="params = steps"):
            steps()


def test_the_last_model_is_shown():
    privacy = eg.DPSGD(1.0, 1.0, 1)
    watch = GradientCanaries(
        directions=np.array([1]),
        bits=np.array([1]),
        adjacency="add-remove",
        privacy=privacy,
        sees="model",
        seed=np.random.SeedSequence(0),
    )
    watch.begin()
    weights = np.zeros(3)
    with eg.watching(watch, weights=weights, max_grad_norm=2.0) as steps:
        weights -= 1.0
        steps()
    assert watch.channels()["displacement"] == pytest.approx([3.0])


# Opacus


def private(kind, *, seen=None, watch=None, epochs=2):
    """Train with Opacus; what the accountant heard."""
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(1)
    net, engine = model(), PrivacyEngine()
    data = TensorDataset(torch.randn(40, 2), torch.randint(0, 2, (40,)).float())
    more = {"grad_sample_mode": "ghost"} if kind == "ghost" else {}
    if kind == "adaptive":
        more = {
            "clipping": "adaptive",
            "target_unclipped_quantile": 0.5,
            "clipbound_learning_rate": 0.2,
            "max_clipbound": 10.0,
            "min_clipbound": 0.01,
            "unclipped_num_std": 5.0,
        }
    if kind == "layers":
        more = {"clipping": "per_layer"}

    def loss(x, y):
        return torch.nn.functional.binary_cross_entropy_with_logits(x.reshape(-1), y)

    made = engine.make_private(
        module=net,
        optimizer=torch.optim.Adam(net.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=10),
        noise_multiplier=1.0,
        max_grad_norm=[0.4] * 4 if kind == "layers" else 0.8,
        **({**more, "criterion": torch.nn.BCEWithLogitsLoss()} if kind == "ghost" else more),
    )
    net, optimizer, *criterion, loader = made
    if seen is not None:
        optimizer.attach_step_hook(seen)
    with eg.watching(watch):
        for _ in range(epochs):
            if kind == "pieces":
                with BatchMemoryManager(data_loader=loader, max_physical_batch_size=3, optimizer=optimizer) as cut:
                    _epoch(net, optimizer, cut, loss)
            else:
                _epoch(net, optimizer, loader, criterion[0] if criterion else loss)
    return engine.accountant.history


def _epoch(net, optimizer, loader, loss):
    for x, y in loader:
        optimizer.zero_grad()
        loss(net(x) if loss.__class__.__name__ == "function" else net(x).reshape(-1), y).backward()
        optimizer.step()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["flat", "pieces", "layers", "ghost", "adaptive"])
def test_opacus_is_seen_as_by_its_hook(kind):
    """The same updates with the same norms, of whole batches alone, and the accountant counts them."""
    pytest.importorskip("opacus")
    by_hook, by_block = recorder(walk=0.1), recorder(walk=0.1)
    heard = private(kind, seen=by_hook)
    assert private(kind, watch=by_block) == heard
    assert by_block.n_steps == by_hook.n_steps == 8
    assert sum(steps for *_, steps in heard) == 8
    assert sorted(by_block.norms) == pytest.approx(sorted(by_hook.norms))
    for a, b in zip(by_block.updates, by_hook.updates, strict=True):
        assert a == pytest.approx(b, rel=1e-4, abs=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_public_optimizers_beside_one_of_opacus_are_not_seen():
    pytest.importorskip("opacus")
    net, watch = model(), recorder()
    with eg.watching(watch):
        private("flat", epochs=1, watch=None)
        loop(net, torch.optim.SGD(net[0].parameters(), lr=0.1))
    assert watch.n_steps == 4
    assert watch.norms == {0.8}


@pytest.mark.long
def test_the_white_box_sees_a_loop_that_was_not_edited(tmp_path):
    """Gradient canaries go through Adam as in an edited loop."""
    from tiny_runs import played

    plan = eg.Plan(
        name="unedited",
        n_models=40,
        data="torch_loops:data",
        trainer={"use": "torch_loops:Adam", "noise_multiplier": 0.5, "stated": 1.0},
        game={"train_size": 300, "control_models": 0},
        adversary={"preset": "white-box"},
        audit={"rule": "given", "threshold": 0.0},
    )
    scores = eg.audit(played(plan, tmp_path / "run")).judged
    assert scores.tally.tp + scores.tally.tn > 0.75 * scores.tally.n_samples
