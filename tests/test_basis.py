"""What a claim rests on: the probe that a run begins with, and what its findings do to a verdict."""

import json
from dataclasses import dataclass, replace

import pytest
from command_line import told
from tiny_runs import evidence_of_tally

import epsgauge as eg
from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.basis import TESTED, Basis, basis_of
from epsgauge.auditing.claim import Claim, NoClaim
from epsgauge.auditing.gate import gate
from epsgauge.auditing.verdict import Judge, verdict
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.methods.table import METHODS
from epsgauge.probing.finding import Finding
from epsgauge.probing.result import Probe, Unprobed, from_json
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import PROBED_FROM, Plan
from epsgauge.runner.progress import Watch
from epsgauge.runner.run import run
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.view import Run
from epsgauge.stats.tally import Tally
from zoo import network

TRAINED = DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)
HALF = Finding("noise", "refuted", "The noise is at most 0.5 clipping norms, where 1 is accounted.", noise=0.5)
SHUFFLED = Finding("Poisson batches", "refuted", "Batches are not drawn by coins.")
LEFT_OUT = Finding("left out", "refuted", "With one record fewer, there is one step less.")
CLIPS_LAYERS = network.ClipsLayers()
WHO = Adversary("loss", "threshold 1 fixed beforehand", "black box: the loss of z1")


def probed(*findings, adjacency="substitute"):
    return Probe(TRAINED, 1e-5, adjacency, 10.5, None, None, findings, 115, 1.0)


def claim(eps=None, adjacency="substitute"):
    """The accountant's, or a stated one."""
    says = accountant_eps(TRAINED, delta=1e-5, adjacency=adjacency)
    return Claim(says if eps is None else eps, 1e-5, adjacency, "accountant" if eps is None else "stated")


# Which findings count


def test_noise_that_is_missing_breaks_the_accountants_claim_and_says_what_is_spent():
    found = basis_of(claim(), TRAINED, probed(HALF))
    really = accountant_eps(replace(TRAINED, noise_multiplier=0.5), delta=1e-5, adjacency="substitute")
    assert found.broken == (HALF,)
    assert really - 0.05 < found.eps <= really
    assert found.said.startswith("Noise: The noise is at most 0.5 clipping norms")
    assert "would say at least ε = " in found.said


def test_a_claim_that_covers_what_was_found_stands():
    assert basis_of(claim(1000.0), TRAINED, probed(HALF)) == Basis(probed(HALF))
    found = basis_of(claim(20.0), TRAINED, probed(HALF))  # half the noise spends more than that
    assert found.broken == (HALF,)


def test_what_no_accountant_has_a_number_for_breaks_every_claim():
    found = basis_of(claim(1000.0), TRAINED, probed(SHUFFLED, HALF))
    assert found.broken == (SHUFFLED, HALF)


def test_the_number_of_records_is_private_only_where_records_are_added_or_removed():
    assert basis_of(claim(), TRAINED, probed(LEFT_OUT)).broken == ()
    assert basis_of(claim(adjacency="add-remove"), TRAINED, probed(LEFT_OUT)).broken == (LEFT_OUT,)


def test_a_stated_claim_below_what_the_numbers_spend_is_broken_without_any_probe():
    (found,) = basis_of(claim(2.0), TRAINED, None).broken
    assert (found.name, found.result) == ("accounting", "refuted")
    assert "ε = 2 is claimed, but rate 0.1, noise 1 and 100 steps spend at least 10.5" in found.sentence
    assert basis_of(claim(10.6), TRAINED, None).broken == ()


@pytest.mark.parametrize("privacy", [None, eg.KnownPrivacy(eps=1.0, adjacency="substitute")])
def test_of_other_mechanisms_nothing_is_probed(privacy):
    assert basis_of(claim(0.5), privacy, None) == Basis()


# What they do to a verdict


def ruled(tally, about, basis):
    by = {"judge": Judge(METHODS["clopper-pearson"], "guaranteed"), "several": False, "adversary": WHO, "basis": basis}
    return verdict(about, evidence_of_tally(tally, (0, 0)), level=0.99, delta=1e-5, **by)


WEAK, STRONG = Tally(tp=260, fn=240, tn=260, fp=240), Tally(tp=499, fn=1, tn=499, fp=1)


def test_a_claim_without_its_basis_is_unsupported_whatever_the_attack_sees():
    found = ruled(WEAK, claim(), basis_of(claim(), TRAINED, probed(HALF)))
    assert found.kind == "unsupported"
    assert found.sentence.startswith("Unsupported: the training is not what the accountant's claim ε = 10.6 at δ = ")
    assert "Noise: The noise is at most 0.5" in found.sentence
    assert "The adversary: attack loss" in found.sentence
    assert "does not hold" not in found.sentence


def test_a_guaranteed_violation_stays_one_and_says_what_the_probe_found():
    about = claim(1.0)
    found = ruled(STRONG, about, basis_of(about, TRAINED, probed(HALF)))
    assert found.kind == "violation"
    assert "Noise: The noise is at most 0.5" in found.sentence


def test_a_probe_that_tested_little_changes_nothing():
    with_probe = ruled(WEAK, claim(), basis_of(claim(), TRAINED, probed()))
    assert with_probe.kind == "cannot decide"
    assert with_probe.sentence == ruled(WEAK, claim(), None).sentence


def test_a_probe_that_tested_all_could_have_refuted_the_claim():
    """A blind attack with a clean probe has found no objection, and says that the attack added nothing."""
    clean = probed(*(Finding(name, "consistent", "As accounted.") for name in TESTED))
    found = ruled(WEAK, claim(), basis_of(claim(), TRAINED, clean))
    assert found.kind == "no objection"
    assert "The game adds nothing to the probe: a game of this size" in found.sentence
    for name in TESTED:  # and one that did not test everything has not
        some = probed(*(Finding(each, "consistent", "As accounted.") for each in TESTED - {name}))
        assert ruled(WEAK, claim(), basis_of(claim(), TRAINED, some)).kind == "cannot decide"


