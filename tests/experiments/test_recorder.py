"""One writer per folder, and trouble reported at once."""

from contextlib import contextmanager

import pytest
import torch

from cndpm.errors import DamageWarning
from cndpm.experiments.record import CHECKPOINT, LOG, PREVIOUS, RecordError, read_record
from cndpm.experiments.recorder import Recorder
from cndpm.state import load_state

resource = pytest.importorskip("resource")

CONFIG = {"seed": 0, "learner": "x", "settings": {"a": 1, "b": 2}}


def flip(path):
    """Flips one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def open_recorder(folder, config=CONFIG, **options):
    return Recorder(folder, config=config, environment={"torch": "x"}, **options)


def test_what_is_written_is_read_back(tmp_path):
    with open_recorder(tmp_path / "run") as recorder:
        recorder.append("evaluation", 3, accuracy=12.5)
        recorder.save_checkpoint({"weight": torch.arange(3), "step": 3})
        assert read_record(tmp_path / "run").status == "running"
        recorder.conclude({"accuracy": 12.5})
    record = read_record(tmp_path / "run")
    assert (record.config, record.environment, record.status) == (CONFIG, {"torch": "x"}, "complete")
    assert record.column("accuracy") == [12.5]


def test_a_checkpoint_comes_back_to_the_bit(tmp_path):
    weight = torch.randn(100, generator=torch.Generator().manual_seed(0))
    with open_recorder(tmp_path) as recorder:
        assert recorder.load_checkpoint() is None
        recorder.save_checkpoint({"weight": weight, "step": 7})
        loaded = recorder.load_checkpoint()
    assert torch.equal(loaded["weight"], weight)
    assert loaded["step"] == 7


def test_two_runs_never_write_the_same_folder(tmp_path):
    with open_recorder(tmp_path), pytest.raises(RecordError, match="another run is writing"):
        open_recorder(tmp_path, resume=True)


def test_a_folder_that_holds_a_run_is_refused_without_resume(tmp_path):
    open_recorder(tmp_path).close()
    with pytest.raises(RecordError, match="--resume"):
        open_recorder(tmp_path)


def test_a_refused_writer_leaves_the_folder_free(tmp_path):
    open_recorder(tmp_path).close()
    with pytest.raises(RecordError):
        open_recorder(tmp_path)
    open_recorder(tmp_path, resume=True).close()


def test_resuming_with_another_configuration_names_what_differs(tmp_path):
    open_recorder(tmp_path).close()
    changed = {**CONFIG, "settings": {"a": 1, "b": 3}}
    with pytest.raises(RecordError, match=r"differs in settings\.b\."):
        open_recorder(tmp_path, changed, resume=True)


def test_a_complete_run_is_read_whatever_the_device(tmp_path):
    with open_recorder(tmp_path, {**CONFIG, "device": "cuda"}) as recorder:
        recorder.conclude({"accuracy": 1.0})
    with open_recorder(tmp_path, {**CONFIG, "device": "cpu"}, resume=True) as recorder:
        assert recorder.summary == {"accuracy": 1.0}


def test_a_line_cut_off_by_a_crash_does_not_swallow_the_next(tmp_path):
    open_recorder(tmp_path).close()
    (tmp_path / LOG).write_text('{"event": "evaluation", "st')
    with open_recorder(tmp_path, resume=True) as recorder:
        recorder.append("evaluation", 4, accuracy=1.0)
    assert read_record(tmp_path).column("step") == [4]


def test_what_a_crash_left_half_written_is_cleared(tmp_path):
    with open_recorder(tmp_path) as recorder:
        recorder.save_checkpoint({"step": 1})
    (tmp_path / ".checkpoint.cndpm.x1y2").write_bytes(b"half")
    with open_recorder(tmp_path, resume=True) as recorder:
        assert recorder.load_checkpoint() == {"step": 1}
    assert not list(tmp_path.glob(".checkpoint*"))


def test_a_record_that_was_just_begun_is_discarded_with_its_folder(tmp_path):
    with open_recorder(tmp_path / "run") as recorder:
        recorder.append("start", 0)
        recorder.save_checkpoint({"step": 0})
        recorder.discard()
    assert list(tmp_path.iterdir()) == []


def test_an_older_record_is_not_discarded(tmp_path):
    with open_recorder(tmp_path):
        pass
    with open_recorder(tmp_path, resume=True) as recorder:
        recorder.discard()
    assert read_record(tmp_path).status == "interrupted"


def test_what_others_keep_in_a_discarded_record_s_folder_stays(tmp_path):
    with open_recorder(tmp_path) as recorder:
        (tmp_path / "notes.txt").write_text("mine")
        recorder.discard()
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match=r"cannot create the record in .*file"):
        open_recorder(tmp_path / "file" / "run")


@contextmanager
def file_size_limit(n_bytes):
    """Every write beyond `n_bytes` of a file fails, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_takes_nothing_is_reported_when_the_run_begins(tmp_path):
    with file_size_limit(0), pytest.raises(RecordError, match=f"cannot write {tmp_path}"):
        open_recorder(tmp_path)


