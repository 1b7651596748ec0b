"""Internal names of `metrifair.api` that tests use."""

from metrifair.api import verification
from metrifair.api.audit_result import RateTable
from metrifair.api.compare import read_audit
from metrifair.api.group_metrics import GroupMetrics
from metrifair.api.monitor import _names
from metrifair.api.pages import RecordedPage, ResultPage
from metrifair.api.search_figures import search_figures
from metrifair.api.search_folder import SearchManifest, derived_search_files, read_scorings
