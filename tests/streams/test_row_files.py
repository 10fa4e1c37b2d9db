"""Streams of the literature, in files of the forms in which they are passed on."""

import numpy as np
import pytest

from cndpm.datasets.files import DamagedFileError
from cndpm.datasets.loading import MissingDataError
from cndpm.streams import load_scenario, scenario_names
from cndpm.streams.drift import FILED
from cndpm.streams.row_files import rows_of_file

NAMES = ["date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
HEAD = "".join(f"@attribute {name} {'{1,2,3}' if name == 'day' else 'numeric'}\n" for name in NAMES)
LINES = "0,2,0,0.05,0.4,0.003,0.4,0.4,UP\n0.5,3,0.02,0.05,0.4,0.003,0.4,0.4,DOWN\n0.5,1,0,0,0,0,0,1,UP\n"


def test_arff_and_csv_with_and_without_names_are_the_same_rows(tmp_path):
    (tmp_path / "elecNormNew.arff").write_text(f"@relation elec\n{HEAD}@attribute class {{UP,DOWN}}\n@data\n{LINES}")
    first = rows_of_file("electricity", tmp_path)
    assert first.x.shape == (3, 8) and first.x[:, 1].tolist() == [2, 3, 1] and first.y.tolist() == [1, 0, 1]
    (tmp_path / "elecNormNew.arff").unlink()
    for text in (LINES, ",".join([*NAMES, "class"]) + "\n" + LINES):
        (tmp_path / "electricity.csv").write_text(text)
        again = rows_of_file("electricity", tmp_path)
        np.testing.assert_array_equal(again.x, first.x)
        np.testing.assert_array_equal(again.y, first.y)


def test_a_file_is_a_scenario_in_its_order(tmp_path):
    (tmp_path / "electricity.csv").write_text(LINES * 10)
    assert set(FILED) <= set(scenario_names())
    stream = load_scenario("electricity").build(data_dir=tmp_path)
    assert (stream.n_batches, stream.n_classes, stream.input_shape) == (3, 2, (8,))


def test_what_is_not_there_or_another_file_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(MissingDataError, match=r"electricity is not in .*Put elecNormNew.arff .*--data-dir"):
        rows_of_file("electricity", tmp_path)
    (tmp_path / "covtype.data").write_text(LINES)
    with pytest.raises(DamagedFileError, match="has 9 columns; covertype has 54 and the label, last"):
        rows_of_file("covertype", tmp_path)
    for text, said in (
        (LINES.replace("0.4,0.4,UP", "0.4,?,UP"), "holds '[?]' where a number should be"),
        (LINES + "1,2\n", "different numbers of columns"),
        ("", "different numbers of columns, or there are none"),
    ):
        (tmp_path / "electricity.csv").write_text(text)
        with pytest.raises(DamagedFileError, match=said):
            rows_of_file("electricity", tmp_path)
    (tmp_path / "electricity.arff").write_text("no header at all")
    with pytest.raises(DamagedFileError, match=r"electricity\.arff cannot be read: it ends too early"):
        rows_of_file("electricity", tmp_path)
