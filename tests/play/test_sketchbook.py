import json

import numpy as np
import pytest
from tests.play.symbols import drawn

from cndpm.play.drawings import DrawingError
from cndpm.play.sketchbook import Sketchbook


def hand(kind, random):
    return [stroke.tolist() for stroke in drawn(kind, random)]


def taught(book, kinds, random):
    return [book.learn(hand(kind, random), kind) for kind in kinds]


def test_kinds_that_come_one_after_the_other_get_an_expert_each_and_dream_of_their_name():
    book, random = Sketchbook(), np.random.default_rng(0)
    told = taught(book, ["ring"] * 3 + ["tent"] * 3 + ["cross"] * 3, random)
    born = [i for i, one in enumerate(told) if any(event["kind"] == "founded" for event in one["drawing"]["happened"])]
    assert born == [2, 5, 8]
    assert [expert["dreams"][0]["name"] for expert in told[-1]["experts"]] == ["ring", "tent", "cross"]
    assert [len(expert["dreams"][0]["pictures"]) for expert in told[-1]["experts"]] == [7, 7, 7]
    assert [one["memory"]["n"] for one in told] == [1, 2, 0, 1, 2, 0, 1, 2, 0]
    for k, kind in enumerate(("ring", "tent", "cross")):
        guess = book.guess(hand(kind, random))
        assert guess["names"][0]["name"] == kind and np.argmax(guess["experts"]) == k


def test_a_known_drawing_under_another_name_is_told_and_wins_in_the_end():
    book, random = Sketchbook(), np.random.default_rng(1)
    taught(book, ["ring", "tent", "cross"] * 3, random)
    told = [book.learn(hand("ring", random), "sun") for _ in range(6)]
    assert told[0]["drawing"]["instead_of"] == "ring"
    answers = [book.guess(hand("ring", random))["names"][0]["name"] for _ in range(10)]
    assert answers.count("sun") >= 6
    assert book.guess(hand("cross", random))["names"][0]["name"] == "cross"


def test_a_new_kind_under_a_new_name_is_no_change_of_meaning():
    book, random = Sketchbook(), np.random.default_rng(2)
    taught(book, ["ring", "tent"] * 3, random)
    told = book.learn(hand("star", random), "star")
    assert told["before"]["is_new"] and told["drawing"]["instead_of"] is None and told["drawing"]["expert"] == -1


def test_guessing_changes_nothing_that_is_learned():
    books = [Sketchbook(), Sketchbook()]
    for ask, book in enumerate(books):
        random = np.random.default_rng(3)
        for kind in ("ring", "tent", "ring", "tent"):
            strokes = hand(kind, random)
            if ask:
                book.guess(strokes)
            book.learn(strokes, kind)
    assert json.dumps(books[0].state()) == json.dumps(books[1].state())


def test_to_forget_begins_anew():
    book, random = Sketchbook(), np.random.default_rng(4)
    taught(book, ["ring"] * 3, random)
    state = book.forget()
    assert (state["n_drawings"], state["names"], state["experts"], state["shown"]) == (0, [], [], [])
    assert book.guess(hand("ring", random))["names"] == []


@pytest.mark.parametrize("name", ["", "   ", None, 5, "x" * 25, "a\x00b"])
def test_a_name_that_is_none_is_refused_and_nothing_is_learned(name):
    book = Sketchbook()
    with pytest.raises(DrawingError, match="letters"):
        book.learn([[[0, 0], [1, 1]]], name)
    assert book.state()["n_drawings"] == 0


def test_single_copies_that_wait_are_no_drawing_and_make_none_new():
    book, draws = Sketchbook(seed=2), np.random.default_rng(2)
    told = [book.learn([[[shift, 0], [10 + shift, 10]]], "slash") for shift in draws.uniform(0, 3, 4)]
    assert book._n_waiting == 1  # a copy of the fourth
    assert [one["memory"]["n"] for one in told] == [1, 2, 0, 0]
    assert [one["drawing"]["is_new"] for one in told] == [True, True, True, False]
