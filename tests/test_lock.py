"""The pinned set and its hashes say the same."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKED = re.compile(r"^([\w.-]+)==(\S+) --hash=sha256:[0-9a-f]{64}$")


def test_every_version_with_a_hash_is_the_pinned_one():
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M))
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    locked = dict(LOCKED.fullmatch(line).groups() for line in lines)
    assert len(locked) > 60
    assert {name: pinned.get(name) for name in locked} == locked
