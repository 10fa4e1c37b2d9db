"""Pools of labels: rows in their order, evidence where a label is known, and what a resumed pool forgets."""

import numpy as np
from tests.experts.pool.test_class_pool import learned, reversing, rows

from cndpm.experts.pool import ClassPool, class_pool


def labels_heard(patch):
    """Notes the labels of everything that models learn, in their order."""
    heard, learn = [], class_pool.Moments.learn

    def note(moments, f, batch, **options):
        heard.append(batch.labels[batch.is_own.argmax(axis=0)].tolist())
        learn(moments, f, batch, **options)

    patch.setattr(class_pool.Moments, "learn", note)
    return heard


def test_kept_rows_are_learned_again_in_the_order_they_came(monkeypatch):
    heard, (x, y) = labels_heard(monkeypatch), rows(20)
    learned(x, y)
    assert heard[-3:] == [y.tolist()] * 3  # representations are fitted anew after twenty rows


def test_rows_of_another_pool_are_learned_in_the_order_they_came(monkeypatch):
    x, y = rows(90)
    pool, other, heard = learned(x, y), learned(x[::-1], y[::-1]), []
    monkeypatch.setattr(pool, "learn", lambda x, y: heard.extend(y.tolist()))
    pool.extend(other)
    assert heard == y[::-1].tolist()


def test_a_rule_is_founded_on_the_samples_since_it_was_challenged(monkeypatch):
    founded, found = [], class_pool.ClassPool._found

    def note(pool):
        founded.append((pool.n_seen - pool._rules.n_since, pool._rules.n_since))
        with monkeypatch.context() as patch:
            heard = labels_heard(patch)
            found(pool)
        assert [len(labels) for labels in heard] == [founded[-1][1]] * 3

    monkeypatch.setattr(class_pool.ClassPool, "_found", note)
    learned(*reversing(600, at=400))
    ((begins, _),) = founded
    assert 380 <= begins <= 430


def test_a_label_is_no_evidence_for_members_before_it_is_known(monkeypatch):
    x, y = rows(300, n_labels=2)
    y[:] = 0
    y[-12:] = 1
    pool, heard = learned(x[:280], y[:280]), []
    learn = pool._now.learn
    monkeypatch.setattr(
        pool._now, "learn", lambda told, y, news: heard.extend(zip(y, news > 0, strict=True)) or learn(told, y, news)
    )
    learned(x[280:], y[280:], pool)
    assert {bool(counts) for label, counts in heard if label == 1} == {False}


def test_answers_for_now_lean_to_labels_that_came_more_often():
    x, rng = np.random.default_rng(0).normal(size=(600, 2)), np.random.default_rng(1)
    y = (rng.random(600) < 0.1).astype(int)  # whatever x is
    share = np.exp(learned(x, y).answer(x)[:, 1]).mean()
    assert 0.05 < share < 0.2


def test_rows_whose_labels_come_one_by_one_are_evidence_for_the_label_before():
    x, y = np.random.default_rng(0).normal(size=(400, 2)), np.arange(400) // 40 % 2
    known, together = ClassPool(2), ClassPool(2)
    for start in range(0, 400, 10):
        for pool, each in ((known, True), (together, False)):
            pool.learn(x[start : start + 10], y[start : start + 10], row_by_row=each)
    asked = np.zeros((1, 2))
    likely = [float(np.exp(pool.answer(asked, "next", since=[1, 1, 1])[0, 1])) for pool in (known, together)]
    assert likely[0] > likely[1] + 0.02


def test_a_pool_that_resumes_forgets_as_it_would_have():
    x, y = rows(450)
    pool, other = learned(x, y), ClassPool(3)
    other.load_state_dict(pool.state_dict())
    is_gone = np.arange(len(pool.rows)) % 7 == 0
    for each in (pool, other):
        each.forget(is_gone)
    assert (pool.answer(x[:50]) == other.answer(x[:50])).all()
