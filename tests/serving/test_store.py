import shutil
from contextlib import suppress

import numpy as np
import pytest
from tests.serving.client import clusters

from cndpm import CNDPMClassifier, CNDPMRegressor
from cndpm.checks.case import same
from cndpm.errors import DamageWarning
from cndpm.serving import Store, StoreError
from cndpm.serving import store as store_module
from cndpm.serving.row_log import LogError
from cndpm.serving.store import learn_rows
from cndpm.storage import remove_file


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "served"


def teach(store, *, start, n_records, size=7, checkpoint=False):
    X, y = clusters(200, seed=1)
    for k in range(start, start + n_records):
        rows = slice(size * k, size * k + size)
        learn_rows(store.model, X[rows], y[rows])
        store.append(X[rows], y[rows], [(f"request {k}", size)])
        if checkpoint:
            store.checkpoint()


def expected(model_file, n_records, size=7):
    X, y = clusters(200, seed=1)
    model = CNDPMClassifier.load(model_file)
    for k in range(n_records):
        learn_rows(model, X[size * k : size * k + size], y[size * k : size * k + size])
    return model


def is_same(model, other):
    return same(model.learner_.state_dict(), other.learner_.state_dict())


def test_what_was_appended_is_there_again_to_the_bit(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=5)
    store.close()
    again = Store(model_file, folder)
    assert is_same(again.model, expected(model_file, 5))
    assert (again.n_records, list(again.known)) == (5, [f"request {k}" for k in range(5)])
    again.close()


def test_a_model_goes_on_over_checkpoints_and_restarts_to_the_same_bits(model_file, folder):
    for start in range(0, 12, 3):
        store = Store(model_file, folder)
        teach(store, start=start, n_records=3, checkpoint=start == 3)
        store.close()
    again = Store(model_file, folder)
    assert is_same(again.model, expected(model_file, 12))
    assert list(again.known) == [f"request {k}" for k in range(12)]
    again.close()


def test_two_checkpoints_are_kept(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=5, checkpoint=True)
    store.close()
    assert sorted(path.name for path in folder.glob("model-*")) == [f"model-{n:012}.cndpm" for n in (4, 5)]
    assert sorted(path.name for path in folder.glob("log-*.jsonl")) == [f"log-{n:012}.jsonl" for n in (4, 5)]


def test_a_damaged_checkpoint_is_replaced_by_the_one_before_and_the_log(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=4, checkpoint=True)
    teach(store, start=4, n_records=2)
    store.close()
    newest = max(folder.glob("model-*"))
    newest.write_bytes(newest.read_bytes()[:1000])
    with pytest.warns(DamageWarning, match="an older checkpoint"):
        again = Store(model_file, folder)
    assert is_same(again.model, expected(model_file, 6))
    again.close()


def test_a_damaged_checkpoint_displaces_no_good_one(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=2, checkpoint=True)
    newest = max(folder.glob("model-*"))
    newest.write_bytes(newest.read_bytes()[:-1] + b"!")
    teach(store, start=2, n_records=1, checkpoint=True)
    assert sorted(path.name for path in folder.glob("model-*")) == [f"model-{n:012}.cndpm" for n in (1, 2, 3)]
    store.close()
    newest = max(folder.glob("model-*"))
    newest.write_bytes(newest.read_bytes()[1:])
    with pytest.warns(DamageWarning, match="an older checkpoint"):
        again = Store(model_file, folder)
    assert is_same(again.model, expected(model_file, 3))
    assert len(list(folder.glob("model-*.damaged"))) == 2
    again.close()


def test_without_any_checkpoint_the_served_file_and_the_logs_give_the_model(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=3)
    store.checkpoint()
    store.close()
    (checkpoint,) = folder.glob("model-*")
    checkpoint.write_bytes(b"")
    with pytest.warns(DamageWarning, match="an older checkpoint"):
        again = Store(model_file, folder)
    assert is_same(again.model, expected(model_file, 3))
    again.close()


def test_a_checkpoint_of_nothing_leaves_the_served_file_alone(model_file, folder):
    before = model_file.read_bytes(), model_file.stat().st_mtime_ns
    store = Store(model_file, folder)
    store.checkpoint()
    store.close()
    assert (model_file.read_bytes(), model_file.stat().st_mtime_ns) == before


