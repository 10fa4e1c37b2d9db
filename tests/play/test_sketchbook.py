import json
from collections import Counter

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
    assert [told[i]["drawing"]["expert"] for i in born] == [0, 1, 2]
    assert [expert["n"] for expert in told[2]["experts"]] == [3]
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
    learned = [sum(expert["n"] for expert in one["experts"]) for one in told]
    assert learned[1] - learned[0] < 1.5 and learned[0] == 12  # nine, and the changed one three times
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


def test_what_was_forgotten_leaves_no_trace():
    book, random = Sketchbook(), np.random.default_rng(4)
    strokes = [hand(kind, random) for kind in ("ring", "tent", "ring")]
    first = [book.learn(one, "ink") for one in strokes]
    book.forget()
    assert json.dumps([book.learn(one, "ink") for one in strokes]) == json.dumps(first)


def test_a_guess_lists_names_by_now_and_tells_how_likely_they_were_at_any_time():
    book, random = Sketchbook(), np.random.default_rng(2)
    named = [(kind, kind) for kind in ["ring", "tent", "cross"] * 3] + [("ring", "sun")] * 3
    named += [("ring", "ring"), ("tent", "tent")] * 2
    asked = [book.learn(hand(kind, random), name)["before"]["names"] for kind, name in named]
    now, ever = ([[one[when] for one in names] for names in asked] for when in ("now", "ever"))
    assert all(each == sorted(each, reverse=True) for each in now)
    assert any(each != sorted(each, reverse=True) for each in ever)


def test_a_drawing_that_an_expert_knows_is_that_experts():
    book, random = Sketchbook(), np.random.default_rng(0)
    taught(book, ["ring"] * 3 + ["tent"] * 3, random)
    told = [book.learn(hand(kind, random), kind)["drawing"] for kind in ("ring", "tent")]
    assert [(one["expert"], one["is_new"]) for one in told] == [(0, False), (1, False)]


def test_only_a_name_that_was_sure_and_drawn_before_is_changed():
    book = Sketchbook()
    book._n_of = Counter(ring=2, tent=1)

    def instead_of(name, now, is_new=False):
        return book._instead_of("sun", {"is_new": is_new, "names": [{"name": name, "now": now}]})

    assert instead_of("ring", 0.7) == "ring"
    assert instead_of("ring", 0.5) is instead_of("tent", 0.7) is instead_of("ring", 0.7, is_new=True) is None


def test_forty_names_are_enough_and_the_latest_eighty_drawings_are_shown():
    book = Sketchbook()
    for i in range(40):
        book.learn([[[0, 0], [10, i]]], f" name \n {i}")
    with pytest.raises(DrawingError, match="40 names"):
        book.learn([[[0, 0], [10, 10]]], "one more")
    for i in range(41):
        told = book.learn([[[0, 0], [10, i % 40]]], f"name {i % 40}")  # those that are known may come
    assert [one["number"] for one in told["shown"]] == list(range(2, 82))
    assert len(told["names"]) == 40 and told["names"][0] == {"name": "name 0", "n": 3}


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
