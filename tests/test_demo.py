"""The demonstration of `make demo`, with fewer steps."""

import runpy
from pathlib import Path

DEMO = Path(__file__).parent.parent / "examples" / "demo.py"


def test_the_demo_ends_with_a_table_a_picture_and_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    demo = runpy.run_path(str(DEMO))
    demo["PAPERS"] += ["learner.density_sleep_steps=20", "learner.predictor_sleep_steps=20"]  # it takes seconds
    demo["main"](Path("demo"))
    told = capsys.readouterr().out
    assert "its network, fine-tuned" in told
    for file in ("demo/demo.png", "demo/report/index.html"):
        assert file in told
        assert (tmp_path / file).stat().st_size > 10_000
