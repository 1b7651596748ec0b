"""Texts that the script of the page shows, with places for names and figures; the page embeds
them as JSON.
"""

from __future__ import annotations

from metrifair.criteria import CRITERIA

STUDIO_TEXTS = {
    "studio": "metrifair studio",
    "studio_of": "{file} – metrifair studio",
    "title": "Audit and train without code",
    # steps
    "step_inspect": "Reading the file …",
    "step_audit": "Auditing …",
    "step_pdf": "Printing the report …",
    "step_evidence": "Writing evidence …",
    "step_compare": "Comparing …",
    "step_train": "Training …",
    "step_choose": "Choosing …",
    "training_family": "Training … family {family} of at most {total}",
    "part": "{step} {place} of {total}: {name}",
    "part_audit": "the audit",
    "part_card": "the model card",
    "part_compare": "the comparison",
    "part_export": "the ONNX graph",
    "part_frontier": "the model, trained on all rows",
    "family_running": "running",
    "family_stopped": "stopped",
    "family_finished": "finished in {seconds} s",
    # connection
    "other_tab": "This tab is not connected to the studio that runs now.",
    "used_address": "This address was used before, or it belongs to an earlier studio.",
    "no_response": "The studio does not respond.",
    "no_response_start": "The studio does not respond. Start metrifair studio again and open the "
    "address that it prints.",
    "no_response_stopped": "The studio does not respond. If you stopped it, start metrifair studio "
    "again.",
    "no_connection": "This tab has no connection to the studio.",
    # the file
    "choose_file": "Choose a file, or drop one here",
    "choose_other_file": "Choose another file, or drop one here",
    "second_file": "Second file: {file}",
    "columns_title": "{file}: {rows} rows, {columns} columns",
    "head_column": "column",
    "head_role": "role",
    "head_type": "type",
    "head_missing": "missing",
    "head_distinct": "distinct values",
    "head_values": "values",
    "range": "{low} to {high}",
    "none": "none",
    "two_values": "{values} and {last}",
    # roles
    "role_of": "Role of {name}",
    "role_none": "no role: models learn from it",
    "columns_shown": "{shown} of {total} columns",
    "suggested": "Suggested: {role}, because {reason}.",
    "suggested_ignore": "Suggested: an output of another model, because {reason}.",
    "suggested_label": "Suggested: {name}, because the values are {values}. {meaning}",
    "positive_label": "The label that a high score predicts.",
    "choose_value": "choose a value",
    # results
    "new_tab": "Open in a new tab",
    "copy": "Copy",
    "copy_of": "Copy: {title}, {whose}",
    "copied": "Copied",
    "print_pdf": "Print the report as PDF",
    "write_evidence": "Write evidence that others can verify",
    "minimum_rows": "Minimum rows in a cell",
    "minimum_hint": "A cell is a combination of group and label. Groups with a smaller cell are "
    "withheld. With 1, the evidence contains all counts.",
    "result_audit": "Audit",
    "result_pdf": "Report as PDF",
    "result_evidence": "Evidence",
    "result_compare": "Comparison",
    "result_train": "Trade-off",
    "result_choose": "Chosen model",
    "the_same": "The same on the command line and in Python",
    "command_line": "Command line",
    "python": "Python",
}
"""The texts by the names that the script uses."""


def criterion_options() -> str:
    """The criteria that the page offers, as options of a list: they need no loss and no strata.

    >>> print(criterion_options().splitlines()[0])
    <option value="statistical_parity">statistical parity</option>
    """
    names = [name for name, row in CRITERIA.items() if row.score != "loss" and not row.strata]
    return "\n".join(f'<option value="{name}">{name.replace("_", " ")}</option>' for name in names)
