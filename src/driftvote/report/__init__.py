"""A page that shows how a stream was labeled: one HTML file that works offline, and its JSON twin.

`ReportBuilder` collects while a stream is labeled, batch by batch; `from_arrays` does all of it for votes in memory;
`write_report` writes the page or its twin. What the page shows is the dataclass `Report`.
"""

from driftvote.report.arrays import from_arrays
from driftvote.report.builder import ReportBuilder
from driftvote.report.context import Report
from driftvote.report.page import write_report
from driftvote.report.twin import report_from_json, report_to_json

__all__ = ["Report", "ReportBuilder", "from_arrays", "report_from_json", "report_to_json", "write_report"]
