"""The arithmetic of the benchmark, and that it measures what it says."""

import json

import pytest
from benchmarks.costs import Costs, run_benchmark

from cndpm.model.settings import CNDPMSettings


def test_a_whole_run_is_five_sleeps_and_twelve_hundred_batches_a_task():
    costs = Costs(density_step=1.0, predictor_step=10.0, wake=(2.0, 4.0))
    settings = CNDPMSettings.paper(density_sleep_steps=3, predictor_sleep_steps=2)
    assert costs.split_mnist(settings) == 5 * (3 * 1 + 2 * 10 + 1200 * 3)


@pytest.mark.slow
def test_the_benchmark_meets_what_is_promised():
    report = json.loads(json.dumps(run_benchmark()))
    assert report["split_mnist_speedup_over_oracle"] > 3
    assert report["fast_split_mnist_speedup_over_oracle"] > 10
    assert report["wake_step_cost_ratio_100_to_10_experts"] < 8
