"""Turns records into tables, figures and one HTML page.

:func:`write_report` writes the report of all runs in a folder; :class:`Run` draws the figures of one run in a notebook.
"""

from typing import TYPE_CHECKING

from cndpm.extras import require_extra
from cndpm.lazy import lazily

require_extra("PIL", "matplotlib", "rich", purpose="cndpm.reports")

if TYPE_CHECKING:
    from cndpm.reports.report import Report, write_report
    from cndpm.reports.run import Run

__all__ = ["Report", "Run", "write_report"]

__getattr__ = lazily(__name__)
