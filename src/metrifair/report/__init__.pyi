from .audit.by_group import group_metrics_section
from .audit.charts import AuditChartKind, audit_chart
from .audit.difference import difference_html, series_html
from .audit.page import audit_html
from .audit.rates import rates_html
from .groups import group_search_chart, group_search_html
from .html import framed, write_html
from .pdf import print_pdf

__all__ = [
    "AuditChartKind",
    "audit_chart",
    "audit_html",
    "difference_html",
    "framed",
    "group_metrics_section",
    "group_search_chart",
    "group_search_html",
    "print_pdf",
    "rates_html",
    "series_html",
    "write_html",
]
