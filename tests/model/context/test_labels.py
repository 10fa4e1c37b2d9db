"""How recent labels are, against the shares written out."""

import torch

from cndpm.model.context.labels import Labels


def test_a_label_is_recent_as_far_as_its_share_of_the_latest_is_that_of_all():
    labels = Labels()
    labels.count(torch.tensor([0] * 60 + [1] * 30 + [2] * 10), 3)
    latest = torch.tensor([0] * 30 + [1] * 4 + [2] * 16)
    # one sample is added to both: 5 seen where 16 were expected, from a tenth (0) to a half (1) of that
    assert labels.recent(latest, 4).tolist() == [1.0, (5 / 16 - 0.1) / 0.4, 1.0, 0.0]


def test_labels_are_counted_on_and_asked_anew_after_every_batch():
    labels, latest = Labels(), torch.zeros(50, dtype=torch.int64)
    labels.count(torch.zeros(50, dtype=torch.int64), 1)
    assert labels.recent(latest, 2).tolist() == [1.0, 0.0]
    labels.count(torch.ones(50, dtype=torch.int64), 2)
    assert labels.counts.tolist() == [50.0, 50.0]
    assert labels.recent(latest + 1, 2).tolist() == [0.0, 1.0]
