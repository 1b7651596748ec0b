"""Internal names of `metrifair.auditing` that tests use."""

from metrifair.auditing import audit_record, findings, notes, records, search_records, significance
from metrifair.auditing.changes import differences
from metrifair.auditing.changes.change_test import ChangeTest
from metrifair.auditing.changes.differences import change, compared_figures
from metrifair.auditing.changes.paired import _correlation, _Influences, _share_below, correlations
from metrifair.auditing.changes.series import series_record
from metrifair.auditing.group_measures import _percentiles
from metrifair.auditing.groups.counts_file import counts_content, read_counts
from metrifair.auditing.groups.search import GroupFinder
from metrifair.auditing.measure import band_tables, bins, one_against_rest, permutations, resampling
from metrifair.auditing.measure.attribute_bands import Bands
from metrifair.auditing.measure.band_tables import BandTable
from metrifair.auditing.measure.bins import BinCounter, BinnedScores, Entries, Scale
from metrifair.auditing.measure.brackets import CellSides, bracket_distances
from metrifair.auditing.measure.cluster_errors import ClusterErrors, ClusterRows, sum_of_products
from metrifair.auditing.measure.counted_scores import count_cells, count_rows, representative_rows
from metrifair.auditing.measure.group_figures import (
    LabeledScores,
    _auc,
    _calibration_error,
    _gaps,
    _log_loss,
)
from metrifair.auditing.measure.group_pairs import group_pairs
from metrifair.auditing.measure.measured_pairs import _split_at, measure_pairs
from metrifair.auditing.measure.one_against_rest import AllGroups
from metrifair.auditing.measure.parts import parts_for
from metrifair.auditing.measure.permutation_tests import cluster_p_values, permutation_p_values
from metrifair.auditing.measure.permutations import SharedPermutations
from metrifair.auditing.measure.plug_in import (
    LargestGap,
    largest_gap,
    plug_in_distances,
    shares,
    unbiased_distance,
    witness_utility,
)
from metrifair.auditing.measure.resampling import (
    Rows,
    _Effect,
    _intervals,
    _RowErrors,
    _side,
    _spread,
    bootstrap,
    merge_scores,
    shared_normals,
)
from metrifair.auditing.measure.two_samples import (
    RESOLUTION,
    TwoSamples,
    bin_means,
    in_pooled_bins,
    merge_bins,
    pooled_bins,
)
from metrifair.auditing.measure.two_samples import bins as two_sample_bins
from metrifair.auditing.measure.worst_cuts import _scan_cuts
from metrifair.auditing.notes import direction_notes
from metrifair.auditing.ranking import (
    headline_finding,
    main_metric,
    shown_findings,
    sort_findings,
    summarized_finding,
    worst_ratio,
)
from metrifair.auditing.records import (
    AuditRecord,
    AuditSettings,
    Baseline,
    ByGroup,
    ComparedFigure,
    Decisions,
    Difference,
    DifferenceRecord,
    Distribution,
    Finding,
    GroupFigures,
    Look,
    Measure,
    Note,
    SeriesRecord,
    WitnessCurve,
)
from metrifair.auditing.release import suppression
from metrifair.auditing.release.evidence_format import (
    decoded,
    file_hashes,
    read_files,
    record_bytes,
    write_files,
)
from metrifair.auditing.release.suppression import released_counts, spread, with_rounded_scores
from metrifair.auditing.request import MOST_PAIRED, AuditArguments, Request, check_attribute
from metrifair.auditing.sources import (
    cells,
    file_tables,
    memory,
    state_counts,
    state_file,
    state_rows,
    table_rows,
)
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.connections import DatabaseTable, open_table
from metrifair.auditing.sources.file_formats import canonical_cells
from metrifair.auditing.sources.file_rows import FileRows
from metrifair.auditing.sources.file_tables import _column_remedy, open_files
from metrifair.auditing.sources.memory import MemorySource
from metrifair.auditing.sources.state_counts import StateGrid
from metrifair.auditing.sources.state_file import read_parts, state_content
from metrifair.auditing.sources.state_rows import count_file, count_table
from metrifair.auditing.sources.table_rows import TableRows
