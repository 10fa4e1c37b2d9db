"""The house grows no larger again: ceilings at what was reached; who makes it smaller lowers them."""

import doctest
from pathlib import Path

import benchmarks.house
import pytest
from benchmarks.house import House, words_of_pages

ROOT = Path(__file__).parents[1]
HOUSE = House.of(ROOT)
CEILINGS = {
    "modules": 283,
    "lines": 41271,
    "executable lines": 25906,
    "docstring lines": 7968,
    "function median": 6,
    "function 90 %": 16,
    "function longest": 66,
    "public names": 314,
    "numeric constants": 165,
    "file names used twice": 2,
}
MEMBERS = {"Learner": 15, "Bank": 25, "Merging": 5, "Stream": 14, "Monitor": 8, "Engine": 3}
MOST_CONCEPTS = 36
MOST_WORDS = 45000
"""Of all pages that are written by hand, and of"""
MOST_WORDS_OF_A_PAGE = 3000


@pytest.mark.parametrize("what", CEILINGS)
def test_no_count_rises_above_what_was_reached(what):
    assert HOUSE.sizes()[what] <= CEILINGS[what]


@pytest.mark.parametrize("contract", MEMBERS)
def test_contracts_ask_for_no_more(contract):
    assert 0 < HOUSE.members()[contract] <= MEMBERS[contract]


def test_no_file_makes_one_learn_more_concepts():
    assert max(HOUSE.concepts().values()) <= MOST_CONCEPTS


def test_the_documentation_grows_no_longer():
    words = words_of_pages(ROOT)
    assert len(words) > 50
    assert sum(words.values()) <= MOST_WORDS
    assert max(words.values()) <= MOST_WORDS_OF_A_PAGE


def test_the_examples_of_the_count_run():
    assert doctest.testmod(benchmarks.house).failed == 0
