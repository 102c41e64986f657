"""Reports on labeled streams: one HTML page that works offline, or the same content as JSON.

`ReportBuilder` collects a report while a stream is labeled, batch by batch; `from_arrays` makes one of votes in
memory, and `from_result` one of rows that are labeled already; `write_report` writes it. The dataclass `Report` holds
everything that the page shows.
"""

from driftvote.report.builder import ReportBuilder, from_arrays, from_result
from driftvote.report.data import Report, report_from_json, report_to_json
from driftvote.report.page import check_report_path, write_report

__all__ = [
    "Report",
    "ReportBuilder",
    "check_report_path",
    "from_arrays",
    "from_result",
    "report_from_json",
    "report_to_json",
    "write_report",
]
