"""The progress bar of a run: models done, rate, time left, and the posterior so far."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from statistics import median
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from epsgauge.auditing.live import Live
from epsgauge.auditing.stopping import StopWhen
from epsgauge.games.signals import Outcome
from epsgauge.numbers import duration
from epsgauge.plain import plain
from epsgauge.probing.result import Probe, Unprobed
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Enough, Watch
from epsgauge.runner.progress import Progress as Counts
from epsgauge.runner.view import Run

SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_BETWEEN_LINES = 10.0  # where standard error is no terminal
QUIET_SECONDS, QUIET_FIRST = 120.0, 600.0  # without a model, after which it is said; before the first one comes


class Bar(Watch):
    """Told of every model; shows a bar on a terminal, and a line now and then elsewhere."""

    def __init__(self, plan: Plan, console: Console, *, blind: bool = False, stop: StopWhen | None = None) -> None:
        self.stop, self.stop_when = stop, None if stop is None else stop.text
        self.plan, self.name = plan, plain(plan.name)
        self.console = console
        self.blind = blind
        self.live: Live | None = None
        self.run: Run | None = None
        self.last_look = self.last_line = self.last_check = float("-inf")
        self.looked_at = 0
        self.seen = ""
        self.counts: Counts | None = None
        self.came = time.monotonic()  # the last model, or the beginning
        self.gaps: deque[float] = deque(maxlen=101)  # seconds between models
        columns = (
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[facts]}", markup=False),
        )
        self.progress = Progress(*columns, console=console, transient=True, refresh_per_second=4)
        self.task: TaskID | None = None

    def __enter__(self) -> Bar:
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self.progress.stop()

    def stage(self, name: str) -> None:
        if self.task is not None:
            self.progress.remove_task(self.task)
        self.counts, self.came = None, time.monotonic()
        self.gaps.clear()
        total = self.plan.game.ranking_models if name == "ranking" else self.plan.n_models
        self.task = self.progress.add_task(f"{self.name}: {name}", total=total, facts="")

    def opened(self, run: Run) -> None:
        if run.extended_after_look and not run.complete:
            said = (
                f"! {self.name}: its results have been viewed, so a larger run is judged by the anytime bound, which "
                "may be lower. For the sharpest bound, start a new run with a new --out and n_models = "
                f"{self.plan.n_models}."
            )
            self.console.print(Text(said, style="yellow"))
        if self.stop is not None:
            self.stop.check(run)

    def probed(self, probe: Probe | Unprobed) -> None:
        refuted = isinstance(probe, Probe) and bool(probe.refuted)
        self.console.print(Text(f"{self.name}, probe: {plain(probe.brief)}", style="bold red" if refuted else ""))

    def ranked_one(self, progress: Counts) -> None:
        self._came()
        self._show(progress, "")

    def rehearsed_one(self, progress: Counts) -> None:
        self._came()
        self._show(progress, "")

    def waiting(self) -> None:
        """Say so where no model has come for much longer than usual: a training may hang."""
        quiet = time.monotonic() - self.came
        usual = max(10 * median(self.gaps), 2 * max(self.gaps), QUIET_SECONDS) if self.gaps else QUIET_FIRST
        if quiet >= usual:
            self._show(self.counts or Counts(self.plan.n_models, 0, 0), self.seen, quiet)

    def _came(self) -> None:
        now = time.monotonic()
        self.gaps.append(now - self.came)
        self.came = now

    def started(self, run: Run, remaining: int) -> None:
        self.run, self.counts = run, run.progress
        if run.n_done and remaining:
            self.console.print(f"{self.name}: resuming after {run.n_done} of {self.plan.n_models} models")
        if not self.blind:
            self.live = Live(run)

    def finished_one(self, outcome: Outcome, progress: Counts) -> None:
        if self.live is not None:
            self.live.add(outcome)
            self._look(progress)
        self._came()
        self._show(progress, self.seen)
        self._stop(progress)

    def enough(self, out: Path) -> None:
        """Say why there are fewer models than planned."""
        if self.console.is_terminal:
            self.progress.stop()
        self.console.print(
            f"stopped as asked: {self.stop_when}. The audit uses the anytime bound, which allows for stopping early"
        )

    def stopped(self, out: Path) -> None:
        """Say that nothing is lost."""
        if self.console.is_terminal:
            self.progress.stop()
        self.console.print(f"stopped: finished models are kept in {plain(str(out))}; run the same command to continue")

    def _look(self, progress: Counts) -> None:
        """Compute the posterior now and then; each time is a look at the results, and is logged."""
        now = time.monotonic()
        new = progress.n_done - self.looked_at
        if self.live is None or self.run is None or now - self.last_look < SECONDS_BETWEEN_LOOKS:
            return
        if new * 100 < progress.n_models:  # at most a hundred looks per run, however long it takes
            return
        self.last_look, self.looked_at = now, progress.n_done
        self.seen = self.live.text()
        if self.live.shows_results:
            self.run.log_look("live")

    def _stop(self, progress: Counts) -> None:
        """See now and then whether it is enough."""
        now = time.monotonic()
        if self.stop is None or self.run is None or (now - self.last_check < SECONDS_BETWEEN_LOOKS and progress.n_left):
            return
        self.last_check = now
        run = Run.open(self.run.path)
        run.log_look("stop-when")
        if self.stop.reached(run):
            raise Enough

    def _show(self, progress: Counts, seen: str, quiet: float = 0.0) -> None:
        self.counts = progress
        facts = [f"no model for {duration(quiet)}"] if quiet else []
        if progress.rate is not None and progress.seconds_left is not None:
            facts.append(f"{progress.rate:.1f}/s, {duration(progress.seconds_left)} left")
        if progress.n_failed:
            facts.append(f"{progress.n_failed} failed")
        if seen:
            facts.append(seen)
        text = "   ".join(facts)
        done = progress.n_done + progress.n_failed
        if self.task is not None:
            self.progress.update(self.task, completed=done, total=progress.n_models, facts=text)
        now = time.monotonic()
        if not self.console.is_terminal and now - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = now
            # in one line, however long the name is: a second one could pass for an answer
            self.console.print(Text(f"{self.name}: {done}/{progress.n_models}   {text}".rstrip()), soft_wrap=True)
