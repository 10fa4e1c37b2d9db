import datetime
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

from cndpm import CNDPMClassifier, CNDPMDensity, CNDPMRegressor
from cndpm.estimators.readers import ProjectedRows, TableRows, make_reader, restore_reader
from cndpm.state import StateError


def texts(rng, topics, n_words=25):
    """Documents of which two words in five are of their topic."""
    numbers, is_own = rng.integers(30, size=(len(topics), n_words)), rng.random((len(topics), n_words)) < 0.4
    made = []
    for topic, *row in zip(topics, numbers, is_own, strict=True):
        made.append(" ".join(f"t{topic}w{i}" if own else f"s{i}" for i, own in zip(*row, strict=True)))
    return made


def test_a_projection_keeps_inner_products_on_average():
    rng = np.random.default_rng(0)
    rows = sparse.random(30, 5000, density=0.02, random_state=1, format="csr")
    exact = (rows @ rows.T).toarray()
    made = ProjectedRows(2000)(rows).astype(float)
    assert np.abs(made @ made.T - exact).max() < 0.2 * np.abs(exact).max()
    both = rows[:5] + 2 * rows[5:10]
    small = ProjectedRows(64)
    assert np.allclose(small(both), small(rows[:5]) + 2 * small(rows[5:10]), atol=1e-5)
    permuted = rng.permutation(30)
    assert np.array_equal(small(rows[permuted]), small(rows)[permuted])


def test_text_sorted_by_topic_is_learned_as_sparse_rows_of_many_columns(tmp_path):
    rng = np.random.default_rng(0)
    topics, asked = np.repeat(np.arange(6), 40), rng.integers(6, size=60)
    hashing = HashingVectorizer(n_features=2**18)
    X, X_test = hashing.transform(texts(rng, topics)), hashing.transform(texts(rng, asked))
    model = CNDPMClassifier(memory_size=40, n_projected=128, random_state=0)
    for start in range(0, len(topics), 40):
        model.partial_fit(X[start : start + 40], topics[start : start + 40])
    model.consolidate()
    assert model.n_features_in_ == 2**18 and model.learner_.input_shape == (128,)
    assert model.score(X_test, asked) > 0.95
    assert np.array_equal(model.predict_proba(X_test[:3].toarray()), model.predict_proba(X_test[:3]))
    model.save(tmp_path / "text.cndpm")
    for again in (CNDPMClassifier.load(tmp_path / "text.cndpm"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict_proba(X_test), model.predict_proba(X_test))
    with pytest.raises(ValueError, match="expecting 262144 features"):
        model.predict(X_test[:, :100])


def test_few_sparse_columns_are_the_same_as_dense_ones():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 5)) * (rng.random((40, 5)) < 0.5)
    dense = CNDPMRegressor(random_state=0).fit(X, X[:, 0])
    as_sparse = CNDPMRegressor(random_state=0).fit(sparse.csc_matrix(X), X[:, 0])
    assert np.array_equal(dense.predict(X), as_sparse.predict(sparse.coo_array(X)))


COLOURS = ["red", "blue", "red", None] * 15
NUMBERS = [1, 2, 3, 4] * 15
TABLE = pd.DataFrame({"size": [1.0, 2.0, np.nan, 3.0] * 15, "colour": pd.Categorical(COLOURS), "n": NUMBERS})


def test_categories_of_pandas_are_learned_and_unknown_ones_have_no_number(tmp_path):
    y = np.where(TABLE.colour == "blue", "b", "other")
    model = CNDPMClassifier(memory_size=20, random_state=0).fit(TABLE, y)
    assert (model.n_features_in_, model.learner_.input_shape) == (3, (4,))
    assert model.feature_names_in_.tolist() == ["size", "colour", "n"]
    assert model.score(TABLE, y) > 0.95
    other = TABLE.assign(colour=pd.Categorical(["green"] * 60))
    assert TableRows([("colour", ["blue", "red"])])(other)[0].tolist() == [0, 0]
    model.predict(other)
    model.save(tmp_path / "table.cndpm")
    again = CNDPMClassifier.load(tmp_path / "table.cndpm")
    assert np.array_equal(again.predict_proba(TABLE), model.predict_proba(TABLE))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(TABLE.rename(columns={"size": "length"}))


def test_words_that_are_no_category_are_refused_with_the_remedy():
    table = TABLE.assign(city="Bern")
    with pytest.raises(ValueError, match=r"table\['city'\]\.astype\('category'\)"):
        CNDPMClassifier().fit(table, TABLE.n)
    with pytest.raises(ValueError, match="FeatureHasher"):
        make_reader(pd.DataFrame({"id": pd.Categorical(map(str, range(1001)))}), width=8)


