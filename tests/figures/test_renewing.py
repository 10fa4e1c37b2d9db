"""Runs that were measured again take the place of those that they are alike, and of no others."""

import json
from pathlib import Path

from figures.renewing import main, renewed


def row(seed: int, commit: str, **more: object) -> dict[str, object]:
    return {"scenario": "split-mnist", "learner": "cndpm", "preset": "default", "seed": seed, "commit": commit} | more


def test_all_seeds_of_one_kind_are_replaced_and_other_kinds_stay():
    old = [row(0, "a"), row(1, "a"), row(0, "a", preset="paper"), row(0, "a", given={"n_patches": "683"})]
    new = [row(0, "b", fraction=1.0)]
    assert renewed(old, new) == [*old[2:], *new]
    assert renewed(old, [row(0, "b", fraction=0.2)])[:4] == old
    assert renewed(old, [row(0, "b", learner="slda on patches", preset=None)])[:4] == old


def test_a_record_is_written_anew_line_by_line(tmp_path: Path, capsys):
    record, new = tmp_path / "record.jsonl", tmp_path / "new.jsonl"
    record.write_text("".join(json.dumps(one) + "\n" for one in (row(0, "a"), row(0, "a", preset="paper"))))
    new.write_text(json.dumps(row(3, "b")) + "\n")
    main([str(new), str(record)])
    assert [json.loads(line) for line in record.read_text().splitlines()] == [
        row(0, "a", preset="paper"), row(3, "b")
    ]  # fmt: skip
    assert "1 new lines, 1 of 2 kept" in capsys.readouterr().out
