"""What a model says that it holds."""

import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch

from cndpm.river import CNDPMClassifier
from cndpm.river.held_bytes import held_bytes
from river import datasets


def test_numbers_of_tensors_and_arrays_count_once_however_many_views_they_have():
    tensor, array = torch.zeros(10_000), np.zeros(10_000)
    alone = held_bytes([tensor]) + held_bytes([array])
    shared = held_bytes([tensor, tensor[:5], tensor.view(100, 100), array, array[::2], tensor.numpy()])
    assert 120_000 < alone < 121_000 and shared < 122_000


def test_a_model_holds_more_than_its_file_and_says_so():
    model = CNDPMClassifier(memory_size=50)
    for x, y in datasets.Phishing().take(200):
        model.learn_one(x, y)
    assert len(pickle.dumps(model)) < model._raw_memory_usage < 5 * len(pickle.dumps(model))
    assert model._memory_usage.endswith("MiB")


@pytest.mark.slow
def test_what_a_model_says_is_what_the_process_grows_by_to_a_tenth():
    code = """
        import gc
        from river import datasets
        from cndpm.river import CNDPMClassifier

        rows = list(datasets.Phishing().take(300))
        def trained():
            model = CNDPMClassifier(memory_size=100)
            for x, y in rows:
                model.learn_one(x, y)
            gc.collect()
            return model
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096
        models = [trained() for _ in range(3)]
        before = resident()
        models += [trained() for _ in range(6)]
        print(models[-1]._raw_memory_usage / ((resident() - before) / 6))
    """
    settings = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_TRIM_THRESHOLD_": "0"}
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(ran.stdout) == pytest.approx(1, abs=0.1)
