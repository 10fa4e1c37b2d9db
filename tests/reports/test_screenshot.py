import pytest
from PIL import Image
from release.screenshot import find_browser, take_screenshot

from cndpm.experiments import RecordError
from cndpm.reports import write_report


@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine")
def test_the_picture_shows_the_page_in_the_colours_asked_for(records, tmp_path):
    page = write_report([records], tmp_path, formats=["html"]).page
    light = Image.open(take_screenshot(page, tmp_path / "light.png", width=800, height=600)).convert("RGB")
    dark = Image.open(take_screenshot(page, tmp_path / "dark.png", width=800, height=600, dark=True)).convert("RGB")
    assert light.size == (800, 600)
    assert (light.getpixel((2, 2)), dark.getpixel((2, 2))) == ((246, 247, 249), (14, 19, 26))
    assert len(light.getcolors(100_000)) > 100  # figures, not an empty page
    foot = dark.crop((0, 590, 800, 600)).getcolors(100_000)
    assert (255, 255, 255) not in {colour for _, colour in foot}  # what lies behind the window's frame is cut off


def test_a_missing_browser_is_said_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RecordError, match="apt install chromium"):
        take_screenshot(tmp_path / "x.html", tmp_path / "x.png")
