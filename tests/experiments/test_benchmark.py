"""The arithmetic of the benchmark, and that it measures what it says."""

import json
import time

import pytest

from cndpm.experiments.benchmark import Costs, fast_settings, run_benchmark, wake_seconds
from cndpm.learners.settings import CNDPMSettings


def test_a_whole_run_is_five_sleeps_and_twelve_hundred_batches_a_task():
    costs = Costs(density_step=1.0, predictor_step=10.0, wake=(2.0, 4.0))
    settings = CNDPMSettings(density_sleep_steps=3, predictor_sleep_steps=2)
    assert costs.split_mnist(settings) == 5 * (3 * 1 + 2 * 10 + 1200 * 3)


def test_wake_steps_are_timed_with_as_many_experts_as_asked_for():
    class Slow:
        n = 0

        def found(self):
            self.n += 1

        def learn(self, x, y):
            assert x.shape == (10, 1, 28, 28)
            time.sleep(0.002 * self.n)

    seconds = wake_seconds(Slow(), (1, 5), n_steps=2)
    assert seconds[0] < seconds[1]
    assert seconds[1] == pytest.approx(0.010, rel=0.5)


def test_the_fast_settings_take_fewer_steps_than_the_papers():
    assert fast_settings().density_sleep_steps < CNDPMSettings().density_sleep_steps


@pytest.mark.slow
def test_the_benchmark_meets_what_is_promised():
    report = json.loads(json.dumps(run_benchmark()))
    assert report["split_mnist_speedup_over_oracle"] > 3
    assert report["fast_split_mnist_speedup_over_oracle"] > 10
    assert report["wake_step_cost_ratio_100_to_10_experts"] < 8
