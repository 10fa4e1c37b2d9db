"""All exceptions of the package are of one family, and the command line knows every one of them."""

import importlib
import inspect
import pkgutil

import cndpm
from cndpm.cli import exit_code
from cndpm.errors import CNDPMError
from cndpm.experiments.workers import RunsFailedError
from cndpm.names import UnknownNameError

APART = {"ContractError"}  # a failed check of somebody's learner: an assertion


def exceptions():
    found = {}
    for module in pkgutil.walk_packages(cndpm.__path__, "cndpm."):
        if module.name != "cndpm.__main__":
            members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            found |= {c.__name__: c for _, c in members if issubclass(c, Exception) and c.__module__ == module.name}
    return {name: c for name, c in found.items() if not name.startswith("_") and not issubclass(c, Warning)}


def test_every_public_exception_is_of_the_family():
    assert {name for name, kind in exceptions().items() if not issubclass(kind, CNDPMError)} == APART


def test_the_command_line_prints_every_one_of_them_as_one_line():
    made = [RunsFailedError({}, 0), UnknownNameError("learner", "x", ["y"])]
    known = {type(one) for one in made}
    made += [kind("x") for kind in exceptions().values() if issubclass(kind, CNDPMError) and kind not in known]
    assert {exit_code(one) for one in made} == {1, 2}