def test_a_process_that_ends_between_any_two_removals_leaves_a_folder_that_gives_the_model(
    model_file, folder, monkeypatch
):
    class Killed(BaseException):
        pass

    for n_before in range(12):
        shutil.rmtree(folder, ignore_errors=True)
        store = Store(model_file, folder)
        teach(store, start=0, n_records=3, checkpoint=True)
        teach(store, start=3, n_records=1)
        n_left = n_before

        def dying(path):
            nonlocal n_left
            if not n_left:
                raise Killed
            n_left -= 1
            remove_file(path)

        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(store_module, "remove_file", dying)
            store.checkpoint()
        store._lock.release()
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(store_module, "remove_file", dying)
            Store(model_file, folder).close()
        again = Store(model_file, folder)
        assert again.n_records == 4 and is_same(again.model, expected(model_file, 4))
        again.close()


def test_records_that_are_missing_are_refused(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=4, checkpoint=True)
    teach(store, start=4, n_records=1)
    store.close()
    max(folder.glob("model-*")).unlink()
    min(folder.glob("log-*.jsonl")).unlink()
    min(folder.glob("log-*.witness")).unlink()
    with pytest.raises(LogError, match="records before 4 are missing"):
        Store(model_file, folder)


def test_a_log_of_another_server_is_refused(model_file, folder, tmp_path):
    for where, start in ((folder, 0), (tmp_path / "other", 1)):
        store = Store(model_file, where)
        teach(store, start=start, n_records=1)
        store.checkpoint()
        teach(store, start=2, n_records=1)
        store.close()
    for other in (tmp_path / "other").glob("log-*1.*"):
        (folder / other.name).write_bytes(other.read_bytes())
    with pytest.raises(LogError, match="does not go on from the log before it"):
        Store(model_file, folder)


def test_a_damaged_log_is_refused_kept_and_can_be_salvaged(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=3)
    store.close()
    (log,) = folder.glob("log-*.jsonl")
    whole = log.read_bytes()
    log.write_bytes(whole[:-9] + b"!" + whole[-8:])
    damaged = log.read_bytes()
    for _ in range(2):  # nothing changes by trying
        with pytest.raises(LogError, match=r"line 4 of .*log-0+\.jsonl is damaged\. .*--salvage"):
            Store(model_file, folder)
        assert log.read_bytes() == damaged
    with pytest.warns(DamageWarning, match="went on with 2 records"):
        again = Store(model_file, folder, salvage=True)
    assert is_same(again.model, expected(model_file, 2))
    assert folder.joinpath(f"{log.name}.damaged").read_bytes() == damaged
    teach(again, start=2, n_records=1)
    again.close()
    once_more = Store(model_file, folder)
    assert is_same(once_more.model, expected(model_file, 3))
    assert list(once_more.known) == [f"request {k}" for k in range(3)]
    once_more.close()


@pytest.mark.parametrize(
    ("X", "y"),
    [(np.zeros((2, 3), np.float32), ["a", "b"]), (np.zeros((2, 2), np.float32), [["a"], "b"]),
     (np.full((2, 2), np.inf, np.float32), ["a", "b"]), (np.zeros((2, 2), np.float32), ["a"])],
)  # fmt: skip
def test_a_record_that_cannot_be_learned_again_is_refused_by_name_and_can_be_left_out(model_file, folder, X, y):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=2)
    store.append(X, y, [(None, 2)])
    store.close()
    with pytest.raises(LogError, match=r"record 2 of .*log-0{12}\.jsonl cannot be learned"):
        Store(model_file, folder)
    with pytest.warns(DamageWarning, match="went on with 2 records"):
        store = Store(model_file, folder, salvage=True)
    assert is_same(store.model, expected(model_file, 2))
    store.close()


def test_what_was_put_aside_as_damaged_is_never_replaced(model_file, folder):
    damaged = []
    for k in range(3):
        store = Store(model_file, folder)
        teach(store, start=0, n_records=1, size=7 + k)
        store.close()
        (log,) = folder.glob("log-*.jsonl")
        damaged.append(log.read_bytes().replace(b"number", b"numbed"))
        log.write_bytes(damaged[-1])
        with pytest.warns(DamageWarning, match="went on with 0 records"):
            Store(model_file, folder, salvage=True).close()
    kept = [folder / f"{log.name}.damaged{end}" for end in ("", "-2", "-3")]
    assert [path.read_bytes() for path in kept] == damaged
    Store(model_file, folder).close()


def test_a_checkpoint_is_due_after_so_many_rows(model_file, folder):
    store = Store(model_file, folder, checkpoint_rows=14)
    teach(store, start=0, n_records=1)
    assert not store.is_due
    teach(store, start=1, n_records=1)
    assert store.is_due
    store.checkpoint()
    assert not store.is_due
    store.close()


def test_ids_are_remembered_up_to_a_number(model_file, folder, monkeypatch):
    monkeypatch.setattr(store_module, "_REMEMBERED", 3)
    store = Store(model_file, folder)
    teach(store, start=0, n_records=5, size=1)
    assert list(store.known) == ["request 2", "request 3", "request 4"]
    store.close()


