"""A checkpoint is read only beside the configuration and the log that it was made with."""

import pytest

from cndpm.experiments import read_checkpoint
from cndpm.experiments.record import CHECKPOINT, LOG, RecordError
from cndpm.experiments.recorder import Recorder
from cndpm.state import StateError
from cndpm.state.state_file import MissingStateError

CONFIG = {"seed": 0, "learner": "x"}


def complete_run(folder, config=CONFIG):
    with Recorder(folder, config=config, environment={}) as recorder:
        recorder.append("progress", 1, value=4.5)
        recorder.save_checkpoint({"step": 1})
        recorder.conclude({"accuracy": 1.0})
    return folder


def test_the_checkpoint_of_a_complete_run_is_read(tmp_path):
    assert read_checkpoint(complete_run(tmp_path)) == {"step": 1}


def test_a_whole_checkpoint_of_another_run_is_refused_in_a_complete_record(tmp_path):
    a, b = (complete_run(tmp_path / str(seed), {**CONFIG, "seed": seed}) for seed in (0, 1))
    (a / CHECKPOINT).write_bytes((b / CHECKPOINT).read_bytes())
    with pytest.raises(StateError, match=r"checkpoint\.cndpm is of another run; it differs in seed"):
        read_checkpoint(a)


def test_a_checkpoint_beside_another_log_is_refused(tmp_path):
    log = complete_run(tmp_path) / LOG
    log.write_bytes(log.read_bytes().replace(b"4.5", b"9.5"))
    with pytest.raises(StateError, match=r"log\.jsonl is damaged"):
        read_checkpoint(tmp_path)


def test_without_a_record_or_a_checkpoint_there_is_an_error_of_the_package(tmp_path):
    with pytest.raises(RecordError, match="no record in"):
        read_checkpoint(tmp_path)
    (complete_run(tmp_path) / CHECKPOINT).unlink()
    with pytest.raises(MissingStateError, match="there is no file"):
        read_checkpoint(tmp_path)
