import asyncio
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cndpm.serving import Limits
from cndpm.serving.batcher import Batcher


def doubled(X):
    """Answers with twice the first column; refuses negative numbers."""
    if (X < 0).any():
        raise ValueError("negative")
    return {"twice": (2 * X[:, 0]).tolist()}, {"n_columns": X.shape[1]}


def ask(questions, limits=None):
    """Asks all at once; returns the answers, or errors, and the rows of every call."""
    calls = []

    async def run():
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(doubled, executor, limits, asked=calls.append)
            return await asyncio.gather(*map(batcher.ask, questions), return_exceptions=True)

    return asyncio.run(run()), calls


def rows(*values):
    return np.array(values, dtype=np.float32)[:, None]


@pytest.mark.parametrize("window", [0, 0.001])
def test_questions_that_come_together_are_answered_in_one_call(window):
    answers, calls = ask([rows(1), rows(2, 3), rows(4)], Limits(window=window))
    assert [answer["twice"] for answer in answers] == [[2], [4, 6], [8]]
    assert calls == [4]
    assert all(answer["n_columns"] == 1 for answer in answers)


def test_a_call_has_so_many_rows_at_most_unless_one_question_has_more():
    answers, calls = ask([rows(1, 2), rows(3), rows(4), rows(*range(5))], Limits(batch_rows=3))
    assert calls == [3, 1, 5]
    assert answers[3]["twice"] == [0, 2, 4, 6, 8]


def test_an_error_reaches_only_the_question_that_caused_it():
    answers, calls = ask([rows(1), rows(-1), rows(2)])
    assert (answers[0]["twice"], answers[2]["twice"]) == ([2], [4])
    assert isinstance(answers[1], ValueError)
    assert calls == [3, 1, 1, 1]


def test_a_question_that_was_given_up_does_not_disturb_others():
    async def run():
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(doubled, executor)
            gone, stays = (asyncio.ensure_future(batcher.ask(rows(k))) for k in (1, 2))
            await asyncio.sleep(0)
            gone.cancel()
            return await stays

    assert asyncio.run(run())["twice"] == [4]
