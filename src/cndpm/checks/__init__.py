"""Checks of what every learner promises, for any learner, one's own included.

    from cndpm.checks import check_learner

    check_learner(MyLearner, MyLearner.Settings(memory_size=20))

Each check runs the learner on a small stream of two tasks and raises :class:`ContractError` with what it found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cndpm.checks.blocks import check_block_agrees, check_block_resumes, check_prepare
from cndpm.checks.case import ContractError, LearnerCase
from cndpm.checks.promises import (
    check_answers,
    check_footprint,
    check_global_random_state,
    check_inputs_unchanged,
    check_memory_bound,
    check_no_task_identity,
    check_predict_has_no_effect,
    check_save_and_load,
    check_seed_repeats,
    check_settings_refused,
)
from cndpm.learner import Learner, LearnerSettings

__all__ = ["CHECKS", "ContractError", "LearnerCase", "check_learner"]

CHECKS: tuple[Callable[[LearnerCase], None], ...] = (
    check_settings_refused,
    check_no_task_identity,
    check_inputs_unchanged,
    check_answers,
    check_footprint,
    check_memory_bound,
    check_seed_repeats,
    check_predict_has_no_effect,
    check_prepare,
    check_block_agrees,
    check_save_and_load,
    check_block_resumes,
    check_global_random_state,
)
"""All checks, the cheap ones first."""


def check_learner(learner_class: type[Learner], settings: LearnerSettings | None = None, **case: Any) -> None:
    """Puts a learner through all checks.

    Args:
        learner_class: The learner.
        settings: Its settings; by default those it has without being told any.
        **case: Further fields of :class:`LearnerCase`, e.g. ``input_shape=(4,)`` or ``n_classes=None``.

    Raises:
        ContractError: At the first broken promise.

    Example:
        >>> from cndpm.baselines.slda import SLDA
        >>> check_learner(SLDA, SLDA.Settings(n_features=5), input_shape=(3,), n_classes=2)
    """
    chosen = learner_class.Settings() if settings is None else settings
    for check in CHECKS:
        check(LearnerCase(learner_class, chosen, **case))
