"""Records to tables, figures and one HTML page.

from cndpm.reports import Run, write_report

write_report(["runs"], "report")            # report/index.html, tables.md, tables.csv, tables.tex
Run("runs/mine/seed-0").plot_accuracy()     # matplotlib axes
"""

from cndpm.extras import require_extra

require_extra("PIL", "matplotlib", "rich", purpose="cndpm.reports")

from cndpm.reports.collection import collect
from cndpm.reports.report import Report, write_report
from cndpm.reports.run import Run

__all__ = ["Report", "Run", "collect", "write_report"]
