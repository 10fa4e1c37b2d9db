"""When the present is fitted and asked, over how many rows, and in which units it answers."""

from itertools import pairwise

import torch

from cndpm.experts.chunks import Samples
from cndpm.mixture import currency
from cndpm.model.cndpm import CNDPM
from cndpm.model.context import Present
from cndpm.model.settings import CNDPMSettings

SIZES = {"n_columns": 2, "n_recent": 500, "n_features": 10, "n_rules": 8}


def make(*, for_classes: bool = True) -> Present:
    return Present(for_classes=for_classes, n_outputs=1, evidence=20.0, seed=0, **SIZES)


def rows(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, 2, generator=torch.Generator().manual_seed(seed))


def teach(present: Present, x: torch.Tensor) -> None:
    present.learn(Samples(x), (x[:, 0] > 0).long(), torch.zeros(len(x), 2, dtype=torch.float64))


def test_representations_are_fitted_after_twenty_a_hundred_and_five_hundred_rows():
    present, fitted = make(), {}
    for n, part in enumerate(rows(600).split(10), start=1):
        teach(present, part)
        fitted.setdefault(present.state_dict()["schedule"]["n_fits"], 10 * n)
    assert fitted == {0: 10, 1: 20, 2: 100, 3: 500}


def test_they_are_fitted_anew_when_more_than_three_in_ten_of_the_latest_hundred_rows_leave_the_range():
    for n_outside, refitted_at in ((3, None), (4, 80)):
        present = make()
        for part in rows(600).split(10):
            teach(present, part.clamp(-2, 2))
        at = None
        for n, part in enumerate(rows(200, seed=1).clamp(-0.5, 0.5).split(10), start=1):
            part[:n_outside] = 1000.0
            teach(present, part)
            if at is None and present.state_dict()["schedule"]["begun_at"] > 0:
                at = 10 * n
        assert at == refitted_at


def test_a_label_is_recent_by_its_share_of_the_latest_fifty_rows():
    present = make()
    y = torch.cat([torch.zeros(300), torch.ones(140), torch.tensor([0.0, 1.0]).repeat(30)]).long()
    for x, labels in zip(rows(500).split(10), y.split(10), strict=True):
        present.learn(Samples(x), labels, torch.zeros(10, 2, dtype=torch.float64))
    expected = torch.tensor([330.0, 170.0]).double() * 50 / 500
    latest = torch.tensor([25.0, 25.0]).double()
    assert present.recent_labels(3).tolist() == [*currency(latest, expected, pseudo=1.0).tolist(), 0.0]
    for part in rows(60, seed=2).split(10):
        present.learn(Samples(part), torch.ones(10, dtype=torch.long), torch.zeros(10, 2, dtype=torch.float64))
    assert present.recent_labels(2).tolist() == [0.0, 1.0]


def test_the_gate_is_asked_again_after_fifty_rows():
    learner = CNDPM(CNDPMSettings(memory_size=50, pool_features=10), input_shape=(2,))
    asked = set()
    for centre, label in ((0.0, 0), (30.0, 1)):
        for x in (rows(300) + centre).split(10):
            learner.learn(x, torch.full((10,), label))
            asked.add(learner.present.state_dict()["asked_at"])
    times = sorted(asked)[2:]
    assert len(times) > 3 and {later - earlier for earlier, later in pairwise(times)} == {50}


def test_answers_follow_the_units_of_the_targets():
    """The same stream with targets a thousand times as large: the mean moves with them, the variance by the square."""
    answers = []
    for unit in (1.0, 1000.0):
        present = make(for_classes=False)
        for x in rows(200).split(10):
            y = unit * (2 * x[:, :1] + 5)
            present.learn(Samples(x), y, torch.stack([y, torch.full_like(y, unit**2)], dim=1).double())
        ever = torch.stack([torch.zeros(6, 1), torch.full((6, 1), unit**2)], dim=1).double()
        answers.append(present.answer(Samples(rows(6, seed=3)), ever))
    torch.testing.assert_close(answers[1][:, 0], 1000 * answers[0][:, 0], rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(answers[1][:, 1], 1e6 * answers[0][:, 1], rtol=1e-3, atol=1e-2)


def test_recent_models_forget_over_twenty_to_a_thousand_samples_and_rules_nothing():
    present = make()
    teach(present, rows(20))
    keeps = [members.keeps for members in present._rules._members]
    wide = [0.97, 0.99, 0.997, 1.0]
    assert keeps == [[0.95, 0.98, 0.995, 0.999, 1.0], wide, wide]
    assert present._rules._min_served == 300
