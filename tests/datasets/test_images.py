import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from cndpm.datasets import DamagedFileError, load_dataset
from cndpm.datasets.images import read_images

GREY = np.arange(0, 240, 4, dtype=np.uint8).reshape(6, 10)
COLOUR = np.stack([GREY, 255 - GREY, GREY // 2], 2)


def save(array: np.ndarray, path: Path, **options) -> Path:
    Image.fromarray(array).save(path, **options)
    return path


@given(hnp.arrays(np.uint8, st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3]))), st.data())
def test_reading_returns_what_was_written_without_loss(tmp_path_factory, array, data):
    array = array[:, :, 0] if array.shape[2] == 1 else array
    suffix = data.draw(st.sampled_from(["png", "bmp", "ppm", "webp"]))
    options = {"lossless": True} if suffix == "webp" else {}
    path = save(array, tmp_path_factory.mktemp("images") / f"a.{suffix}", **options)
    read = read_images([path])[0]
    expected = np.stack([array] * 3, 2) if suffix == "webp" and array.ndim == 2 else array  # WebP knows no grey
    np.testing.assert_array_equal(read, expected)


def test_a_palette_becomes_the_colours_it_means(tmp_path: Path):
    image = Image.fromarray(COLOUR).quantize(256)
    image.save(tmp_path / "a.png")
    assert image.mode == "P"
    np.testing.assert_array_equal(read_images([tmp_path / "a.png"])[0], np.asarray(image.convert("RGB")))


def test_transparency_is_dropped(tmp_path: Path):
    alpha = np.full((6, 10, 1), 7, np.uint8)
    colour = save(np.concatenate([COLOUR, alpha], 2), tmp_path / "a.png")
    np.testing.assert_array_equal(read_images([colour])[0], COLOUR)
    grey = save(np.concatenate([GREY[..., None], alpha], 2), tmp_path / "b.png")
    np.testing.assert_array_equal(read_images([grey])[0], GREY)


@pytest.mark.parametrize("suffix", ["png", "pgm"])
def test_sixteen_bits_become_eight_over_their_whole_range(tmp_path: Path, suffix):
    deep = GREY.astype(np.uint16) * 257
    path = save(deep, tmp_path / f"a.{suffix}")
    np.testing.assert_array_equal(read_images([path])[0], GREY)


def test_bits_become_black_and_white(tmp_path: Path):
    Image.fromarray(GREY > 100).save(tmp_path / "a.png")
    np.testing.assert_array_equal(read_images([tmp_path / "a.png"])[0], np.where(GREY > 100, 255, 0))


def test_grey_among_colours_becomes_colour(tmp_path: Path):
    read = read_images([save(GREY, tmp_path / "a.png"), save(COLOUR, tmp_path / "b.png")])
    np.testing.assert_array_equal(read[0], np.stack([GREY] * 3, 2))
    np.testing.assert_array_equal(read[1], COLOUR)


def test_images_of_different_sizes_name_two_files_their_sizes_and_a_remedy(tmp_path: Path):
    files = [save(GREY, tmp_path / "a.png"), save(GREY, tmp_path / "b.png"), save(GREY[:5], tmp_path / "c.png")]
    with pytest.raises(DamagedFileError) as raised:
        read_images(files)
    message = str(raised.value)
    assert f"{files[0]} is 6 x 10, {files[2]} is 5 x 10" in message
    assert "size=(6, 10)" in message and "transform = { size = 6 }" in message
    with pytest.raises(DamagedFileError, match="is 6 x 9"):
        read_images([files[0], save(GREY[:, :9], tmp_path / "d.png")])


def test_images_are_resized_on_request(tmp_path: Path):
    folder = tmp_path / "pets" / "cat"
    folder.mkdir(parents=True)
    save(GREY, folder / "a.png")
    save(np.full((20, 4), 9, np.uint8), folder / "b.png")
    pets = load_dataset("pets", tmp_path, size=(4, 3))
    assert pets.train.x.shape == (2, 1, 4, 3) and (pets.train.x[1] == 9).all()
    assert load_dataset("pets", tmp_path, size=5).train.x.shape == (2, 1, 5, 5)


@pytest.mark.parametrize("size", [0, (4, 0), (1, 2, 3)])
def test_a_size_is_one_number_or_two(tmp_path: Path, size):
    with pytest.raises(ValueError, match="size must be a height and a width"):
        load_dataset("pets", tmp_path, size=size)


def test_a_size_is_for_folders_of_images_alone(tmp_path: Path):
    with pytest.raises(ValueError, match="'digits' is none"):
        load_dataset("digits", tmp_path, size=4)


def png_chunks(*chunks: tuple[bytes, bytes]) -> bytes:
    parts = [struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def png_of_size(width: int, height: int) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return png_chunks((b"IHDR", head), (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b""))


def animated(kind: str) -> bytes:
    buffer = io.BytesIO()
    frames = [Image.fromarray(COLOUR + i) for i in range(3)]
    frames[0].save(buffer, kind, save_all=True, append_images=frames[1:])
    return buffer.getvalue()


def saved(kind: str, image: Image.Image, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot identify"),
        (b"not an image", "cannot identify"),
        (png_of_size(1 << 13, (1 << 13) + 1), "8193 x 8192 pixels"),
        (png_of_size(1 << 14, 1 << 13), "exceeds limit"),  # pillow warns
        (png_of_size(1 << 15, 1 << 15), "exceeds limit"),  # pillow refuses
        (png_of_size(0, 5), "cannot identify|pixels"),
        (png_of_size(50, 50), "truncated|broken"),
        (animated("GIF"), "it is animated"),
        (animated("WEBP"), "it is animated"),
        (animated("PNG"), "it is animated"),
        (saved("PNG", Image.fromarray(COLOUR))[:-40], "cannot identify"),
        (saved("JPEG", Image.fromarray(COLOUR))[:-40], "Truncated"),
        (saved("TIFF", Image.fromarray(COLOUR)), "cannot identify"),
        (saved("EPS", Image.fromarray(COLOUR)), "cannot identify"),
        (saved("ICO", Image.fromarray(COLOUR)), "cannot identify"),
        (b"Pf\n2 2\n-1.0\n" + bytes(16), "its mode is F"),
    ],
)
def test_what_is_no_image_of_a_known_kind_is_refused_by_name(tmp_path: Path, content, words):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DamagedFileError, match=words) as raised:
        read_images([tmp_path / "a.png"])
    assert "a.png is not an image that can be read" in str(raised.value) and "PNG" in str(raised.value)


def test_pixels_that_do_not_match_a_png_s_checksum_are_refused(tmp_path: Path):
    content = bytearray(saved("PNG", Image.fromarray(GREY), compress_level=0))
    at = content.index(b"IDAT") + 40
    content[at] ^= 1
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"a\.png .*checksum"):
        read_images([tmp_path / "a.png"])


def test_images_that_together_take_more_than_the_limit_are_refused_undecoded(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("cndpm.datasets.files.memory_limit", lambda: 1000)
    monkeypatch.setattr("cndpm.datasets.images._decode", None)
    files = [save(GREY, tmp_path / f"{i}.png") for i in range(17)]
    with pytest.raises(DamagedFileError, match="1020 bytes; at most 1000"):
        read_images(files)


@given(st.data())
def test_damage_to_a_png_is_refused_or_changes_nothing(tmp_path_factory, data):
    path = save(COLOUR, tmp_path_factory.mktemp("images") / "a.png")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        read = read_images([path])
    except DamagedFileError:
        return
    np.testing.assert_array_equal(read[0], COLOUR)
