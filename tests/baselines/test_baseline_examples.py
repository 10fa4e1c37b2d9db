"""Examples in the docstrings of the compared methods run and give what they show."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import cndpm.baselines

MODULES = [module.name for module in pkgutil.walk_packages(cndpm.baselines.__path__, "cndpm.baselines.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module_give_what_they_show(name: str):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_every_public_class_has_an_example(name: str):
    source = Path(str(importlib.import_module(name).__file__)).read_text(encoding="utf-8")
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    without = [node.name for node in classes if ">>>" not in (ast.get_docstring(node) or "")]
    assert without == []