def test_tables_of_polars_and_pyarrow_are_read_as_those_of_pandas():
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    plain = TABLE.drop(columns="size")
    polars = pl.DataFrame({"colour": pl.Series(COLOURS, dtype=pl.Enum(["blue", "red"])), "n": NUMBERS})
    arrow = pa.table({"colour": pa.array(COLOURS).dictionary_encode(), "n": NUMBERS})
    expected = make_reader(plain, width=8)(plain)
    for table in (polars, arrow):
        reader = make_reader(table, width=8)
        assert np.array_equal(reader(table), expected)
        model = CNDPMClassifier(memory_size=20, random_state=0).fit(table, TABLE.n)
        assert model.feature_names_in_.tolist() == ["colour", "n"]


@pytest.mark.parametrize("state", [{"kind": "other"}, {"kind": "projected", "width": -1}, {}, {"kind": "table"}])
def test_a_made_up_reader_is_refused(state):
    with pytest.raises(StateError, match="reader"):
        restore_reader(state)


def test_a_table_of_words_or_dates_without_any_category_is_refused_by_the_columns_name():
    cities = pd.DataFrame({"size": [1.0, 2.0], "city": ["Rome", "Oslo"]})
    with pytest.raises(ValueError, match=r"column 'city' holds .*Rome.*astype\('category'\)"):
        CNDPMClassifier().fit(cities, [0, 1])
    days = pd.DataFrame({"size": [1.0, 2.0], "day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    with pytest.raises(ValueError, match=r"column 'day' holds dates or times.*days since"):
        CNDPMClassifier().fit(days, [0, 1])
    with pytest.raises(ValueError, match=r"column 'day' holds dates or times"):
        CNDPMClassifier().fit(days.assign(kind=pd.Categorical(["a", "b"])), [0, 1])


def test_words_as_targets_of_a_regressor_are_refused_with_the_remedy():
    for y in (["a", "b"], np.array(["a", "b"])):
        with pytest.raises(ValueError, match=r"numbers; got .*a.*CNDPMClassifier"):
            CNDPMRegressor().fit([[0.0], [1.0]], y)
    deep = ()
    for _ in range(100_000):
        deep = (deep,)
    for y in (["1", 10**400], ["1", {}], [deep, "1"]):
        with pytest.raises(ValueError, match=r"y of a regressor holds numbers; got "):
            CNDPMRegressor().fit([[0.0], [1.0]], y)
    CNDPMRegressor().fit([[0.0], [1.0]], ["0.5", "1"])


def test_nullable_columns_have_missing_values_where_they_are_na():
    table = pd.DataFrame(
        {
            "truth": pd.array([True, None, False] * 20, dtype="boolean"),
            "count": pd.array([1, 2, None] * 20, dtype="Int64"),
            "size": np.linspace(0, 1, 60),
        }
    )
    y = np.arange(60) % 3 == 0
    plain = table.astype(np.float64)
    expected = CNDPMClassifier(memory_size=30, random_state=0).fit(plain, y).predict_proba(plain)
    np.testing.assert_array_equal(
        CNDPMClassifier(memory_size=30, random_state=0).fit(table, y).predict_proba(table), expected
    )
    for count in (table["count"].astype(object), table["count"].astype("string")):  # both hold NA
        loose = table.assign(count=count)
        found = CNDPMClassifier(memory_size=30, random_state=0).fit(loose, y).predict_proba(loose)
        np.testing.assert_array_equal(found, expected)
    table["kind"] = pd.Categorical(["a", "b", "c"] * 20)
    assert CNDPMClassifier(memory_size=30, random_state=0).fit(table, y).predict(table).shape == (60,)


def test_the_value_that_is_no_number_is_named_not_the_first():
    table = pd.DataFrame({"a": [1.0, "2.5", "about 3"]}, dtype=object)
    told = "column 'a' holds 'about 3', which is no number. If it stands for nothing, give NaN"
    with pytest.raises(ValueError, match=told):
        CNDPMDensity().fit(table)
    with pytest.raises(ValueError, match=r"column 'a' holds 'x', which is no number\. Make it a category"):
        CNDPMDensity().fit(pd.DataFrame({"a": ["x", "y", pd.NA]}))
    with pytest.raises(ValueError, match=told):  # not NA, which is missing
        CNDPMDensity().fit(pd.DataFrame({"a": pd.array([pd.NA, "1", "about 3"], dtype="string")}))


def test_the_column_that_holds_no_numbers_is_named_by_later_calls_too():
    table = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    model = CNDPMClassifier(memory_size=20, random_state=0).fit(table, [0, 1] * 20)
    wrong = pd.DataFrame({"a": [1.0, 2.0], "b": [1, "two"]})
    for call in (model.predict, lambda X: model.partial_fit(X, [0, 1])):
        with pytest.raises(ValueError, match="column 'b' holds 'two', which is no number"):
            call(wrong)


@pytest.mark.parametrize(
    "days",
    [
        [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)],
        [datetime.time(1), datetime.time(2)],
        pd.period_range("2026", periods=2),
        [pd.Timestamp("2026-01-01", tz="UTC"), pd.Timestamp("2026-01-01", tz="Europe/Rome")],
    ],
)
def test_dates_in_any_form_are_no_categories(days):
    with pytest.raises(ValueError, match=r"column 'day' holds dates or times.*days since"):
        CNDPMDensity().fit(pd.DataFrame({"day": pd.Series(list(days), dtype=object)}))


def test_columns_of_one_name_and_dates_with_zones_are_refused_by_name():
    twice = pd.DataFrame([[1.0, 2.0]] * 3, columns=["a", "a"])
    with pytest.raises(ValueError, match="X has several columns called 'a'"):
        CNDPMDensity().fit(twice)
    zoned = pd.DataFrame({"day": pd.to_datetime(["2026-01-01", "2026-01-02"]).tz_localize("Europe/Rome")})
    with pytest.raises(ValueError, match=r"column 'day' holds dates or times.*days since"):
        CNDPMDensity().fit(zoned)


def test_a_label_that_is_missing_in_a_column_is_told_and_one_of_a_list_is_a_label():
    X, y = np.arange(40.0)[:, None], ["a", "b", None, "b"] * 10
    model = CNDPMClassifier(memory_size=20, random_state=0)
    for column in (pd.Series(y, dtype=object), np.array(y, dtype=object)):
        with pytest.raises(ValueError, match=r"y\[2\] is None\. Leave out rows without a label"):
            model.fit(X, column)
    for column in (pd.array(y, dtype="string"), pd.Series([1, 2, None, 2] * 10, dtype="Int64")):
        with pytest.raises(ValueError, match=r"y\[2\] is <NA>\. Leave out rows without a label"):
            model.fit(X, column)
    assert set(model.fit(X, y).classes_) == {"a", "b", None}


@pytest.mark.parametrize(("kind", "labels"), [("boolean", [False, True]), ("Int64", [3, 5]), ("string", ["a", "b"])])
def test_labels_of_a_nullable_column_stay_what_they_are(kind, labels):
    X, y = np.arange(40.0)[:, None], pd.Series(labels * 20, dtype=kind)
    for model in (CNDPMClassifier(random_state=0).fit(X, y), CNDPMClassifier(random_state=0).partial_fit(X, y.array)):
        assert [*map(type, model.classes_.tolist())] == [*map(type, labels)] and model.classes_.tolist() == labels
        assert 0 <= model.score(X, y) <= 1


def test_one_row_that_is_no_table_is_refused_with_the_way_to_make_it_one():
    table = pd.DataFrame({"kind": pd.Categorical(["red", "blue"] * 20), "size": np.linspace(0, 1, 40)})
    model = CNDPMClassifier(memory_size=20, random_state=0).fit(table, [0, 1] * 20)
    assert model.predict(table[:1]) == model.predict(table.iloc[0].to_frame().T) == model.predict(table)[:1]
    for row, told in ((table.iloc[0], "a DataFrame containing a single row"), (["red", 0.0], "Expected 2D array")):
        with pytest.raises(ValueError, match=told):
            model.predict(row)


def test_codes_in_the_place_of_categories_are_warned_of():
    table = pd.DataFrame({"kind": pd.Categorical(["red", "blue"] * 20), "size": np.linspace(0, 1, 40)})
    model = CNDPMClassifier(memory_size=20, random_state=0).fit(table, [0, 1] * 20)
    codes = table.assign(kind=table["kind"].cat.codes)
    with pytest.warns(UserWarning, match="column 'kind' holds 1 and no category that it had at first, such as 'blue'"):
        model.predict(codes)
    model.predict(table.assign(kind=pd.Categorical(["green"] * 40)))  # unknown words are no codes


def test_images_with_channels_last_are_refused_with_the_way_to_turn_them():
    images = np.zeros((3, 8, 8, 3))
    with pytest.raises(ValueError, match=r"channels last. Give X.transpose\(0, 3, 1, 2\), and input_shape=\(3, 8, 8\)"):
        CNDPMDensity().fit(images)
    with pytest.raises(ValueError, match=r"has the channels last; take input_shape=\(3, 8, 8\)"):
        CNDPMDensity(input_shape=(8, 8, 3)).fit(images)


def test_grey_images_and_lists_of_images_are_read_and_one_image_alone_is_refused():
    images = np.random.default_rng(0).random((30, 1, 4, 4), dtype=np.float32)
    model = CNDPMClassifier(input_shape=(1, 4, 4), memory_size=20, random_state=0).fit(images, [0, 1] * 15)
    for same in (images[:, 0], list(images), list(images[:, 0])):
        np.testing.assert_array_equal(model.predict_proba(same), model.predict_proba(images))
    with pytest.raises(ValueError, match=r"Set input_shape=\(1, 4, 4\)"):
        CNDPMClassifier().fit(images[:, 0], [0, 1] * 15)
    with pytest.raises(ValueError, match=r"X has shape \(3, 4, 4\), as one sample; give X\[None\]"):
        CNDPMClassifier(input_shape=(3, 4, 4)).fit(images[:3, 0], [0, 1, 0])
