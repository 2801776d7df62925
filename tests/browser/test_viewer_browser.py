"""The viewer in a real browser: sliders, a live run, hostile names, keys alone, a phone, and who is refused."""

import re
import threading

import pytest
from patience import PATIENCE

import epsgauge as eg
from epsgauge.reporting.viewer.server import Viewer, opening
from epsgauge.runner.executors import InProcess
from epsgauge.runner.store import FILE
from epsgauge.trainers.mechanism import LaplaceTrainer

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(2)>"
AUDIT = {"attack": "difference", "verdict_method": "clopper-pearson"}
GAME = {"train_size": 10, "reference_size": 19, "challenge": "explicit", "canaries": "zeros", "control_models": 0}
RUNS = {"a": "plain", 'x"><svg onload=alert(3)>': HOSTILE}
GATES = {8: threading.Event(), 40: threading.Event()}


class Gated(LaplaceTrainer):
    """Waits after its first models until it is let go on, so that no test depends on a time."""

    played = 0

    def train(self, data, *, seed, size=None):
        if Gated.played in GATES:
            GATES[Gated.played].wait(PATIENCE)
        Gated.played += 1
        return super().train(data, seed=seed, size=size)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    for seed, (path, name) in enumerate(RUNS.items()):
        trainer = {"use": "laplace", "eps": 1.0}
        plan = eg.Plan(name=name, seed=seed, n_models=60, data="zeros", trainer=trainer, game=GAME, audit=AUDIT)
        eg.run(plan, out=out / path, executor=InProcess())
    return out


@pytest.fixture(scope="module")
def viewer(folder):
    viewer = Viewer(folder)
    thread = threading.Thread(target=viewer.serve, daemon=True)
    thread.start()
    yield viewer
    viewer.stop()
    thread.join(10)


@pytest.fixture(scope="module")
def known(viewer, watched):
    """A page with the cookie, for several tests: another one costs more than most of them."""
    with watched() as (page, problems):
        page.goto(viewer.address)
        assert page.url == f"http://127.0.0.1:{viewer.port}/"  # the token has left the address
        yield page, problems


@pytest.fixture
def page(known):
    return known[0]


@pytest.fixture
def problems(known):
    """What the page complained of; a test that expects a complaint takes it out."""
    known[1].clear()
    yield known[1]
    assert known[1] == []


@pytest.fixture
def at(viewer, page, problems):
    """Opens a page of the viewer."""

    def open_page(path):
        page.goto(f"http://127.0.0.1:{viewer.port}{path}")
        return page

    page.set_viewport_size({"width": 1280, "height": 900})
    open_page("/")
    return open_page


def settled(page):
    """Once the pictures are those of the sliders, bounds included."""
    page.wait_for_selector('#explore[data-pending="no"] #fig-density svg')


def places(page):
    """Where pictures and controls are."""
    return page.eval_on_selector_all(
        ".picture, .control",
        "all => all.map(e => { const r = e.getBoundingClientRect(); return [r.x, r.y + scrollY, r.width] })",
    )


def test_the_list_leads_to_a_run_and_hostile_names_stay_text(at, page):
    page.wait_for_selector("#rows td.bound")
    assert page.locator("#rows tr").count() == 2
    assert page.locator("#rows tr:nth-child(1) th a").inner_text() == HOSTILE
    assert page.locator("#rows tr:nth-child(1) .path").inner_text() == 'x"><svg onload=alert(3)>'
    page.click("#rows tr:nth-child(1) th a")
    settled(page)
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.title() == f"{HOSTILE} · epsgauge"
    page.goto(page.url.partition("/run")[0] + "/overlay?id=a&id=" + "x%22%3E%3Csvg+onload%3Dalert(3)%3E&rule=best")
    assert page.locator("#fig-cdfs svg").is_visible()
    assert HOSTILE in page.locator("#fig-cdfs").text_content()


def test_a_slider_changes_the_pictures_and_not_the_verdict(at):
    page = at("/run?id=a")
    settled(page)
    verdict, density, before = page.inner_html("#verdict"), page.inner_html("#fig-density"), places(page)
    assert page.get_attribute("#reset", "aria-disabled") == "true"
    assert "90 %" in page.text_content("#words-contours")
    page.locator("#log_delta").fill("-2")
    page.wait_for_selector("#said .chip.exploratory")
    assert page.inner_text("#out-log_delta") == "0.01"
    assert page.get_attribute("#reset", "aria-disabled") == "false"
    settled(page)
    assert page.inner_html("#fig-density") != density
    assert page.inner_html("#verdict") == verdict
    assert places(page) == before  # nothing moved but what was to move
    scores = page.inner_html("#fig-histogram")
    page.locator("#percentile").fill("70")
    page.wait_for_function("old => document.getElementById('fig-histogram').innerHTML !== old", arg=scores)
    page.select_option("#method", "exact")
    page.wait_for_function("() => document.getElementById('said').textContent.includes('Exact')")
    settled(page)
    assert places(page) == before
    assert "moved by hand" in page.text_content("#words-roc")
    page.focus("#reset")
    page.keyboard.press("Enter")
    page.wait_for_selector("#said .chip.plain")
    assert page.evaluate("document.activeElement.id") == "reset"  # whoever uses keys goes on from there
    assert page.get_attribute("#reset", "aria-disabled") == "true"
    assert "moved by hand" not in page.text_content("#words-roc")
    assert page.inner_html("#fig-density") == density
    assert page.inner_html("#verdict") == verdict


