import re

import pytest

from cndpm.estimators.notebook import mixture_html


def test_experts_counts_and_memory_are_in_the_table():
    html = mixture_html("CNDPMClassifier", [750.0, 250.0], memory=(31, 500), facts={"parameters": 1234})
    assert "CNDPMClassifier: 2 experts, 31 of 500 samples in the memory" in html
    assert re.findall(r"<td>(\d+)</td><td>([\d,]+)</td>", html) == [("1", "750"), ("2", "250")]
    assert "75 %" in html and "parameters: 1234" in html


def test_every_text_is_escaped():
    html = mixture_html("<script>", [1.0], memory=(0, 5), labels=["<b>"], facts={"<i>": "<u>"})
    assert not re.search(r"<(script|b|u)>", html) and "&lt;script&gt;" in html


def test_a_mixture_without_experts_has_no_rows():
    assert "<td>" not in mixture_html("CNDPMDensity", [], memory=(3, 5))


def test_many_experts_are_cut_and_labels_must_fit():
    assert "and 80 more" in mixture_html("CNDPMDensity", [1.0] * 100, memory=(0, 5))
    with pytest.raises(ValueError, match="one note per expert"):
        mixture_html("x", [1.0], memory=(0, 5), labels=[])
