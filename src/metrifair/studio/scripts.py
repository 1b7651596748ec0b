"""The choices of the page as Python that computes what the commands compute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from metrifair.studio.commands import AUDIT, NAMED, READING, Choices, TableFile, not_features

ShownColumns: TypeAlias = Sequence[Mapping[str, Any]]
"""The facts of each column that ``metrifair columns`` writes."""


def audit_python(table: TableFile, choices: Choices) -> str:
    """Python that audits as ``audit_command`` does."""
    details = ", details=True" if choices.get("standard") else ""
    return _audit_script(table, choices, f"to_html('report.html'{details})")


def pdf_python(table: TableFile, choices: Choices) -> str:
    """Python that prints the report of the audit."""
    details = ", details=True" if choices.get("standard") else ""
    return _audit_script(table, choices, f"to_pdf('report.pdf'{details})")


def evidence_python(table: TableFile, choices: Choices) -> str:
    """Python that writes evidence as ``evidence_command`` does."""
    min_cell = f", min_cell={choices['min_cell']}" if choices.get("min_cell") else ""
    return _audit_script(table, choices, f"to_evidence('evidence.zip'{min_cell})")


def _audit_script(table: TableFile, choices: Choices, call: str) -> str:
    """An audit, with the tables of a standard if one is chosen, and the call that writes it."""
    rates = f".rates({_standard(choices)})" if choices.get("standard") else ""
    lines = [f"audit = {_audit_call(table, choices)}"]
    if choices.get("find_groups"):
        lines += _search_lines(table, choices)
    return _script(*lines, f"audit{rates}.{call}")


def _standard(choices: Choices) -> str:
    """The arguments of the tables of a standard."""
    name = repr(choices["standard"])
    if choices["standard"] != NAMED:
        return name
    pairs = (item.partition("=") for item in choices.get("reference", ()))
    groups = {column: group for column, _, group in pairs}
    return f"{name}, reference={groups!r}"


def _search_lines(table: TableFile, choices: Choices) -> Iterable[str]:
    """Lines that search the rows of the audit for groups, as ``--find-groups`` does."""
    used = [choices[role] for role in ("score", "label", "weight") if choices.get(role)]
    score = f"table[{choices['score']!r}]"
    favorable = choices.get("favorable_decision")
    if favorable:
        score = f"({score} == {favorable!r}).cast(int)"
    label = f"table[{choices['label']!r}]" if choices.get("label") else "None"
    among = choices.get("among") or choices["group"]
    arguments = [
        label,
        score,
        f"table.select({among!r})",
        f"outcome={choices['find_groups'].replace('-', ' ')!r}",
        f"sensitive_features=table.select({choices['group']!r})",
    ]
    if choices.get("threshold"):
        arguments.append(f"threshold={float(choices['threshold'])!r}")
    if choices.get("positive"):
        arguments.append(f"pos_label={choices['positive']!r}")
    if choices.get("weight"):
        arguments.append(f"sample_weight=table[{choices['weight']!r}]")
    read = _call("metrifair.read_file", repr(table.name), *_reading_argument(choices))
    yield f"table = {read}"
    yield f"table = table.drop_nulls({used!r})"
    yield f"search = {_call('metrifair.find_groups', *arguments)}"
    yield "audit = audit.with_groups(search)"


def comparison_python(before: TableFile, after: TableFile, choices: Choices) -> str:
    """Python that compares as ``comparison_commands`` do."""
    return _script(
        f"before = {_audit_call(before, choices)}",
        f"after = {_audit_call(after, choices)}",
        "metrifair.compare(before, after).to_html('changes.html')",
    )


def training_python(table: TableFile, choices: Choices, columns: ShownColumns) -> str:
    """Python that trains as ``training_command`` does."""
    return _script(*_training(table, choices, columns), "front.to_html('frontier.html')")


def choice_python(table: TableFile, choices: Choices, columns: ShownColumns, *, score: str) -> str:
    """Python that trains, chooses and audits as ``choice_commands`` do."""
    roles = {
        name: choices[name]
        for name in ("group", "label", "positive", "weight")
        if choices.get(name)
    }
    held_out = _call(
        "metrifair.audit_table", "held_out", *_audit_arguments({"score": score, **roles})
    )
    return _script(
        *_training(table, choices, columns),
        f"model = front.select(max_unfairness={float(choices['max_unfairness'])!r})",
        "front.to_html('frontier.html')",
        "metrifair.save(model, 'model.metrifair')",
        "",
        "rows = front.held_out('polars')",
        f"held_out = table[rows['row']].with_columns(rows[{score!r}])",
        f"audit = {held_out}",
        "audit.to_html('held-out.html')",
        "",
        "# The audit is of scores by models of the folds, so the card shows it as an audit of "
        "other scores.",
        "metrifair.to_card(model, audit, front, 'card.md')",
        "# For an ONNX graph: metrifair export model.metrifair --output model.onnx",
    )


def _script(*lines: str) -> str:
    return "\n".join(["import metrifair", "", *lines, ""])


def _call(name: str, *arguments: str) -> str:
    """A call with one argument a line."""
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), ")"])


def _audit_call(table: TableFile, choices: Choices) -> str:
    return _call(
        "metrifair.audit_file",
        repr(table.name),
        *_audit_arguments(choices),
        *_reading_argument(choices),
    )


def _audit_arguments(choices: Choices) -> Iterable[str]:
    renamed = {"positive": "pos_label", "criterion": "criteria"}
    for name in (*AUDIT, "intersectional"):
        if value := choices.get(name):
            yield f"{renamed.get(name, name)}={float(value) if name == 'threshold' else value!r}"
    yield "random_state=0"


def _reading_argument(choices: Choices) -> Iterable[str]:
    replaced = {
        "replace": {
            old: new
            for old, _, new in (pair.rpartition("=") for pair in choices.get("replace", ()))
        }
    }
    reading = ", ".join(
        f"{name}={replaced.get(name, choices[name])!r}" for name in READING if choices.get(name)
    )
    return [f"reading=metrifair.ReadOptions({reading})"] if reading else []


def _training(table: TableFile, choices: Choices, columns: ShownColumns) -> Iterable[str]:
    """Lines that read the file and train the families that were tried."""
    kinds = {column["name"]: column["kind"] for column in columns}
    texts = [name for name in choices["group"] if kinds[name] != "number"]
    label = choices["label"]
    weight = choices.get("weight")
    dropped = ", ".join(map(repr, not_features(choices)))
    families = choices["families"].split(",")[1:]
    weights = [f"sample_weight=table[{weight!r}]"] if weight else []
    text = [f"text={texts!r}"] if texts else []
    yield f"table = {_call('metrifair.read_file', repr(table.name), *text, *_reading_argument(choices))}"
    yield f"table = table.drop_nulls({label!r})"
    arguments = [
        "'auto'",
        f"table.drop({dropped})",
        f"table[{label!r}]",
        f"sensitive_features=table.select({choices['group']!r})",
        *weights,
        f"criterion={choices['criterion']!r}",
        *_positive(choices, columns),
        f"utility={choices['utility']!r}",
        "random_state=0",
        f"search=metrifair.SearchOptions(families={families!r})",
    ]
    yield f"front = {_call('metrifair.frontier', *arguments)}"


def _positive(choices: Choices, columns: ShownColumns) -> Iterable[str]:
    """The argument of the positive label, as a value of its column; none if no label was chosen."""
    positive = choices.get("positive")
    if positive:
        (kind,) = (column["kind"] for column in columns if column["name"] == choices["label"])
        yield f"pos_label={(positive if kind == 'text' else _as_number(positive))!r}"


def _as_number(value: str) -> float | bool:
    """A value of a column of numbers or booleans, as ``metrifair columns`` writes it."""
    return {"True": True, "False": False}[value] if value in ("True", "False") else float(value)
