"""Docstrings say what a newcomer needs: classes by an example, functions by their arguments, all in plain sentences."""

import ast
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
FILES = {".".join(file.relative_to(SOURCE).with_suffix("").parts): file for file in sorted(SOURCE.rglob("*.py"))}
CLAUSES = ("What", "Who", "Whom", "Whose", "Whoever", "Whatever", "How")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(FILES[name].read_text())


def public_names(tree: ast.Module) -> set[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return set(ast.literal_eval(node.value))
    return set()


def public_classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in public_names(tree)]


def arguments(function: Function) -> list[str]:
    given = function.args
    named = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if a]
    return [name for name in named if name not in ("self", "cls")]


def documented_functions(tree: ast.Module) -> Iterator[tuple[str, Function, str]]:
    """Every public function, method and constructor, with the docstring that has to name its arguments."""
    for node in tree.body:
        if isinstance(node, Function) and node.name in public_names(tree):
            yield node.name, node, ast.get_docstring(node) or ""
    for cls in public_classes(tree):
        for method in (node for node in cls.body if isinstance(node, Function)):
            if method.name == "__init__":
                yield cls.name, method, ast.get_docstring(cls) or ""
            elif not method.name.startswith("_") and ast.get_docstring(method):  # without one, a contract describes it
                yield f"{cls.name}.{method.name}", method, ast.get_docstring(method) or ""


def is_error(cls: ast.ClassDef) -> bool:
    return cls.name.endswith("Error")


def is_record(cls: ast.ClassDef) -> bool:
    """Whether a class is fields with names, which its docstring lists: to make one shows no more than they do."""
    kinds = {ast.unparse(node).partition("(")[0] for node in (*cls.decorator_list, *cls.bases)}
    return bool(kinds & {"dataclass", "NamedTuple"}) and "Attributes:" in (ast.get_docstring(cls) or "")


def classes_without_example(name: str) -> list[str]:
    """Names public classes whose docstring has no example; an error's message is example enough."""
    classes = [cls for cls in public_classes(tree_of(name)) if not (is_error(cls) or is_record(cls))]
    return [cls.name for cls in classes if ">>>" not in (ast.get_docstring(cls) or "")]


def functions_without_arguments(name: str) -> list[str]:
    """Names public functions of two or more arguments whose docstring has no list of them."""
    functions = documented_functions(tree_of(name))
    return [name for name, function, text in functions if len(arguments(function)) > 1 and "Args:" not in text]


def docstrings_without_verb(name: str) -> list[str]:
    """Returns the first lines of docstrings that are a clause ("What ...") where a sentence should be."""
    kinds = (ast.Module, ast.ClassDef, *Function.__args__)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree_of(name)) if isinstance(node, kinds)]
    return [text.partition("\n")[0] for text in texts if text.partition(" ")[0] in CLAUSES]


def constants_without_docstring(name: str) -> list[str]:
    """Names public constants and types that no docstring follows; those of the command line are options of commands."""
    body, public = tree_of(name).body, public_names(tree_of(name))
    found = []
    for node, after in pairwise([*body, ast.Pass()]):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        names = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        if isinstance(node, ast.Assign | ast.AnnAssign) and not isinstance(getattr(after, "value", None), ast.Constant):
            found += sorted(names & public)
    return [] if ".cli." in name else found


RULES = {
    "classes have an example": classes_without_example,
    "functions of two or more arguments list them": functions_without_arguments,
    "docstrings begin with a sentence": docstrings_without_verb,
    "constants have a docstring": constants_without_docstring,
}
"""For every rule, a function that lists the breaches of a module."""


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_is_kept(rule):
    assert {name: found for name in FILES if (found := RULES[rule](name))} == {}
