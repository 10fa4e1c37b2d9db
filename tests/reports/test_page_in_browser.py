"""The page, driven in headless Chromium: a script added to a copy of it plays the user and writes down what it saw."""

import json
import re

import pytest

from cndpm.reports import write_report
from resealed import rename

USER = """
<script>
(async () => {
  const seen = { errors: [], tips: 0, runs: [] };
  addEventListener("error", (event) => seen.errors.push(String(event.message)));
  const wait = () => new Promise((done) => setTimeout(done, 250));
  const look = () => [...document.querySelectorAll("figure")].map((figure) => ({
    key: figure.dataset.key, drawn: figure.dataset.drawn === "true",
    shapes: figure.querySelectorAll("path[d^=M],rect,polygon,use").length,
    alt: (figure.querySelector("svg[role=img]") || document.body).getAttribute("aria-label") || "",
    wide: figure.scrollWidth <= figure.clientWidth + 1,
  }));
  await wait();
  const select = document.getElementById("run");
  for (let i = 0; i < select.options.length; i++) {
    select.selectedIndex = i;
    select.dispatchEvent(new Event("change"));
    await wait();
    seen.runs.push({ title: select.options[i].textContent, figures: look() });
    for (const target of document.querySelectorAll(".plot > svg, .plot > svg rect[fill=transparent]")) {
      const box = target.getBoundingClientRect();
      document.getElementById("tip").hidden = true;
      const middle = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
      target.dispatchEvent(new PointerEvent("pointermove", { ...middle, bubbles: true }));
      seen.tips += !document.getElementById("tip").hidden;
    }
  }
  seen.overflow = document.documentElement.scrollWidth - innerWidth;
  seen.background = getComputedStyle(document.body).backgroundColor;
  const out = document.createElement("output");
  out.id = "seen";
  out.textContent = encodeURIComponent(JSON.stringify(seen));
  document.body.append(out);
})();
</script>
"""


@pytest.fixture
def visit(records, tmp_path, browse):
    """Reports `folder`, has the user look at everything, and returns what was seen and the console."""

    def go(folder, *options):
        from urllib.parse import unquote

        page = write_report([folder], tmp_path / "report", formats=["html"]).page
        page.write_text(page.read_text().replace("</body>", USER + "</body>"))
        document, console = browse(page.as_uri(), *options)
        return json.loads(unquote(re.search(r'<output id="seen">(.*?)</output>', document).group(1))), console

    return go


def test_every_figure_of_every_run_is_drawn_without_an_error(records, visit):
    seen, console = visit(records, "--window-size=1200,900")
    assert console == [] and seen["errors"] == []
    assert len(seen["runs"]) == 4
    figures = [figure for run in seen["runs"] for figure in run["figures"]]
    assert {figure["key"] for figure in figures} >= {
        "accuracy", "n_experts", "n_parameters", "tasks", "responsibilities", "memory", "gate", "similarity", "samples",
    }  # fmt: skip
    assert [figure for figure in figures if not (figure["drawn"] and figure["shapes"] and figure["alt"])] == []
    assert seen["tips"] > 10


def test_the_page_fits_a_phone(records, visit):
    seen, console = visit(records, "--window-size=500,900")  # the narrowest that headless Chromium makes
    assert console == [] and seen["overflow"] <= 0
    assert all(figure["wide"] for run in seen["runs"] for figure in run["figures"])


def test_the_page_is_dark_where_the_reader_wants_it(records, visit):
    light, _ = visit(records)
    dark, _ = visit(records, "--blink-settings=preferredColorScheme=0")
    assert light["background"] == "rgb(246, 247, 249)"
    assert dark["background"] == "rgb(14, 19, 26)"


def test_a_run_called_script_does_not_run(copied, visit):
    name = "<img src=x onerror=document.title=1><script>document.title=2</script>"
    rename(copied / "finetune" / "seed-0", "split-digits", name)
    seen, console = visit(copied)
    assert console == [] and seen["errors"] == []
    assert any(name in run["title"] for run in seen["runs"])
