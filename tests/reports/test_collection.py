from cndpm.reports.collection import collect
from resealed import rewrite


def reasons(folder):
    return {problem.folder.name: problem.reason for problem in collect([folder]).problems}


def test_every_record_below_a_folder_is_found_once(records):
    found = collect([records, records / "cndpm", records / "cndpm" / "seed-0"])
    assert sorted(run.title for run in found.runs) == [
        "split-digits · cndpm · seed 0",
        "split-digits · cndpm · seed 1",
        "split-digits · finetune · seed 0",
        "split-digits · finetune · seed 1",
    ]
    assert found.problems == ()


def test_a_record_of_another_version_is_named_and_the_rest_is_read(copied):
    path = copied / "cndpm" / "seed-0" / "config.json"
    rewrite(path, lambda head: head | {"schema": 99})
    assert "schema 99" in reasons(copied)["seed-0"]
    assert len(collect([copied]).runs) == 3


def test_a_cut_off_configuration_is_damaged(copied):
    path = copied / "cndpm" / "seed-1" / "config.json"
    path.write_text(path.read_text()[:200])
    assert "damaged" in reasons(copied)["seed-1"]


def test_a_configuration_that_lacks_a_part_is_damaged(copied):
    path = copied / "cndpm" / "seed-1" / "config.json"
    rewrite(path, lambda head: head | {"config": {k: v for k, v in head["config"].items() if k != "scenario"}})
    assert "damaged" in reasons(copied)["seed-1"]


def test_a_cut_off_log_is_read_up_to_the_cut_and_counts_as_interrupted(copied):
    folder = copied / "cndpm" / "seed-0"
    (folder / "summary.json").unlink()
    log = (folder / "log.jsonl").read_text()
    (folder / "log.jsonl").write_text(log[: len(log) // 2])
    run = next(run for run in collect([folder]).runs)
    assert run.record.status == "interrupted"
    assert 0 < run.n_steps < run.n_batches


def test_an_empty_record_and_a_folder_without_any_are_told_apart(copied, tmp_path):
    folder = copied / "finetune" / "seed-0"
    (folder / "summary.json").unlink()
    (folder / "log.jsonl").write_text("")
    assert "empty" in reasons(copied)["seed-0"]
    (tmp_path / "nothing").mkdir()
    assert "no record" in reasons(tmp_path / "nothing")["nothing"]
    assert "no such folder" in reasons(tmp_path / "absent")["absent"]


def test_a_log_without_a_configuration_is_reported(copied):
    (copied / "finetune" / "seed-0" / "config.json").unlink()
    assert "config.json" in reasons(copied)["seed-0"]


def test_a_run_whose_log_has_a_damaged_line_is_shown_and_the_line_is_told(copied):
    folder = copied / "finetune" / "seed-1"
    lines = (folder / "log.jsonl").read_text().splitlines()
    (folder / "log.jsonl").write_text("\n".join([lines[0], lines[1].replace("1", "2"), *lines[2:], ""]))
    found = collect([folder])
    assert len(found.runs) == 1 and "line 2 is damaged" in found.problems[0].reason
