"""Internal names of `metrifair.cli` that tests use."""

from metrifair.cli import console
from metrifair.cli.audit import metrics_argument
from metrifair.cli.datasets import ROW_COUNTS
from metrifair.cli.help_sections import SectionedCommand, option_name
from metrifair.cli.option_names import OPTION_NAMES
from metrifair.cli.option_table import (
    MAIN_OPTIONS,
    PLACEHOLDERS,
    RENAMED,
    SECTIONS,
    command_entries,
)
from metrifair.cli.options import TABLES, continuous_argument
from metrifair.cli.rules import _AT_MOST_1, GAPS, RATIOS, Limit, broken_figures
from metrifair.cli.show import show_alarms, show_audit, show_differences, show_rates, show_search
from metrifair.cli.tables import check_leakage, read, write_table
from metrifair.cli.training import show_frontier
from metrifair.cli.training_file import TrainingFile