def test_keys_are_enough(at, viewer):
    page = at("/")
    page.wait_for_selector("#rows td.bound")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    for _ in range(40):  # filters, columns, and the box and link of each run
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "plain":
            break
    assert page.evaluate("document.activeElement.textContent") == "plain"
    width = "getComputedStyle(document.activeElement).outlineWidth"
    assert page.evaluate(width) == "3px"
    page.keyboard.press("Enter")
    settled(page)
    while page.evaluate("document.activeElement.id") != "level":
        page.keyboard.press("Tab")
    assert page.evaluate(width) == "3px"
    before, density = page.inner_text("#out-level"), page.inner_html("#fig-density")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("old => document.getElementById('out-level').textContent !== old", arg=before)
    assert page.get_attribute("#level", "aria-valuetext") == page.inner_text("#out-level")
    assert page.evaluate("document.activeElement.id") == "level"
    page.wait_for_function("old => document.getElementById('fig-density').innerHTML !== old", arg=density)
    # a screen reader hears it
    page.wait_for_function("() => document.getElementById('live').textContent.includes('exploratory')")


def test_values_are_read_off_a_chart_with_keys_and_with_the_pointer(at):
    page = at("/run?id=a")
    settled(page)
    chart, readout = page.locator("#fig-density svg[data-x]").first, page.locator(".readout")
    assert not readout.is_visible()
    chart.focus()
    page.keyboard.press("ArrowRight")
    first = readout.inner_text()
    assert first.startswith("ε at δ = 1e-05 ")
    page.keyboard.press("ArrowRight")
    at_second = float(readout.inner_text().split("\n")[0].rsplit(" ", 1)[1])
    assert at_second > float(first.split("\n")[0].rsplit(" ", 1)[1])
    assert chart.locator(".cursor").count() == 1
    page.keyboard.press("Escape")
    assert not readout.is_visible()
    chart.hover()
    assert readout.is_visible()


def test_everything_has_a_name_and_fits_a_phone(at, page):
    for path in ("/", "/run?id=a", "/overlay?id=a", "/calculator"):
        page.set_viewport_size({"width": 1280, "height": 900})
        at(path)
        if path.startswith("/run"):
            settled(page)
        nameless = page.evaluate(
            """[...document.querySelectorAll('input, select, button, a, svg, progress')].filter(e => {
                const by = (e.getAttribute('aria-labelledby') || '').split(/\\s+/).map(i => document.getElementById(i));
                const text = by.map(n => n?.textContent || '').join('') || e.getAttribute('aria-label') ||
                    [...(e.labels || [])].map(l => l.textContent).join('') || e.textContent;
                return !text.trim();
            }).map(e => e.outerHTML)"""
        )
        assert nameless == []
        ids = page.eval_on_selector_all("[id]", "all => all.map(e => e.getAttribute('id'))")
        assert sorted(ids) == sorted(set(ids))
        assert page.get_attribute("html", "lang") == "en"
        assert page.locator("h1").count() == 1
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path


def test_a_live_run_advances(at, page, folder, problems):
    out = folder / "live"
    audit = {"attack": "difference"}
    plan = eg.Plan(name="live", n_models=80, data="zeros", trainer=Gated(1.0), game=GAME, audit=audit)
    training = threading.Thread(target=lambda: eg.run(plan, out=out, executor=InProcess()), daemon=True)
    training.start()
    try:
        page.wait_for_selector('#rows tr[data-id="live"] .chip.running')
        page.wait_for_selector('#rows tr[data-id="live"] progress[value="8"]')
        assert "open the run" in page.inner_text('#rows tr[data-id="live"] .verdict')
        page.click('#rows tr[data-id="live"] th a')
        page.wait_for_function("() => document.getElementById('done')?.textContent === '8'")
        assert page.locator("#results").is_hidden()
        page.click("#open")
        page.wait_for_selector("#waiting:not([hidden])")
        assert page.inner_text("#waiting").startswith("The first 13 models choose the rule")
        assert eg.Run.open(out).looks == []
        GATES[8].set()
        page.wait_for_function("() => document.getElementById('verdict').textContent.includes('anytime bound')")
        assert page.locator("#waiting").is_hidden()
        settled(page)
        page.wait_for_function("() => document.getElementById('done').textContent === '40'")
        page.wait_for_function("() => document.getElementById('words-narrowing').textContent.includes(' 27')")
        settled(page)
        page.locator("#log_delta").fill("-3")
        page.wait_for_selector("#said .chip.exploratory")
        first = page.inner_html("#fig-narrowing")
        assert page.input_value("#method") == "anytime"
        GATES[40].set()
        page.wait_for_selector('#run[data-state="complete"]')
        page.wait_for_function("old => document.getElementById('fig-narrowing').innerHTML !== old", arg=first)
        page.wait_for_function("() => document.getElementById('done').textContent === '80'")
        page.wait_for_function("() => !document.getElementById('verdict').textContent.includes('anytime bound')")
        page.wait_for_function("() => document.getElementById('hint-method').textContent === 'declared Weighted'")
        page.wait_for_function("() => document.getElementById('words-narrowing').textContent.includes(' 67')")
        assert page.input_value("#method") == "weighted"  # what was not moved follows the plan
        assert page.input_value("#log_delta") == "-3"
    finally:
        for gate in GATES.values():
            gate.set()
        training.join(PATIENCE)
    seen = [(look["kind"], look["n_done"]) for look in eg.Run.open(out).looks]
    assert ("view", 40) in seen
    assert seen[-1] == ("view", 80)
    assert len(seen) == len(set(seen))
    assert problems == []
    for file in sorted(
        out.iterdir(), key=lambda file: file.name != FILE
    ):  # the store first: without it there is no run
        file.unlink()
    page.wait_for_selector("#problem:not([hidden])")
    assert "moved or deleted" in page.inner_text("#problem")
    assert all("400" in text for text in problems)
    problems.clear()


