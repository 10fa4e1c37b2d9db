"""Runs commands in this process, in a folder of their own."""

import json

import numpy as np
import pytest

from cndpm.cli import main


class Outcome:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        """The last line of standard output."""
        return json.loads(self.out.splitlines()[-1])


@pytest.fixture
def cndpm(capfd, tmp_path, monkeypatch):
    """Calls ``cndpm ARGUMENTS`` and returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("CNDPM_DATA", raising=False)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        out, err = capfd.readouterr()
        return Outcome(ended.value.code or 0, out, err)

    return call


@pytest.fixture
def mnist_dir(tmp_path):
    """MNIST's files with 30 training and 6 test images of noise per class, class k brighter in column k."""
    folder = tmp_path / "data" / "MNIST" / "raw"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part, n in (("train", 30), ("t10k", 6)):
        y = np.repeat(np.arange(10, dtype=np.uint8), n)
        x = rng.integers(0, 60, (len(y), 28, 28), dtype=np.uint8)
        x[np.arange(len(y)), :, 2 * y + 2] += 150
        (folder / f"{part}-images-idx3-ubyte").write_bytes(_idx(x))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(_idx(y))
    return tmp_path / "data"


def _idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return header + array.tobytes()
