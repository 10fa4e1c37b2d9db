"""Small versions of the attacks on servers, merges and models for river, and that they would notice."""

from random import Random

import pytest
from torture.attempts import Count

from cndpm.serving import row_log, store
from torture import folders, merges, river_calls, wrong_requests

pytestmark = pytest.mark.filterwarnings("ignore")


def counted(module, seed, n, folder):
    count = Count(module.ATTACK)
    for outcome in module.attempts(seed, 0, n, folder):
        count.add(outcome)
    return count


def test_no_damage_to_a_folder_loses_what_was_acknowledged(tmp_path):
    count = counted(folders, 5, 40, tmp_path)
    assert count.lines == []
    assert count.total("refused") > 5 and count.total("equal") > 5


def test_a_log_that_is_cut_short_in_silence_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(row_log, "_linked", lambda before, text: "")  # every line fits
    monkeypatch.setattr(row_log, "_last_seen", lambda path: None)
    monkeypatch.setattr(store.WrittenLog, "_read", _until_damage(store.WrittenLog._read))
    assert counted(folders, 5, 40, tmp_path).total("silent") > 0


def _until_damage(read):
    def reading(self):
        try:
            yield from read(self)
        except row_log.LogError:
            return

    return reading


def test_wrong_requests_are_answered_in_few_words(tmp_path, monkeypatch):
    monkeypatch.setattr(wrong_requests, "_SECONDS", float("inf"))  # how fast is for the attack itself to measure
    count = counted(wrong_requests, 5, 40, tmp_path)
    assert count.lines == []
    assert count.total("refused") > 30


def test_an_answer_that_repeats_a_request_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(wrong_requests, "_SECONDS", float("inf"))
    monkeypatch.setattr(wrong_requests, "_BYTES", 10)
    assert counted(wrong_requests, 5, 5, tmp_path).total("long") > 0


def test_wrong_bodies_reach_the_limit():
    sizes = [len(wrong_requests.wrong_body(Random(i), 100_000)[1]) for i in range(200)]
    assert max(sizes) > 50_000 and min(sizes) < 100


def test_models_with_more_or_less_in_common_are_merged_or_refused(tmp_path):
    count = counted(merges, 5, 8, tmp_path)
    assert count.lines == []
    assert count.total("merged") and count.total("refused")


def test_no_hostile_row_raises_anything_foreign_in_river(tmp_path):
    count = counted(river_calls, 5, 75, tmp_path)
    assert count.lines == []
    assert count.total("accepted") > 10 and count.total("refused") > 20
