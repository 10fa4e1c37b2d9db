"""What a person sees of a run."""

import io

import pytest
from rich.console import Console

from cndpm.experiments.printed_tables import format_count
from cndpm.experiments.terminal import Bars, TerminalMonitor

ROW = {
    "step": 50,
    "accuracy": 40.0,
    "learned_accuracy": 80.0,
    "n_experts": 3,
    "n_parameters": 478410,
    "memory_samples": 120,
}


def watched(*, terminal):
    text = io.StringIO()
    monitor = TerminalMonitor(Bars(Console(file=text, force_terminal=terminal, width=200)))
    monitor.started("split-digits · cndpm", step=0, n_batches=100)
    monitor.evaluated(ROW)
    monitor.learned(51)
    monitor.close()
    return text.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_experts_memory_accuracy_and_progress_are_shown(terminal):
    shown = watched(terminal=terminal)
    for words in ("split-digits · cndpm", "3 experts", "478K parameters", "memory 120", "accuracy 40.00 %", "80.00 %"):
        assert words in shown
    assert "51/100" in shown if terminal else "batch 50 of 100" in shown


def test_runs_at_the_same_time_have_bars_side_by_side():
    text = io.StringIO()
    bars = Bars(Console(file=text, force_terminal=True, width=200))
    monitors = [TerminalMonitor(bars) for _ in range(2)]
    for seed, monitor in enumerate(monitors):
        monitor.started(f"seed {seed}", step=0, n_batches=100)
    text.truncate(0)
    monitors[0].learned(51)
    assert "seed 0" in text.getvalue()
    assert "seed 1" in text.getvalue()
    monitors[0].close()
    text.truncate(0)
    monitors[1].learned(77)
    assert "77/100" in text.getvalue()
    assert "seed 0" not in text.getvalue()
    monitors[1].close()


def test_a_mixture_without_experts_has_no_score():
    text = io.StringIO()
    monitor = TerminalMonitor(Bars(Console(file=text, width=200)))
    monitor.started("gen", step=0, n_batches=100)
    monitor.evaluated(ROW | {"accuracy": None, "n_experts": 0})
    assert "no expert yet" in text.getvalue()


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0"), (999, "999"), (478410, "478K"), (11173962, "11.2M"), (1.44e6, "1.44M"), (2e9, "2G")]
)
def test_counts_are_printed_as_the_paper_prints_them(n, text):
    assert format_count(n) == text


def test_an_empty_memory_is_no_longer_shown():
    text = io.StringIO()
    monitor = TerminalMonitor(Bars(Console(file=text, width=200)))
    monitor.started("digits", step=0, n_batches=100)
    monitor.evaluated(ROW)
    monitor.evaluated(ROW | {"memory_samples": 0})
    before, after = text.getvalue().splitlines()
    assert "memory 120" in before
    assert "memory" not in after


def test_work_that_takes_long_is_shown_when_it_begins():
    text = io.StringIO()
    monitor = TerminalMonitor(Bars(Console(file=text, force_terminal=True, width=200)))
    monitor.started("digits", step=0, n_batches=100)
    monitor.learned(50)
    monitor.phase("sleep", 0.0)  # a moment later: a bar is otherwise moved ten times a second at most
    assert "making an expert" in text.getvalue()
    monitor.close()


def test_a_memory_that_becomes_an_expert_is_no_longer_counted():
    text = io.StringIO()
    monitor = TerminalMonitor(Bars(Console(file=text, force_terminal=True, width=200)))
    monitor.started("digits", step=0, n_batches=100)
    monitor.evaluated(ROW)
    text.truncate(0)
    monitor.phase("sleep", 0.0)
    assert "memory 120" not in text.getvalue() and "3 experts" in text.getvalue()
    monitor.close()


def test_a_narrow_terminal_shows_what_is_known_before_the_bar():
    for width, has_bar in ((80, False), (200, True)):
        text = io.StringIO()
        monitor = TerminalMonitor(Bars(Console(file=text, force_terminal=True, width=width)))
        monitor.started("digits · cndpm", step=0, n_batches=100)
        monitor.evaluated(ROW | {"n_parameters": 0})
        monitor.learned(51)
        monitor.close()
        assert "3 experts · memory 120" in text.getvalue() and "parameters" not in text.getvalue()
        assert ("━" in text.getvalue()) == has_bar


@pytest.mark.parametrize("width", [80, 60])
def test_a_narrow_terminal_always_shows_how_far_a_run_is_and_what_it_is_doing(width):
    text = io.StringIO()
    monitor = TerminalMonitor(Bars(Console(file=text, force_terminal=True, width=width)))
    monitor.started("gradual-split-cifar100 · cndpm · seed 0", step=0, n_batches=5000)
    monitor.evaluated(ROW | {"learned_accuracy": 100.0})
    text.truncate(0)
    monitor.learned(4321)
    monitor.phase("sleep", 0.0)
    shown = text.getvalue()
    assert "4321/5000" in shown and "making an expert" in shown
    monitor.close()
