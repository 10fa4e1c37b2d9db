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


def test_a_line_ends_where_it_was_drawn_and_strokes_are_not_joined(random):
    upright, tick = np.array([[0.0, 0.0], [0.0, 10.0]]), np.array([[0.0, 5.0], [4.0, 5.0]])
    image = images(rows(variations([upright, tick], 1, random)))[0].astype(float)
    assert image[16, 20] > 100 > 40 > image[16, :4].max()  # the tick points to the right alone
    segments = variations([upright, np.add(tick, (1, 0))], 1, random)[0]
    assert np.allclose(segments, [[[-0.25, -0.5], [-0.25, 0.5]], [[-0.15, 0], [0.25, 0]]])


def test_a_drawing_is_centred_and_keeps_its_proportions_and_its_end(random):
    stroke = np.stack([np.linspace(0, 10, 330), np.linspace(0, 40, 330)], axis=1)
    segments = variations([stroke + 7], 1, random)[0]
    assert np.allclose([segments[0, 0], segments[-1, 1]], [[-0.125, -0.5], [0.125, 0.5]])


def test_copies_slant_as_handwriting_does(random):
    plus = [np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, -1.0], [0.0, 1.0]])]
    across, up = np.moveaxis(np.diff(variations(plus, 100, random), axis=2)[:, :, 0], 1, 0)
    cosines = (across * up).sum(axis=1) / np.linalg.norm(across, axis=1) / np.linalg.norm(up, axis=1)
    assert cosines[0] == 0 and 0.05 < cosines.std() < 0.2


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
     [[[10**400, 0]]],
     [[[0, 0]]] * 61, [[[0, 0]] * 4001], [[[0, 0]] * 2001] * 2,
     [{"x": 1}], [[[0, 0], [0, None]]]],
)  # fmt: skip
def test_what_is_no_drawing_is_refused(values):
    with pytest.raises(DrawingError):
        read_strokes(values)
