import json

import pytest

from cndpm.experiments.record_files import RecordError, read_json, write_json


def test_what_is_written_is_read_back_with_its_checksum(tmp_path):
    write_json(tmp_path / "a", {"x": [1, 2.5, None], "tuple": (1, 2)})
    assert read_json(tmp_path / "a") == {"x": [1, 2.5, None], "tuple": [1, 2]}


def test_a_changed_value_is_refused_and_a_changed_spelling_is_not(tmp_path):
    path = tmp_path / "a"
    write_json(path, {"x": 1, "y": 2})
    content = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(content.items()))))
    assert read_json(path) == {"x": 1, "y": 2}
    path.write_text(json.dumps(content | {"x": 3}))
    with pytest.raises(RecordError, match="a is damaged: its checksum"):
        read_json(path)


def test_a_file_is_right_only_beside_what_it_belongs_to(tmp_path):
    write_json(tmp_path / "a", {"x": 1}, beside={"seed": 0})
    assert read_json(tmp_path / "a", beside={"seed": 0}) == {"x": 1}
    with pytest.raises(RecordError, match="damaged"):
        read_json(tmp_path / "a", beside={"seed": 1})


def test_files_without_a_checksum_are_read_only_where_none_is_asked_for(tmp_path):
    write_json(tmp_path / "a", {"x": 1}, sealed=False)
    assert read_json(tmp_path / "a", sealed=False) == {"x": 1}
    with pytest.raises(RecordError, match="a is damaged: its checksum is missing"):
        read_json(tmp_path / "a")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_object_is_damaged(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(RecordError, match="a is damaged"):
        read_json(tmp_path / "a")
