import re

from cndpm.estimators.explanation import mixture_html


def test_experts_counts_and_memory_are_in_the_table():
    html = mixture_html("CNDPMClassifier", [750.0, 250.0], memory=(31, 500))
    assert "CNDPMClassifier: 2 experts, 31 of 500 samples in the memory" in html
    assert re.findall(r"<td>(\d+)</td><td>([\d,]+)</td>", html) == [("1", "750"), ("2", "250")]
    assert "75 %" in html


def test_the_title_is_escaped():
    html = mixture_html("<script>", [1.0], memory=(0, 5))
    assert "<script>" not in html and "&lt;script&gt;" in html


def test_a_mixture_without_experts_has_no_rows():
    assert "<td>" not in mixture_html("CNDPMDensity", [], memory=(3, 5))


def test_many_experts_are_cut():
    assert "and 80 more" in mixture_html("CNDPMDensity", [1.0] * 100, memory=(0, 5))