def test_the_calculators_address_carries_the_counts_and_never_the_token(at, page, problems):
    at("/calculator?tp=6&fn=4&fp=1&tn=9")
    page.wait_for_selector('#answers[data-pending="no"] #fig-density svg')
    page.fill("#tp", "12")
    page.fill("#delta", "1e-6")
    page.wait_for_function("() => document.getElementById('said').textContent.includes('1e-06')")
    page.wait_for_selector('#answers[data-pending="no"]')
    address, said = page.url, page.inner_text("#said")
    assert address.endswith("/calculator?tp=12&fn=4&fp=1&tn=9&delta=1e-6&level=0.9")
    ends = eg.estimate(eg.Tally(tp=12, fn=4, fp=1, tn=9), delta=1e-6).interval(0.9)
    assert f"[{ends.low:.3f}, {ends.high:.3f}]" in said
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector('#answers[data-pending="no"] #fig-density svg')
    assert page.inner_text("#said") == said
    assert page.input_value("#tp") == "12"
    page.fill("#tp", "-3")
    page.wait_for_selector("#problem:not([hidden])")
    assert page.inner_text("#problem").startswith("TP must be a whole number")
    page.wait_for_selector("#answers.old")  # the answer is of other counts, and looks it
    page.fill("#tp", "12")
    page.wait_for_selector('#answers:not(.old)[data-pending="no"]')
    assert all("400" in text for text in problems)
    problems.clear()


def test_a_dropped_file_is_judged(at, tmp_path):
    rows = [f"{i % 2},{i % 2 + 0.013 * (i * 37 % 101)}" for i in range(24)]
    file = tmp_path / "<img src=x onerror=alert(4)>.csv"
    file.write_text("bit,score\n" + "\n".join(rows) + "\n")
    page = at("/calculator")
    page.select_option("#adjacency", "add-remove")
    page.select_option("#models", "independent")
    page.set_input_files("#file", file)
    page.wait_for_selector("#dropped svg")
    assert "<img src=x" in page.inner_text("#dropped h2")
    assert page.locator("#dropped svg").count() == 8
    assert page.locator("#dropped img").count() == 0


def test_a_wrong_token_a_wrong_host_and_a_path_are_refused(viewer, watched, tmp_path):
    with watched() as (page, problems):
        refused(viewer, page, tmp_path)
        assert all(re.search(r"status of (403|404)", text) for text in problems)


def refused(viewer, page, tmp_path):
    home = f"http://127.0.0.1:{viewer.port}"
    assert page.goto(f"{home}/?token=wrong").status == 403
    assert "not the one of this viewer" in page.inner_text("main")
    assert page.goto(f"{home}/run?id=a").status == 403
    assert page.context.cookies() == []
    assert page.goto(viewer.address.replace("127.0.0.1", "viewer.localhost")).status == 403  # resolves to 127.0.0.1 too
    page.goto(opening(viewer.address, tmp_path).as_uri())  # as `epsgauge view` opens it
    page.wait_for_url(f"{home}/")
    page.wait_for_selector("#rows tr")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""
    for path in ("/run?id=../a", "/run?id=%2e%2e%2fa", "/static/..%2fserver.py"):
        assert page.goto(f"{home}{path}").status == 404


def test_a_script_that_got_in_would_not_run(at, problems):
    page = at("/")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'document.title=2'}))"
    )
    page.wait_for_function("() => document.images.length > 1")
    assert page.title() == "Runs · epsgauge"
    assert any("Content Security Policy" in text for text in problems)
    problems.clear()