def test_a_checkpoint_that_does_not_fit_is_reported_and_leaves_the_last_one(tmp_path):
    with open_recorder(tmp_path) as recorder:
        recorder.save_checkpoint({"step": 1})
        with file_size_limit(10_000), pytest.raises(RecordError, match="cannot write"):
            recorder.save_checkpoint({"weight": torch.zeros(100_000), "step": 2})
        assert recorder.load_checkpoint() == {"step": 1}
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_log_line_that_does_not_fit_is_reported(tmp_path):
    with open_recorder(tmp_path) as recorder:
        recorder.append("progress", 1)
        with file_size_limit(20), pytest.raises(RecordError, match="cannot write"):
            recorder.append("progress", 2)


def test_where_the_last_checkpoint_is_damaged_the_one_before_is_used_and_said_so(tmp_path):
    with open_recorder(tmp_path) as recorder:
        for step in (1, 2):
            recorder.append("progress", step)
            recorder.save_checkpoint({"step": step})
    flip(tmp_path / CHECKPOINT)
    with open_recorder(tmp_path, resume=True) as recorder:
        with pytest.warns(DamageWarning, match=r"checkpoint\.cndpm is damaged"):
            assert recorder.load_checkpoint() == {"step": 1}
        recorder.append("resume", 1)
        assert [row["step"] for row in recorder.rows("progress")] == [1]
        recorder.save_checkpoint({"step": 3})
    assert load_state(tmp_path / PREVIOUS, kind="checkpoint") == {"step": 1}


def test_without_a_good_checkpoint_resuming_is_refused_with_every_reason(tmp_path):
    with open_recorder(tmp_path) as recorder:
        for step in (1, 2):
            recorder.save_checkpoint({"step": step})
    for name in (CHECKPOINT, PREVIOUS):
        flip(tmp_path / name)
    every = r"checkpoint\.cndpm .*checkpoint\.previous\.cndpm "
    with open_recorder(tmp_path, resume=True) as recorder, pytest.raises(RecordError, match=every):
        recorder.load_checkpoint()


def test_a_checkpoint_is_not_used_beside_a_log_that_did_not_lead_to_it(tmp_path):
    with open_recorder(tmp_path) as recorder:
        recorder.append("progress", 1, value=4.5)
        recorder.save_checkpoint({"step": 1})
    log = tmp_path / LOG
    log.write_bytes(log.read_bytes().replace(b"4.5", b"9.5"))
    with open_recorder(tmp_path, resume=True) as recorder, pytest.raises(RecordError, match=r"log\.jsonl is damaged"):
        recorder.load_checkpoint()


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    for name, config in (("a", CONFIG), ("b", {**CONFIG, "seed": 1})):
        with open_recorder(tmp_path / name, config) as recorder:
            recorder.save_checkpoint({"step": 1})
    (tmp_path / "a" / CHECKPOINT).write_bytes((tmp_path / "b" / CHECKPOINT).read_bytes())
    with open_recorder(tmp_path / "a", resume=True) as recorder, pytest.raises(RecordError, match="differs in seed"):
        recorder.load_checkpoint()


def test_a_checkpoint_without_a_configuration_is_not_overwritten(tmp_path):
    with open_recorder(tmp_path) as recorder:
        recorder.save_checkpoint({"step": 1})
    (tmp_path / "config.json").unlink()
    with pytest.raises(RecordError, match="holds the checkpoint of a run"):
        open_recorder(tmp_path)
    with open_recorder(tmp_path, resume=True) as recorder:
        assert recorder.load_checkpoint() == {"step": 1}


def test_a_damaged_summary_counts_as_none_and_is_named(tmp_path):
    with open_recorder(tmp_path) as recorder:
        recorder.conclude({"accuracy": 1.0})
    summary = tmp_path / "summary.json"
    summary.write_text(summary.read_text().replace("1.0", "2.0"))
    record = read_record(tmp_path)
    assert (record.status, record.summary) == ("interrupted", None)
    assert "summary.json is damaged" in record.problems[0]
    with open_recorder(tmp_path, resume=True) as recorder:
        assert recorder.summary is None


def test_the_log_of_a_complete_run_must_have_its_end(tmp_path):
    with open_recorder(tmp_path) as recorder:
        recorder.append("progress", 1)
        recorder.conclude({"accuracy": 1.0})
    assert read_record(tmp_path).problems == ()
    log = tmp_path / LOG
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    assert read_record(tmp_path).problems == (f"{log} is damaged: its end is missing",)
