import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cndpm.experts.features.views import admissible_views, apply_view, density_change, mirror_pairs


def handed_images(n: int) -> torch.Tensor:
    """Ramps that are bright on the right and a vertical stroke at a random place on the left."""
    generator = torch.Generator().manual_seed(0)
    x = torch.linspace(0, 1, 12).expand(n, 1, 12, 12).clone()
    column = torch.randint(0, 4, (n,), generator=generator)
    x[torch.arange(n), 0, :, column] = 1
    return x + 0.1 * torch.randn(n, 1, 12, 12, generator=generator)


def symmetric_images(n: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    smooth = torch.nn.functional.interpolate(torch.randn(n, 1, 4, 4, generator=generator), 12, mode="bilinear")
    return smooth + 0.1 * torch.randn(n, 1, 12, 12, generator=generator)


def test_handed_images_refuse_the_mirror():
    assert "mirror" not in admissible_views(handed_images(400), candidates=("mirror",))


def test_images_without_handedness_admit_the_mirror_and_combine_it():
    assert admissible_views(symmetric_images(400), candidates=("mirror",)) == ["", "mirror"]
    views = admissible_views(symmetric_images(400), tolerance=100.0)
    assert views == ["", "turn+8", "turn-8", "mirror", "turn+8,mirror", "turn-8,mirror"]


def test_classes_that_mirror_each_other_refuse_the_mirror_given_their_labels():
    """Together they have no handedness, each by itself has one."""
    labels = torch.arange(400) % 2
    x = torch.where(labels[:, None, None, None] == 1, handed_images(400).flip(-1), handed_images(400))
    assert admissible_views(x, candidates=("mirror",)) == ["", "mirror"]
    assert admissible_views(x, labels, candidates=("mirror",)) == [""]


def test_a_class_with_one_sample_spoils_nothing():
    x, labels = symmetric_images(400), torch.zeros(400, dtype=torch.long)
    labels[-1] = 1
    assert admissible_views(x, labels, candidates=("mirror",)) == ["", "mirror"]


def test_doing_nothing_changes_no_density():
    (change,), spread = density_change(handed_images(100), "")
    assert change == 0
    assert spread > 0


def test_a_memory_too_small_to_judge_admits_nothing():
    assert admissible_views(symmetric_images(20)) == [""]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(6, 15), st.integers(6, 15))
def test_mirroring_twice_gives_the_image_back(channels, height, width):
    x = torch.rand(2, channels, height, width, generator=torch.Generator().manual_seed(height * width))
    assert torch.equal(apply_view(x, "mirror,mirror"), x)


def test_turning_there_and_back_nearly_gives_a_smooth_image_back():
    ramp = torch.linspace(0, 1, 16)
    x = (ramp[:, None] * ramp)[None, None]
    back = apply_view(x, "turn+8,turn-8")
    assert float((apply_view(x, "turn+8") - x).abs().max()) > 0.05
    assert float((back - x)[..., 4:12, 4:12].abs().max()) < 0.02


@pytest.mark.parametrize("view", ["upside-down", "mirror,spin"])
def test_unknown_views_are_named(view):
    with pytest.raises(ValueError, match="a view is one of"):
        apply_view(torch.zeros(1, 1, 8, 8), view)


@pytest.mark.parametrize(
    ("views", "pairs"),
    [
        (["", "turn+8", "mirror"], {(1, -1): [""], (1,): ["turn+8"]}),
        (["", "turn+8", "mirror", "turn+8,mirror"], {(1, -1): ["", "turn+8"]}),
        (["mirror", ""], {(-1, 1): [""]}),
        (["mirror,turn+8"], {(1,): ["mirror,turn+8"]}),
    ],
)
def test_views_are_paired_with_their_mirror_images(views, pairs):
    assert mirror_pairs(views) == pairs


@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_a_view_may_cost_as_much_as_is_tolerated_and_no_more(factor):
    x = handed_images(200)
    (change,), spread = density_change(x, "mirror")
    admitted = admissible_views(x, candidates=("mirror",), tolerance=factor * -change / spread)
    assert ("mirror" in admitted) is (factor > 1)


def test_one_turn_that_costs_too_much_refuses_both():
    x = handed_images(200)
    changes, spread = density_change(x, "turn+8", "turn-8")
    assert abs(changes[0] - changes[1]) > 1e-3
    between = -sum(changes) / 2 / spread
    assert admissible_views(x, candidates=("turn",), tolerance=between) == [""]


def test_an_image_that_is_not_square_is_turned_without_being_stretched():
    x = torch.zeros(1, 1, 9, 15)
    x[0, 0, 4, 10] = 1.0  # three to the right of the centre
    turned = apply_view(x, "turn+90")
    assert float(turned.max()) == pytest.approx(1.0, abs=1e-4)
    assert divmod(int(turned.argmax()), 15) in [(1, 7), (7, 7)]  # three above or below it
