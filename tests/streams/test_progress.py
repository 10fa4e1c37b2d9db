import io

from rich.console import Console

from cndpm.streams import progress_bar


def test_every_file_has_its_bar_and_ends_full():
    output = io.StringIO()
    with progress_bar(Console(file=output, width=100)) as report:
        for n_bytes in (10, 2000, 4000):
            report("images.gz", n_bytes, 4000)
        report("labels.gz", 7, None)
    shown = output.getvalue()
    assert "images.gz" in shown and "4.0/4.0 kB" in shown and "labels.gz" in shown
