"""Internal names of `metrifair.report` that tests use."""

from metrifair.report import charts, pdf
from metrifair.report.audit import page
from metrifair.report.audit.by_group import reliability_chart
from metrifair.report.audit.charts import (
    OTHER_SCORES,
    corners,
    distribution_json,
    is_about,
    pair_gap,
    witness_json,
    witness_step,
)
from metrifair.report.audit.markdown import audit_markdown
from metrifair.report.audit.page import audit_content, byte_size
from metrifair.report.audit.proxies import reliability_chart as proxy_reliability_chart
from metrifair.report.audit.rates import rates_section, rates_table
from metrifair.report.charts import axis, check_curve, grid_json, short, thin_curves, widest_gap
from metrifair.report.frontier import front_line, frontier_axes, frontier_html, page_content
from metrifair.report.frontier_chart import frontier_chart
from metrifair.report.html import embedded_json, resource
from metrifair.report.pdf import find_browser