def test_without_a_claim_there_is_nothing_to_support():
    assert ruled(WEAK, NoClaim("none."), Basis(probed(HALF))).kind == "no claim"


# The probe of a run


@dataclass(frozen=True)
class Blind(network.Correct):
    """Takes no watch."""

    def train(self, data, *, seed):
        return super().train(data, seed=seed)


def plan(trainer=CLIPS_LAYERS, **changes):
    game = {"train_size": 250, "challenge": "average", "reference_size": 10, "control_models": 0}
    values = {"name": "zoo", "n_models": 40, "data": "zoo.network:data", "trainer": trainer, "game": game}
    return Plan(**{**values, "probe": True, **changes})


class Tells(Watch):
    def __init__(self):
        self.said, self.stages = [], []

    def stage(self, name):
        self.stages.append(name)

    def probed(self, probe):
        self.said.append(probe)


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A run whose training clips each layer to the whole norm; forty models cannot show it."""
    out, watch = tmp_path_factory.mktemp("basis") / "run", Tells()
    run(plan(), out=out, executor=InProcess(), watch=watch)
    return out, watch


def test_a_run_probes_its_training_first_and_keeps_what_was_found(broken):
    out, watch = broken
    found = Run.open(out).probe
    assert watch.stages.index("probing") < watch.stages.index("playing")
    assert watch.said == [found]
    assert "one record" in [finding.name for finding in found.refuted]
    assert found.claimed_eps is None


def test_an_audit_of_it_is_unsupported_and_fails_the_gate(broken):
    found = eg.audit(Run.open(broken[0]))
    assert found.verdict.kind == "unsupported"
    assert gate(found, fail_on="violation").reasons == (found.verdict.sentence,)
    stored = json.loads(json.dumps(found.to_json(), default=str))
    assert stored["probe"]["refuted"] is True
    assert [each["name"] for each in stored["verdict"]["broken"]] == [f.name for f in found.verdict.basis.broken]


def test_the_command_line_says_so_and_exits_with_1(broken):
    answer = told("audit", broken[0]).stdout
    assert "Unsupported: the training is not what the accountant's claim" in " ".join(answer.split())
    assert "probe       refuted:" in answer
    gated = told("audit", broken[0], "--fail-on", "violation")
    assert gated.returncode == 1
    assert "gate: Unsupported: the training is not what" in gated.stderr


def test_a_report_shows_the_probe_of_its_run(broken, tmp_path):
    page = eg.report(eg.audit(Run.open(broken[0])), out=tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="probe"' in page
    assert "kind-unsupported" in page


def test_a_resumed_run_is_not_probed_again(broken):
    watch = Tells()
    run(plan(n_models=41), out=broken[0], executor=InProcess(), watch=watch)
    assert "playing" in watch.stages
    assert watch.said == []


def test_the_probe_changes_no_signal(broken, tmp_path):
    without = run(plan(probe=False), out=tmp_path / "run", executor=InProcess())
    assert without.probe == Unprobed("the run was asked for none (probe = false).")
    one, other = without.signals(), Run.open(broken[0]).signals()
    assert one["loss"].tobytes() == other["loss"][: len(one["loss"])].tobytes()


def test_what_cannot_be_probed_is_trained_and_the_audit_says_why(tmp_path):
    done = run(plan(Blind()), out=tmp_path / "run", executor=InProcess())
    assert done.n_done == 40
    assert isinstance(done.probe, Unprobed)
    assert "takes no watch" in done.probe.reason
    assert eg.audit(done).verdict.kind != "unsupported"
    answer = told("audit", done.path).stdout
    assert "probe none: a probe needs to see updates" in " ".join(answer.split())


def test_code_that_changed_is_probed_again():
    from epsgauge.runner import resume

    class Held:
        def get(self, key):
            return {"sessions": [], "code": {"a.py": "1"}, "privacy": None, "notes": []}.get(key)

    prepared = resume.Prepared("digest", None, (), None)
    entries = resume.entries_of_session(Held(), plan(), prepared)
    assert entries["probe"] is None


@pytest.mark.parametrize(
    ("changes", "probes"),
    [
        ({"probe": None, "n_models": PROBED_FROM}, True),
        ({"probe": None, "n_models": PROBED_FROM - 1}, False),
        ({"probe": None, "n_models": PROBED_FROM, "trainer": {"use": "dpsgd"}}, False),
        ({"probe": True, "trainer": {"use": "dpsgd"}}, True),
        ({"probe": False, "n_models": PROBED_FROM}, False),
        ({"probe": True, "control": True}, False),
    ],
)
def test_which_runs_are_probed(changes, probes):
    assert plan(**changes).probes is probes


def test_another_wish_to_probe_is_the_same_run():
    assert plan(probe=False).fingerprinted() == plan().fingerprinted()


def test_a_probe_that_makes_no_sense_is_a_damaged_store(tmp_path):
    run(plan(probe=False), out=tmp_path / "run", executor=InProcess())
    with Store.write(tmp_path / "run" / FILE) as store:
        store.put({"probe": {"findings": 3}})
    with pytest.raises(InvalidInput, match="what its probe found cannot be read"):
        Run.open(tmp_path / "run")


def test_what_is_kept_of_a_probe_is_read_again():
    for found in (probed(HALF, SHUFFLED), Unprobed("no watch."), None):
        entry = None if found is None else json.loads(json.dumps(found.to_json()))
        assert from_json(entry) == found
