"""Changes JSON files of records as their writer would: with a checksum that fits."""

import json
from pathlib import Path

from cndpm.experiments.sealed_json import read_json, write_json


def rewrite(path: Path, change) -> None:
    """Replaces the content of a file by `change` of it."""
    write_json(path, change(read_json(path)[0]))


def replace_text(path: Path, old: str, new: str) -> None:
    """Replaces text in a file's JSON, wherever it stands."""
    escaped = json.dumps(new)[1:-1]
    rewrite(path, lambda content: json.loads(json.dumps(content).replace(old, escaped)))
