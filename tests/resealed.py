"""Changes JSON files of records as their writer would: with a checksum that fits."""

import json
from pathlib import Path

from cndpm.experiments.record import read_head, read_record
from cndpm.experiments.record_files import LogFile, read_json, salt_of, write_json


def rewrite(path: Path, change) -> None:
    """Replaces the content of a file by `change` of it."""
    write_json(path, change(read_json(path)))


def rename(folder: Path, old: str, new: str) -> None:
    """Replaces text in the configuration of a record, wherever it stands."""
    escaped = json.dumps(new)[1:-1]
    rewrite_config(folder, lambda config: json.loads(json.dumps(config).replace(old, escaped)))


def rewrite_config(folder: Path, change) -> None:
    """Replaces the configuration of a record, and seals its log and its summary for the new one."""
    record = read_record(folder)
    head = read_head(folder) | {"config": change(read_head(folder)["config"])}
    write_json(folder / "config.json", head)
    (folder / "log.jsonl").unlink()
    log = LogFile(folder / "log.jsonl", salt_of(head["config"]))
    for row in record.rows:
        log.append(row["event"], row["step"], row)
    if record.summary is not None:
        log.append("end", 0, {})
        write_json(folder / "summary.json", record.summary, beside=head["config"])
    log.close()
