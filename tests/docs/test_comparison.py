"""The table that compares with other libraries: every cell that claims something links to what shows it."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import SGDClassifier

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
TEXT = PAGE.read_text(encoding="utf-8").partition("## Feature by feature")[2]
TARGETS = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", TEXT, flags=re.MULTILINE))
ROWS = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("|")][2:]
NAMES = ("cndpm", "r", "s", "a", "p", "c")


def linked(cell):
    """Returns names of links and pages of this site that a cell leads to."""
    return re.findall(r"\]\[([\w-]+)\]", cell), re.findall(r"\]\(([\w/-]+\.md)\)", cell)


def test_every_claim_links_to_what_shows_it_and_every_link_is_used():
    used = set()
    for feature, *cells in ROWS:
        for library, cell in zip(NAMES, cells, strict=True):
            names, pages = linked(cell)
            used |= set(names)
            assert all(name.startswith(f"{library}-") and name in TARGETS for name in names)
            assert all((PAGE.parent / page).is_file() for page in pages)
            assert names or pages or re.match(r" (no|–)", cell), f"{feature.strip()}: {library} claims {cell.strip()}"
    assert used == set(TARGETS)
    assert len(ROWS) >= 15


def test_pages_that_our_claims_link_to_run_code_or_name_tests_and_records():
    pages = {page for _, ours, *_ in ROWS for page in linked(ours)[1]}
    assert len(pages) > 10
    for page in pages:
        text = (PAGE.parent / page).read_text(encoding="utf-8")
        assert re.search(r"^```python$|records/|\btests/|-m (benchmarks|torture)\.|make torture", text, re.MULTILINE), (
            page
        )


def named(url):
    """Returns the object of river or scikit-learn that a page of their reference is about, None for other pages."""
    found = re.search(r"riverml\.xyz/latest/api/(\w+)/(\w+)/$|/generated/(sklearn[\w.]*)\.(\w+)\.html$", url)
    return found and (f"river.{found[1]}" if found[1] else found[3], found[2] or found[4])


@pytest.mark.parametrize("place", [*filter(None, map(named, TARGETS.values()))], ids=".".join)
def test_what_is_linked_of_river_and_scikit_learn_is_there(place):
    module, name = place
    assert hasattr(importlib.import_module(module), name)


def test_scikit_learn_wants_classes_named_at_first():
    model = SGDClassifier().partial_fit(np.eye(2), [0, 1], classes=[0, 1])
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(np.eye(2), [1, 2])
