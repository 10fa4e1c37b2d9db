import json
import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from cndpm.state import StateError, load_state, save_state

leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.text())
keys = st.text(min_size=1).filter(lambda key: key != "$tensor")
trees = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


@given(st.dictionaries(keys, trees, max_size=4))
def test_any_tree_of_plain_values_survives_a_round_trip(tmp_path_factory, tree):
    path = tmp_path_factory.mktemp("state") / "a"
    save_state(path, tree, kind="test")
    assert load_state(path, kind="test") == tree


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool, torch.uint8])
def test_tensors_keep_type_shape_and_bits(tmp_path, dtype):
    shared = torch.arange(6, dtype=torch.float64).reshape(2, 3).to(dtype)
    state = {"a": [shared, {"b": shared.T}], "empty": torch.zeros(0, 2), "scalar": torch.tensor(3)}
    save_state(tmp_path / "s", state, kind="test")
    loaded = load_state(tmp_path / "s", kind="test")
    assert torch.equal(loaded["a"][0], shared)
    assert loaded["a"][0].dtype is dtype
    assert torch.equal(loaded["a"][1]["b"], shared.T)
    assert loaded["empty"].shape == (0, 2)
    assert loaded["scalar"].item() == 3


def test_a_file_of_another_kind_is_refused_by_name(tmp_path):
    save_state(tmp_path / "s", {}, kind="apple")
    with pytest.raises(StateError, match="holds the state of a apple; a pear was asked for"):
        load_state(tmp_path / "s", kind="pear")


def test_a_file_of_a_newer_format_is_refused(tmp_path):
    header = json.dumps({"format": 999, "kind": "test", "tree": {}})
    save_file({}, tmp_path / "s", metadata={"cndpm": header})
    with pytest.raises(StateError, match="format 999"):
        load_state(tmp_path / "s", kind="test")


@pytest.mark.parametrize("damage", ["truncate", "garbage", "empty", "foreign"])
def test_damaged_and_foreign_files_get_a_clear_error(tmp_path, damage):
    path = tmp_path / "s"
    save_state(path, {"a": torch.ones(100)}, kind="test")
    if damage == "foreign":
        save_file({"a": torch.ones(3)}, path)
    else:
        path.write_bytes({"truncate": path.read_bytes()[:150], "garbage": os.urandom(500), "empty": b""}[damage])
    with pytest.raises(StateError):
        load_state(path, kind="test")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "s"
    save_state(path, {"a": 1}, kind="test")
    with pytest.raises(TypeError, match="set at 'b'"):
        save_state(path, {"b": {1, 2}}, kind="test")
    assert load_state(path, kind="test") == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_state(tmp_path / "nowhere", kind="test")
