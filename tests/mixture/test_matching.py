"""Experts of several mixtures that stand for the same concept."""

import numpy as np
import torch

from cndpm.mixture.redundancy import best_of_sources, same_concepts


def test_experts_are_linked_where_one_explains_most_of_the_other():
    explained = torch.tensor([[1.0, 0.6, 0.4], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert same_concepts(explained, sources=[0, 1, 2]) == [[0, 1], [2]]


def test_experts_of_one_mixture_are_linked_through_another_one_alone():
    alike = torch.ones(2, 2)
    assert same_concepts(alike, sources=[0, 0]) == [[0], [1]]
    assert same_concepts(torch.ones(3, 3), sources=[0, 0, 1]) == [[0, 1, 2]]


def test_of_a_mixture_its_best_expert_takes_samples():
    margins = np.array([[9.0, 2.0], [1.0, 5.0], [3.0, 3.0]])
    taken = best_of_sources(margins, np.array([0, 0, 1]))
    assert taken.tolist() == [[True, False], [False, True], [True, True]]
