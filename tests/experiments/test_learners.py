"""Names on the command line."""

from __future__ import annotations

import pytest

from cndpm.experiments.learners import LEARNERS, learner_class, learner_name
from cndpm.experiments.presets import preset_settings
from cndpm.learner import Learner
from cndpm.names import ObjectNameError, UnknownNameError

TASK_FREE = ["finetune", "reservoir", "iid-online", "iid-offline", "gss", "a-gem", "mir", "der", "der++", "er-ace"]
TASK_FREE += ["scr", "gdumb", "slda", "pec"]
TASK_BASED = ["ewc", "online-ewc", "si", "mas", "lwf", "gem", "dgr", "rtf"]


@pytest.mark.parametrize("name", TASK_FREE + TASK_BASED)
def test_every_promised_name_has_a_learner_with_one_line_and_documented_settings(name: str):
    cls = learner_class(name)
    summary = LEARNERS.summaries()[name]
    assert summary and "\n" not in summary
    assert all(field.description for field in cls.Settings.model_fields.values())
    assert "Departures:" in (cls.__doc__ or "")


def test_only_the_task_based_comparison_is_told_of_tasks():
    settings = {name: preset_settings("default", name, "split-digits") for name in LEARNERS}
    made = {
        name: cls(cls.Settings.model_validate(settings[name]), input_shape=(1, 8, 8), n_classes=10)
        for name, cls in LEARNERS.items()
    }
    told = {name for name, learner in made.items() if learner.task_listener is not None}
    assert told == {*TASK_BASED, "cndpm-tasks"}


def test_a_misspelt_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean reservoir"):
        learner_class("resevoir")


def test_a_name_like_no_other_lists_all():
    with pytest.raises(UnknownNameError, match=r"Known: cndpm, cndpm-tasks, finetune, .*package\.module:Class"):
        learner_class("zzz")


def test_a_learner_of_ones_own_is_named_by_module_and_class(tmp_path, monkeypatch):
    (tmp_path / "own_learners.py").write_text(
        "from cndpm.baselines.finetune import FineTune\n"
        "class Mine(FineTune):\n    class Inner(FineTune):\n        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("own_learners:Mine", "own_learners:Mine.Inner"):
        assert learner_name(learner_class(name)) == name


def test_registered_learners_keep_their_names():
    # One class has two names: settings say whether it is told of tasks.
    assert {learner_name(cls) for cls in LEARNERS.values()} == set(LEARNERS) - {"cndpm-tasks"}


def test_what_is_no_learner_is_refused():
    with pytest.raises(ObjectNameError, match=r"must be a subclass of cndpm\.learner:Learner; it is the class Decimal"):
        learner_class("decimal:Decimal")


class Unfinished(Learner):
    """Has neither settings nor methods."""


def test_a_class_that_is_no_complete_learner_is_refused_with_what_it_lacks():
    with pytest.raises(ObjectNameError, match=r"no complete learner: it has no Settings, footprint, learn, "):
        learner_class(f"{__name__}:Unfinished")
