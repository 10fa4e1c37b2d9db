"""The table of constants in docs/drift.md has the values of the code."""

import ast
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "drift.md"


def constants():
    file = ""
    for cells in re.findall(r"^\| (`[\w/.]+`)? ?\| `(\w+)` \| `([^`]+)` \|", PAGE.read_text(), re.MULTILINE):
        file = cells[0].strip("`") or file
        yield pytest.param(file, *cells[1:], id=f"{file}:{cells[1]}")


@pytest.mark.parametrize(("file", "name", "printed"), list(constants()))
def test_a_constant_has_the_printed_value(file, name, printed):
    module = import_module("cndpm." + file.removesuffix(".py").replace("/", "."))
    value = getattr(module, name)
    assert (value.tolist() if isinstance(value, np.ndarray) else value) == ast.literal_eval(printed)


def test_the_table_was_found():
    assert len(list(constants())) > 20
