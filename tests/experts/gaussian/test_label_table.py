"""The table against a dictionary of dictionaries: expert, then label, then component."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cndpm.experts.gaussian.label_table import LabelTable

N_LABELS = 6


class Plain:
    """The same in plain loops. Components are names that never change; their order is their index."""

    def __init__(self):
        self.experts: list[dict[int, int]] = []
        self.order: list[int] = []
        self._named = 0

    def create(self, pairs):
        for expert, label in sorted(set(pairs)):
            self.experts[expert][label] = self._named
            self.order.append(self._named)
            self._named += 1

    def merge(self, k, into):
        """Returns pairs (source, target) and the components that stay, by their old indices."""
        before, pairs, gone = list(self.order), [], set()
        for label, component in sorted(self.experts[k].items()):
            if label in self.experts[into]:
                pairs.append((before.index(component), before.index(self.experts[into][label])))
                gone.add(component)
            else:
                self.experts[into][label] = component
        del self.experts[k]
        self.order = [component for component in before if component not in gone]
        return pairs, [before.index(component) for component in self.order]

    def index(self, expert, label):
        component = self.experts[expert].get(label)
        return -1 if component is None else self.order.index(component)


def assert_alike(table: LabelTable, plain: Plain, n_classes: int) -> None:
    indices = [[plain.index(k, label) for label in range(n_classes)] for k in range(len(plain.experts))]
    assert table.table.tolist() == indices
    assert (table.n_experts, table.n_classes, table.n_components) == (len(indices), n_classes, len(plain.order))
    places = {component: (k, label) for k, own in enumerate(plain.experts) for label, component in own.items()}
    assert table.owners.tolist() == [places[component][0] for component in plain.order]
    assert table.labels.tolist() == [places[component][1] for component in plain.order]
    assert table.n_labels == len({label for own in plain.experts for label in own})
    assert table.by_expert.shape == (len(indices), max([1, *(len(own) for own in plain.experts)]))
    for row, own in zip(table.by_expert.tolist(), plain.experts, strict=True):
        filled = [component for component in row if component >= 0]
        assert sorted(filled) == sorted(plain.order.index(component) for component in own.values())
        assert row[len(filled) :] == [-1] * (len(row) - len(filled))


@given(data=st.data(), n_classes=st.integers(1, 3))
def test_any_history_leaves_what_plain_dictionaries_hold(data, n_classes):
    table, plain = LabelTable(n_classes), Plain()
    for _ in range(data.draw(st.integers(1, 12))):
        n = len(plain.experts)
        kinds = ["found"] + ["learn", "reserve"] * (n > 0) + ["merge"] * (n > 1 and len(plain.order) > 0)
        kind = data.draw(st.sampled_from(kinds))
        if kind == "reserve":
            wanted = data.draw(st.integers(1, N_LABELS))
            n_classes = max(n_classes, wanted)
            table.reserve(wanted)
        elif kind == "merge":
            k, into = data.draw(st.permutations(range(n)))[:2]
            groups = [[other, k] if other == into else [other] for other in range(n) if other != k]
            assert table.unite(groups) == plain.merge(k, into)
        else:
            if kind == "found":
                table.add_expert()
                plain.experts.append({})
            labels = data.draw(st.lists(st.integers(0, N_LABELS - 1), min_size=1, max_size=5))
            n_classes = max(n_classes, max(labels) + 1)
            taught = st.lists(st.booleans(), min_size=len(plain.experts), max_size=len(plain.experts))
            missing = [
                [wanted and label not in own for wanted, own in zip(data.draw(taught), plain.experts, strict=True)]
                for label in labels
            ]
            pairs = [(k, y) for y, row in zip(labels, missing, strict=True) for k, is_new in enumerate(row) if is_new]
            table.reserve(max(labels) + 1)
            assert table.create(np.array(labels), np.array(missing)) == len(set(pairs))
            plain.create(pairs)
        assert_alike(table, plain, n_classes)


def test_a_table_that_is_replaced_is_read_like_one_that_grew():
    grown, restored = LabelTable(3), LabelTable(1)
    for _ in range(2):
        grown.add_expert()
    grown.create(np.array([2, 0, 1]), np.array([[True, False], [False, True], [True, True]]))
    restored.replace(grown.table.copy())
    for name in ("table", "owners", "labels", "by_expert"):
        assert np.array_equal(getattr(grown, name), getattr(restored, name))
    assert restored.n_labels == 3


def test_an_empty_table_has_room_and_nothing_in_it():
    table = LabelTable(0)
    assert (table.n_experts, table.n_classes, table.n_components, table.n_labels) == (0, 1, 0, 0)


def test_components_of_labels_are_found_in_all_experts():
    table = LabelTable(4)
    for labels in ([3, 1], [1], [0, 3]):
        table.add_expert()
        mine = np.zeros((len(labels), table.n_experts), dtype=bool)
        mine[:, -1] = True
        table.create(np.array(labels), mine)
    for wanted in ([1], [3, 1, 3], [2], [9, 0]):
        expected = np.sort(table.table[:, [label for label in set(wanted) if label < 4]].ravel())
        np.testing.assert_array_equal(table.components_of(np.array(wanted)), expected[expected >= 0])


def test_components_of_an_expert_are_listed_from_the_latest_to_the_first():
    table = LabelTable(3)
    table.replace(np.array([[0, -1, 3], [-1, 1, -1], [5, 4, 2]]))
    assert table.by_expert.tolist() == [[3, 0, -1], [1, -1, -1], [5, 4, 2]]
