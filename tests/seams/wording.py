"""Internal names of `metrifair.wording` that tests use."""

from metrifair.wording import tables
from metrifair.wording.compare import VERDICTS, difference_sentences, series_sentences
from metrifair.wording.crosswalks import crosswalk_named, crosswalk_names
from metrifair.wording.findings import (
    describe,
    finding_meaning,
    finding_sentence,
    significance_text,
)
from metrifair.wording.frontier import (
    FRONTIER_NOTES,
    compared_note,
    constant_text,
    glossary,
    headline,
    note_texts,
    shown_note,
    summary,
    verdict,
)
from metrifair.wording.frontier import highlights as frontier_highlights
from metrifair.wording.frontier import note_text as frontier_note_text
from metrifair.wording.frontier_tables import row_columns, row_table, sort_value
from metrifair.wording.frontier_view import FrontierView, figure_lines
from metrifair.wording.glossary import audit_glossary, highlights, overview
from metrifair.wording.metrics import CRITERION_MEANINGS, METRIC_WORDS, MetricWords, criterion_name
from metrifair.wording.notes import NOTES, TOPICS, note_text, note_topic, notes_by_topic
from metrifair.wording.numbers import (
    figure_text,
    interval_text,
    number_text,
    p_text,
    percent_text,
    points_text,
    score_text,
    shown_number,
    strength_texts,
)
from metrifair.wording.page_texts import PAGE_TEXTS
from metrifair.wording.provenance import provenance_lines
from metrifair.wording.rates import (
    STANDARD_WORDS,
    rates_sentence,
    ratio_hint,
    ratio_text,
    table_selected_text,
)
from metrifair.wording.summary import audit_summary
from metrifair.wording.tables import (
    FINDING_DETAILS,
    RATES,
    Cell,
    Column,
    ColumnTable,
    finding_columns,
    finding_table,
    rate_rows,
    text_column,
)
from metrifair.wording.terms import TERMS, Term
