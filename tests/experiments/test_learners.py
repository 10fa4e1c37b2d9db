"""Names on the command line."""

from __future__ import annotations

import pytest

from cndpm.experiments.learners import LEARNERS, learner_class
from cndpm.learner import TaskBasedLearner

TASK_FREE = ["finetune", "reservoir", "iid-online", "iid-offline", "gss", "a-gem", "mir", "der", "der++", "er-ace"]
TASK_FREE += ["scr", "gdumb", "slda", "pec"]
TASK_BASED = ["ewc", "online-ewc", "si", "mas", "lwf", "gem", "dgr", "rtf"]


@pytest.mark.parametrize("name", TASK_FREE + TASK_BASED)
def test_every_promised_name_has_a_learner_with_one_line_and_documented_settings(name: str):
    cls = learner_class(name)
    assert cls.summary
    assert "\n" not in cls.summary
    assert all(field.description for field in cls.Settings.model_fields.values())
    assert "Departures:" in (cls.__doc__ or "")


def test_only_the_task_based_comparison_is_told_of_tasks():
    told = {name for name in TASK_FREE + TASK_BASED if issubclass(LEARNERS[name], TaskBasedLearner)}
    assert told == set(TASK_BASED)


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'reservoir'"):
        learner_class("resevoir")


def test_a_name_like_no_other_lists_all():
    with pytest.raises(ValueError, match=r"Known learners: cndpm, cndpm-tasks, finetune, reservoir"):
        learner_class("zzz")
