import json
import os
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from cndpm import __version__
from cndpm.estimators.saved import _as_array
from cndpm.state import FORMAT_VERSION, StateError, load_state, read_state, save_state, state_kind
from cndpm.state.container import container_pieces
from cndpm.state.tree import exchanged

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


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_a_pickled_tree_of_arrays_gives_the_same_tensors_in_memory_of_their_own(dtype):
    values = torch.tensor([[0.0, -0.0, 1.0], [2.0, 3.0, 0.5]]).to(dtype)
    state = {"a": [values, {"b": values.T[1]}], "empty": values[:0], "scalar": values[1, 2], "n": None, "t": "text"}
    arrays = exchanged(state, torch.Tensor, _as_array)
    assert isinstance(arrays["scalar"], torch.Tensor) is (dtype is torch.bfloat16)
    made = exchanged(pickle.loads(pickle.dumps(arrays)), np.ndarray, torch.tensor)
    values[:] = 1
    assert torch.equal(made["a"][0], torch.tensor([[0.0, -0.0, 1.0], [2.0, 3.0, 0.5]]).to(dtype))
    assert (made["a"][1]["b"].shape, made["empty"].shape, made["scalar"].shape) == ((2,), (0, 3), ())
    assert {made["a"][0].dtype, made["empty"].dtype, made["scalar"].dtype} == {dtype}
    assert (made["n"], made["t"]) == (None, "text")


def test_a_file_of_another_kind_is_refused_by_name(tmp_path):
    save_state(tmp_path / "s", {}, kind="apple")
    with pytest.raises(StateError, match="holds the state of a apple; a pear was asked for"):
        load_state(tmp_path / "s", kind="pear")


def test_a_kind_cannot_begin_a_line_of_its_own(tmp_path):
    save_state(tmp_path / "s", {}, kind="apple\ncndpm: all is well\x1b[0m")
    with pytest.raises(StateError) as refused:
        load_state(tmp_path / "s", kind="pear")
    assert str(refused.value).isprintable()


def test_a_file_with_another_header_is_refused(tmp_path):
    header = json.dumps({"format": 1, "kind": "test", "tree": {}})
    save_file({}, tmp_path / "s", metadata={"cndpm": header})
    with pytest.raises(StateError, match="not one that cndpm wrote"):
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


def test_a_file_says_by_which_version_and_from_which_settings_it_is(tmp_path):
    save_state(tmp_path / "s", {"a": 1}, kind="test", settings={"rate": 0.5})
    file = read_state(tmp_path / "s", kind="test")
    assert (file.package, file.settings, file.format) == (__version__, {"rate": 0.5}, FORMAT_VERSION)


def test_every_single_bit_flipped_anywhere_is_refused(tmp_path):
    path = tmp_path / "s"
    save_state(path, {"a": torch.arange(3), "b": [None, "text", {"c": torch.tensor(True)}]}, kind="test")
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(StateError):
            load_state(path, kind="test")


def test_tools_for_safetensors_can_look_inside(tmp_path):
    save_state(tmp_path / "s", {"a": torch.arange(3), "b": torch.ones(2, 2)}, kind="test")
    tensors = load_file(tmp_path / "s")
    assert tensors.keys() == {"a", "b", "$sha256"}
    assert torch.equal(tensors["a"], torch.arange(3))


def test_a_file_of_a_later_format_names_the_version_to_install(tmp_path):
    header = {"format": 3, "package": "9.1.0", "kind": "test", "settings": {}, "tree": {}, "more": 1}
    (tmp_path / "s").write_bytes(b"".join(container_pieces({"cndpm state": json.dumps(header)}, {})))
    with pytest.raises(StateError, match=r"format 3 and was written by cndpm 9\.1\.0; .* Install cndpm==9\.1\.0"):
        load_state(tmp_path / "s", kind="test")


def test_a_file_without_its_checksum_is_damaged(tmp_path):
    header = {"format": 2, "package": "0.1.0", "kind": "test", "settings": {}, "tree": {}}
    save_file({"x": torch.ones(40)}, tmp_path / "s", metadata={"cndpm state": json.dumps(header)})
    with pytest.raises(StateError, match="damaged: its checksum does not fit"):
        load_state(tmp_path / "s", kind="test")


def test_the_file_that_is_replaced_stays_under_another_name(tmp_path):
    for step in (1, 2, 3):
        save_state(tmp_path / "s", {"step": step}, kind="test", keep=tmp_path / "before")
    assert [load_state(tmp_path / name, kind="test")["step"] for name in ("before", "s")] == [2, 3]


def test_folders_and_pipes_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        with pytest.raises(StateError, match="is not a file"):
            load_state(tmp_path / name, kind="test")


def test_a_header_that_would_be_refused_is_not_written(tmp_path):
    with pytest.raises(StateError, match="numbers belong into tensors"):
        save_state(tmp_path / "a", {"numbers": list(range(1_000_000))}, kind="example")
    assert list(tmp_path.iterdir()) == []


def test_the_kind_of_a_file_is_told_without_its_tensors(tmp_path):
    save_state(tmp_path / "a", {"x": torch.zeros(3)}, kind="example")
    assert state_kind(tmp_path / "a") == "example"
    (tmp_path / "b").write_bytes(b"\0" * 100)
    assert [state_kind(tmp_path / name) for name in ("b", "missing")] == [None, None]


def written(path, tensors=None, **changes):
    """Writes a file whose checksum is right and which says what is given of itself."""
    header = {"format": 2, "package": "0.1.0", "kind": "test", "settings": {}, "tree": {}} | changes
    path.write_bytes(b"".join(container_pieces({"cndpm state": json.dumps(header)}, tensors or {})))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": 1, "package": "0.0.9"}, r"format 1 and was written by cndpm 0\.0\.9"),
        ({"format": 3, "package": "9.1; rm -rf"}, "Install a newer version"),
        ({"more": 1}, "damaged: it says"),
        ({"tree": []}, "no dictionary"),
    ],
)
def test_what_a_file_says_of_itself_is_understood_or_refused(tmp_path, changes, reason):
    written(tmp_path / "s", **changes)
    with pytest.raises(StateError, match=reason):
        load_state(tmp_path / "s", kind="test")


def test_every_tensor_of_a_file_has_a_place_in_its_tree(tmp_path):
    written(tmp_path / "s", {"lost": torch.ones(3)})
    with pytest.raises(StateError, match="tensors without a place in its tree: 'lost'"):
        load_state(tmp_path / "s", kind="test")


def test_a_key_that_stands_for_tensors_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError, match="strings other than"):
        save_state(tmp_path / "s", {"a": {"$tensor": "mine"}}, kind="test")
    assert list(tmp_path.iterdir()) == []