def test_a_folder_has_one_server(model_file, folder):
    store = Store(model_file, folder)
    with pytest.raises(StoreError, match="in use by another server"):
        Store(model_file, folder)
    store.close()


def test_a_folder_belongs_to_one_model(model_file, folder, tmp_path):
    Store(model_file, folder).close()
    X, y = clusters(60, seed=5)
    CNDPMClassifier(random_state=0).fit(X, y).save(tmp_path / "other.cndpm")
    with pytest.raises(StoreError, match="goes on from another model"):
        Store(tmp_path / "other.cndpm", folder)
    Store(model_file, folder).close()  # a refusal lets go of the folder


def test_a_folder_without_its_mark_is_refused_and_kept(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=1)
    store.close()
    (folder / "origin").unlink()
    before = {path.name: path.read_bytes() for path in folder.glob("log-*")}
    with pytest.raises(StoreError, match="which says whose checkpoints and logs these are, is missing"):
        Store(model_file, folder)
    assert {path.name: path.read_bytes() for path in folder.glob("log-*")} == before


def test_a_model_that_is_not_there_is_named(tmp_path, folder):
    with pytest.raises(StoreError, match=r"cannot read the model .*none\.cndpm"):
        Store(tmp_path / "none.cndpm", folder)


def test_regressors_learn_their_targets_again(tmp_path, folder):
    X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    model = CNDPMRegressor(memory_size=30, random_state=0).fit(X, X[:, 0])
    model.save(tmp_path / "regressor.cndpm")
    store = Store(tmp_path / "regressor.cndpm", folder)
    targets = X[:9, 0].astype(np.float64).tolist()
    learn_rows(store.model, X[:9], targets)
    store.append(X[:9], targets, [(None, 9)])
    store.close()
    again = Store(tmp_path / "regressor.cndpm", folder)
    assert is_same(again.model, store.model)
    again.close()


def test_a_checkpoint_that_is_ahead_of_all_logs_is_noticed(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=3)
    store.checkpoint()
    store.close()
    log = folder / "log-000000000000.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-1]))
    for path in (log.with_suffix(".witness"), *folder.glob("log-000000000003.*")):
        path.unlink()
    with pytest.raises(LogError, match="records 2 to 2 are missing"):
        Store(model_file, folder)


def test_a_start_that_fails_leaves_the_folder_to_the_next(model_file, folder, tmp_path):
    Store(model_file, folder).close()
    other = tmp_path / "other.cndpm"
    CNDPMClassifier(random_state=1).fit(*clusters(40)).save(other)
    with pytest.raises(StoreError, match="another model") as kept:
        Store(other, folder)
    Store(model_file, folder).close()
    assert kept.value is not None  # and with it whatever the failed start held


def test_a_whole_checkpoint_of_another_moment_is_not_taken_for_the_one_of_its_name(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=4, checkpoint=True)
    teach(store, start=4, n_records=2)
    store.close()
    older, newer = sorted(folder.glob("model-*"))
    first, second = older.read_bytes(), newer.read_bytes()
    newer.write_bytes(first)  # as from a backup
    with pytest.warns(DamageWarning, match=r"is another one than log-0{11}4\.jsonl goes on from"):
        again = Store(model_file, folder)
    assert is_same(again.model, expected(model_file, 6))
    again.close()
    newest = max(folder.glob("model-*.cndpm"))
    newest.write_bytes(first)
    older.write_bytes(second)
    with pytest.raises(LogError, match="records before 3 are missing"):
        Store(model_file, folder)


def test_other_files_and_folders_in_a_folder_are_left_alone_or_named(model_file, folder):
    store = Store(model_file, folder)
    teach(store, start=0, n_records=2)
    store.close()
    for name in ("model-99.cndpm", "model-٣٣.cndpm", "log-2.jsonl"):
        (folder / name).write_bytes(b"a copy")
    again = Store(model_file, folder)
    assert is_same(again.model, expected(model_file, 2))
    again.close()
    assert (folder / "model-99.cndpm").exists()
    (folder / "log-000000000099.jsonl").mkdir()
    with pytest.raises(LogError, match="records before 99 are missing"):
        Store(model_file, folder)
    (folder / "log-000000000099.jsonl").rmdir()
    (folder / "origin").unlink()
    (folder / "origin").mkdir()
    with pytest.raises(StoreError, match="origin, which says whose"):
        Store(model_file, folder)


def test_a_folder_that_cannot_be_used_is_named(model_file, folder):
    (folder / "origin" / "full").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"cannot use .*served: .*Name another --folder"):
        Store(model_file, folder)
