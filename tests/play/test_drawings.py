import numpy as np
import pytest
from tests.play.symbols import drawn

from cndpm.play.drawings import N_COLUMNS, DrawingError, images, read_strokes, rows, variations


@pytest.fixture
def random():
    return np.random.default_rng(0)


def row(strokes, random):
    return rows(variations(strokes, 1, random))[0]


def test_where_and_how_large_a_drawing_is_makes_no_difference(random):
    strokes = drawn("tent", random)
    moved = [40 * stroke + [300, 20] for stroke in strokes]
    assert np.allclose(row(strokes, random), row(moved, random), atol=1e-5)


def test_copies_are_nearer_to_their_drawing_than_another_symbol_is(random):
    tent, *copies = rows(variations(drawn("tent", random), 30, random))
    others = [row(drawn(kind, random), random) for kind in ("ring", "cross", "star")]
    away = [np.linalg.norm(copy - tent) for copy in copies]
    assert min(away) > 0 and np.mean(away) < 0.8 * min(np.linalg.norm(other - tent) for other in others)


def test_an_image_of_a_row_has_its_ink_where_the_drawing_has(random):
    down = np.array([[0.0, 0.0], [0.0, 10.0]])
    image = images(rows(variations([down], 1, random)))[0].astype(float)
    assert image.shape == (32, 32)
    ink = image.sum(axis=0) / image.sum()
    assert ink[12:20].sum() > 0.8  # a line in the middle
    assert image[16, 16] > 150


def test_images_are_the_inverse_of_rows_on_the_grid(random):
    numbers = 0.01 * random.normal(size=(3, N_COLUMNS))
    numbers[:, 0] = 8.0  # grey, so that nothing is cut off
    waves = np.cos(np.pi * np.arange(8)[:, None] * (np.arange(16) + 0.5) / 16) * np.sqrt(2 / 16)
    waves[0] /= np.sqrt(2)
    again = waves @ (images(numbers, 16) / 255) @ waves.T
    assert np.allclose(again.reshape(3, -1), numbers, atol=0.02)


def test_a_dot_and_a_drawing_of_thousands_of_points_are_drawings(random):
    assert row([np.array([[5.0, 5.0]])], random).any()
    long = read_strokes([[[i % 50, i // 50] for i in range(4000)]])
    assert variations(long, 1, random).shape[1] <= 200


@pytest.mark.parametrize(
    "values",
    [None, [], [[]], "ink", [[[1]]], [[[1, 2, 3]]], [[["a", "b"]]], [[[float("nan"), 0]]], [[[1e9, 0]]],
     [[[0, 0]]] * 61, [[[0, 0]] * 4001], [{"x": 1}], [[[0, 0], [0, None]]]],
)  # fmt: skip
def test_what_is_no_drawing_is_refused(values):
    with pytest.raises(DrawingError):
        read_strokes(values)
