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
from cndpm.river.kept import held_bytes
from river import datasets


def test_numbers_of_tensors_and_arrays_count_once_however_many_views_they_have():
    tensor, array = torch.zeros(10_000), np.zeros(10_000)
    alone = held_bytes([tensor]) + held_bytes([array])
    shared = held_bytes([tensor, tensor[:5], tensor.view(100, 100), array, array[::2], tensor.numpy()])
    assert 120_000 < alone < 121_000 and shared < 124_000
    assert held_bytes([array[:2]]) > 80_000  # it keeps the rest alive


def test_a_model_holds_more_than_its_file_and_says_so():
    model = CNDPMClassifier(memory_size=50)
    for x, y in datasets.Phishing().take(200):
        model.learn_one(x, y)
    assert len(pickle.dumps(model)) < model._raw_memory_usage < 5 * len(pickle.dumps(model))
    assert model._memory_usage.endswith("MiB")


def test_what_only_a_function_or_a_view_holds_counts():
    def holding(rows):
        return lambda: rows

    rows = torch.zeros(10, 1000)
    assert 40_000 < held_bytes([holding(rows)]) < 42_000
    assert held_bytes([rows[:5]]) > held_bytes([rows]) + 400  # views of 40 bytes took as much as two tensors
    assert held_bytes([holding, np.sum]) < 200


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 3000])
@pytest.mark.parametrize("kind", ["CNDPMClassifier", "CNDPMRegressor", "CNDPMAnomaly"])
def test_what_a_model_says_is_what_the_allocator_has_given_out_for_it(kind, n):
    code = f"""
        import ctypes, gc, statistics
        from river.datasets import synth
        from cndpm.river import {kind} as Model

        class Allocated(ctypes.Structure):
            _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]
        glibc = ctypes.CDLL("libc.so.6")
        glibc.mallinfo2.restype = Allocated
        def in_use():
            gc.collect()
            now = glibc.mallinfo2()
            return now.e + now.h  # by maps and in the heap
        def trained():
            model = Model()
            for x, y in rows:
                model.learn_one(x) if {kind == "CNDPMAnomaly"} else model.learn_one(x, y)
            return model
        rows = list(synth.Friedman(seed=1).take({n}))
        if {kind == "CNDPMClassifier"}:
            rows = [(x, y > 14) for x, y in rows]
        ratios = []
        for _ in range(3):
            model = trained()
            said, before = model._raw_memory_usage, in_use()
            del model
            ratios.append(said / (before - in_use()))
        print(statistics.median(ratios))
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONMALLOC": "malloc", "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(ran.stdout) == pytest.approx(1, abs=0.1)
