"""Names that lead to objects, and what is said where they do not."""

import pytest

from cndpm.names import ObjectNameError, UnknownNameError, load_object, object_name


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module ``mine`` with a class, a class in it and a value, and ``broken``, which imports what is not there."""
    (tmp_path / "mine.py").write_text("class Outer(dict):\n    class Inner: pass\nvalue = 3\n")
    (tmp_path / "broken.py").write_text("import surely_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("name", ["mine:Outer", "mine:Outer.Inner"])
def test_a_class_is_found_by_the_name_it_is_given(module, name):
    assert object_name(load_object(name)) == name


def test_any_object_is_found_where_no_base_is_asked_for(module):
    assert load_object("mine:value") == 3


@pytest.mark.parametrize("name", ["mine", ":Outer", "mine:", "mine:Outer.", ""])
def test_a_name_of_another_form_is_refused_with_the_form(name):
    with pytest.raises(ObjectNameError, match=r"package\.module:Class; got"):
        load_object(name)


@pytest.mark.parametrize(("name", "reason"), [("not_there:X", "not_there"), ("broken:X", "surely_not_there")])
def test_a_module_that_cannot_be_imported_is_named_with_the_reason_and_the_remedy(module, name, reason):
    with pytest.raises(ObjectNameError, match=f"cannot be imported: .*{reason}.*PYTHONPATH"):
        load_object(name)


def test_a_missing_object_is_answered_with_the_nearest(module):
    with pytest.raises(UnknownNameError, match=r"in mine called 'Oter'\. Did you mean Outer"):
        load_object("mine:Oter")
    with pytest.raises(UnknownNameError, match=r"Known: Outer\."):  # what a module imports or holds is not meant
        load_object("mine:Nothing")


@pytest.mark.parametrize(("name", "kind"), [("mine:Outer.Inner", "the class Outer.Inner"), ("mine:value", "int")])
def test_an_object_of_another_kind_is_refused(module, name, kind):
    with pytest.raises(ObjectNameError, match=f"must be a subclass of builtins:dict; it is .*{kind}"):
        load_object(name, dict)


def test_an_object_of_the_kind_asked_for_is_returned(module):
    assert issubclass(load_object("mine:Outer", dict), dict)


def test_a_very_long_name_is_neither_repeated_nor_compared():
    error = UnknownNameError("scenario", "a" * 100_000, [f"name{i}" for i in range(100)])
    assert len(str(error)) < 500
    assert str(error).endswith("name29, and 70 more.")
