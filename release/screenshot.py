"""Takes the picture of a page with headless Chromium: ``python -m release.screenshot PAGE PICTURE``."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from cndpm.experiments.record import RecordError

__all__ = ["find_browser", "take_screenshot"]

_FRAME = 200
"""Pixels more than are asked for: a window has a frame, and as much is left white at the foot of its picture."""

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find_browser() -> str | None:
    """Returns the path of Chromium or Chrome; None where neither is installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def take_screenshot(
    page: str | Path, picture: str | Path, *, width: int = 1200, height: int = 1400, dark: bool = False
) -> Path:
    """Writes a PNG of the top of a page.

    Args:
        page: An HTML file.
        picture: The file to write.
        width: In pixels; Chromium makes none narrower than 500.
        height: In pixels.
        dark: Whether to show the page in its dark colours.

    Raises:
        RecordError: There is no browser, or it took no picture.
    """
    browser, picture = find_browser(), Path(picture).resolve()
    if browser is None:
        raise RecordError("a screenshot needs Chromium or Chrome on the PATH, for example: apt install chromium")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=4000"]
    flags += [f"--window-size={width},{height + _FRAME}", f"--screenshot={picture}"]
    flags += ["--blink-settings=preferredColorScheme=0"] if dark else []
    picture.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *flags, f"--user-data-dir={profile}", Path(page).resolve().as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode or not picture.exists():
        raise RecordError(f"{browser} took no picture of {page}: {done.stderr[-300:]}")
    with Image.open(picture) as taken:
        taken.crop((0, 0, width, height)).save(picture)
    return picture


def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m release.screenshot", description=__doc__)
    parser.add_argument("page")
    parser.add_argument("picture")
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--height", type=int, default=1400)
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    print(take_screenshot(given.page, given.picture, width=given.width, height=given.height, dark=given.dark))


if __name__ == "__main__":
    _main()
