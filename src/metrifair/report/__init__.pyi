from .audit.by_group import group_metrics_section
from .audit.difference import difference_html, series_html
from .audit.page import audit_html
from .audit.plots import AuditChartKind, audit_chart, difference_chart, series_chart
from .audit.rates import rates_html
from .display import ChartDisplay
from .groups import group_search_chart, group_search_html
from .html import framed, write_html
from .pdf import print_pdf

__all__ = [
    "AuditChartKind",
    "ChartDisplay",
    "audit_chart",
    "audit_html",
    "difference_chart",
    "difference_html",
    "framed",
    "group_metrics_section",
    "group_search_chart",
    "group_search_html",
    "print_pdf",
    "rates_html",
    "series_chart",
    "series_html",
    "write_html",
]
