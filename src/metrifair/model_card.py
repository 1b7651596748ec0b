"""A model card: what a model is, was trained on and reaches, in Markdown with the head that model hubs read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sklearn.pipeline import Pipeline

from metrifair import __version__
from metrifair.auditing.result import Audit
from metrifair.errors import DataError
from metrifair.files import write_file
from metrifair.problem.problem import Scheme
from metrifair.provenance import Provenance
from metrifair.report.audit.by_group import FIGURES, measure_text
from metrifair.report.audit.glossary import criterion_name, metric_words
from metrifair.report.audit.words import most_certain_first
from metrifair.report.frontier.view import FrontierView, figure_texts
from metrifair.report.frontier.words import constant_sentence, limit_sentence
from metrifair.report.numbers import number_text, percent_text, shown_number
from metrifair.results import AuditRecord, Interval, Measure, Point
from metrifair.saving.modelfile import PathLike
from metrifair.table_model import TableModel
from metrifair.tradeoff.result import Frontier

Value: TypeAlias = "str | int | float | Mapping[str, Value] | Sequence[Value]"
_MOST_FINDINGS, _MOST_TABLES = 10, 4
_ALWAYS = """\
- Scores that are distributed alike across groups are group fairness, no more: they say nothing about individuals, and
  enforcing them can hurt where groups differ for a good reason.
- Figures hold for people like those in the rows that they were measured on, at the time of those rows."""
_UNSAID = "Nobody has stated what this model is for. Do not decide about people by it before somebody does."
_UNAUDITED = "No audit was given: nothing is known of how this model treats groups."
_USE = """\
```python
import metrifair

model = metrifair.load("model.metrifair")  # runs no code from the file
model.predict(rows)
```"""
_SETTINGS = {
    "criterion": "Criterion",
    "metric": "Distance in the penalty",
    "strength": "Strength of the penalty",
    "tolerance": "Tolerance",
    "estimate": "Penalty estimated of",
    "combine": "Penalty combined by",
    "contrast": "Groups compared",
    "random_state": "Seed",
}


def to_card(
    model: Any,
    audit: Audit | None = None,
    frontier: Frontier | None = None,
    path: PathLike | None = None,
    *,
    title: str | None = None,
    license: str | None = None,  # noqa: A002  (the word that hubs use)
    language: str | None = None,
    datasets: Sequence[str] = (),
    tags: Sequence[str] = (),
    intended_use: str | None = None,
) -> str:
    """The model card of a fitted model, in Markdown with a YAML head that model hubs read.

    What it was trained with is read off the model; figures by group, with their intervals, come from the audit, and
    what fairness cost from the frontier.

    Parameters
    ----------
    model : estimator
        A fitted model: a fair estimator or booster, a post-processor, a ``TableModel``, a pipeline, or another fitted
        estimator of scikit-learn's kind.
    audit : Audit, default=None
        Of its scores, on rows that it was not trained on.
    frontier : Frontier, default=None
        That it was chosen from: the figures are those of the model itself, or of ``frontier.chosen``.
    path : str or os.PathLike, default=None
        Where the text is written as well, such as README.md of a repository at a hub.
    title : str, default=None
        Name of the model; by default its class and what it predicts.
    license : str, default=None
        Identifier such as "mit".
    language : str, default=None
        Code such as "en", where inputs are of a language.
    datasets : sequence of str, default=()
        Identifiers of the data it was trained on.
    tags : sequence of str, default=()
        Further words to be found by.
    intended_use : str, default=None
        Who should use it for what, and who should not, in Markdown.

    Returns
    -------
    str
        The card.

    Raises
    ------
    DataError
        Where the model is not a fitted one, an argument is of the wrong kind, or nothing can be written there.

    Examples
    --------
    >>> from metrifair import FairClassifier
    >>> X, y, sex = [[0.0], [1.0], [2.0], [3.0]] * 9, [0, 1, 0, 1] * 9, ["f", "f", "m", "m"] * 9
    >>> model = FairClassifier(0.5, model="linear", random_state=0).fit(X, y, sensitive_features=sex)
    >>> card = to_card(model, title="Loans", license="mit")
    >>> print(*card.splitlines()[:4], sep=chr(10))
    ---
    license: "mit"
    library_name: "metrifair"
    pipeline_tag: "tabular-classification"
    >>> [line for line in card.splitlines() if line.startswith("## ")]
    ['## Intended use', '## What it is', '## Figures by group', '## Limits', '## How to use it']
    """
    for name, value, kind in (("audit", audit, Audit), ("frontier", frontier, Frontier)):
        if value is not None and not isinstance(value, kind):
            raise DataError(
                f"{name} must be {'an' if name == 'audit' else 'a'} {kind.__name__}, got {type(value).__name__}"
            )
    if isinstance(datasets, str) or isinstance(tags, str):
        raise DataError("datasets and tags must be lists of names, such as ['adult'], got text")
    if not hasattr(model, "predict") or not (hasattr(model, "n_features_in_") or isinstance(model, TableModel)):
        raise DataError(f"model must be a fitted model, got {type(model).__name__}")
    inner = model.estimator if isinstance(model, TableModel) else model
    inner = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner
    about = f" for {model.target}" if isinstance(model, TableModel) else ""
    title = title or f"{type(inner).__name__}{about}"
    view = None if frontier is None else frontier.view()
    point = None if frontier is None else _point(inner, model, frontier)
    head: dict[str, Value] = {
        "language": language or (),
        "license": license or (),
        "library_name": "metrifair",
        "pipeline_tag": f"tabular-{'regression' if getattr(inner, 'classes_', None) is None else 'classification'}",
        "tags": list(dict.fromkeys(["metrifair", "fairness", "tabular", *tags])),
        "datasets": list(datasets),
    }
    results = [*_frontier_results(view, point), *_audit_results(audit)]
    if results:
        data = (*datasets, "" if audit is None else audit.provenance.title, "held-out rows")
        name = next(one for one in data if one)
        task = {"type": head["pipeline_tag"], "name": title}
        source = {"name": name, "type": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "tabular"}
        head["metrics"] = list(dict.fromkeys(str(one["type"]) for one in results))
        found: dict[str, Value] = {"task": task, "dataset": source, "metrics": results}
        head["model-index"] = [{"name": title, "results": [found]}]
    body = [
        f"# {_text(title)}",
        f"Made with [metrifair](https://pypi.org/project/metrifair/) {__version__}.",
        "## Intended use",
        intended_use or _UNSAID,
        "## What it is",
        _table(("", ""), _facts(model, inner)),
        *([] if view is None else ["## What fairness cost", *_choice(view, point)]),
        "## Figures by group",
        *([_UNAUDITED] if audit is None else _figures(audit.record)),
        "## Limits",
        "\n".join([_ALWAYS, *(f"- {line}" for line in _limits(inner, audit))]),
        "## How to use it",
        _USE,
    ]
    card = f"---\n{''.join(_yaml(head))}---\n\n" + "\n\n".join(body) + "\n"
    if path is not None:
        write_file(path, card.encode(errors="replace"))
    return card


def _facts(model: Any, inner: Any) -> list[tuple[str, str]]:
    """What a model says of itself, name by name."""
    base, scheme = getattr(inner, "base_", None), _scheme(inner)  # base: what a post-processor changes the scores of
    source = model.encoder if isinstance(model, TableModel) else model
    names, classes = getattr(source, "feature_names_in_", None), getattr(inner, "classes_", None)
    known: dict[str, object] = {
        "Model": type(inner).__name__,
        "Changes the scores of": None if base is None else type(base).__name__,
        "Predicts": model.target if isinstance(model, TableModel) else None,
        "Classes": None if classes is None else ", ".join(map(str, classes)),
        "Positive class": None if scheme is None or classes is None else classes[scheme.positive],
        "Features": f"{source.n_features_in_:,}" + ("" if names is None else f": {', '.join(map(str, names))}"),
    }
    for attribute in () if scheme is None else scheme.attributes:
        groups = "a number" if attribute.is_number else ", ".join(map(str, attribute.groups))
        known[f"Sensitive attribute {attribute.name}"] = groups
    given = {name: value for one in (base, inner) if hasattr(one, "get_params") for name, value in _given(one).items()}
    known |= {said: getattr(given.get(name), "name", given.get(name)) for name, said in _SETTINGS.items()}
    known["Decides from a probability of"] = model.threshold if isinstance(model, TableModel) else None
    known["Needs the group to predict"] = "yes" if getattr(inner, "needs_group", False) else "no"
    return [(name, criterion_name(str(value))) for name, value in known.items() if value is not None]


def _given(estimator: Any) -> dict[str, Any]:
    found: dict[str, Any] = estimator.get_params(deep=False)
    return found


def _scheme(inner: Any) -> Scheme | None:
    """What values stood for at the fit, where the model keeps it; boosters do not."""
    found = getattr(inner, "scheme_", None) or getattr(getattr(inner, "crossed_", None), "scheme", None)
    return found if isinstance(found, Scheme) else None


def _point(inner: Any, model: Any, frontier: Frontier) -> Point | None:
    """The model's own point on test rows, that of the choice, or the one of the same strength and seed."""
    own = [
        one.test for one in frontier.outcomes if one.model is not None and (one.model is inner or one.model is model)
    ]
    if own or frontier.chosen is not None:
        return own[0] if own else frontier.chosen
    given = _given(inner)
    wanted = given.get(frontier.parameter), given.get("random_state")
    return next((one.test for one in frontier.outcomes if (one.job.value, one.job.seed) == wanted), None)


def _choice(view: FrontierView, point: Point | None) -> Iterable[str]:
    if point is None:
        yield f"One of {len(view.usable)} models; which of them is not known to this card."
        return
    utility, knob = view.label(view.key).lower(), _text(view.label("strength").lower())
    yield (
        f"One of {len(view.usable)} models between {utility} and unfairness, with {knob} {point.strength:g} and seed "
        f"{point.seed}. On rows that were used neither for training nor for choosing it reaches:"
    )
    texts = figure_texts(view, point)
    yield _table(("Figure", "Value (95 % interval)"), ((view.label(key), text) for key, text in texts.items()))
    chosen = limit_sentence(view) if point == view.choice else ""
    marked = f"Mark of this model: {view.mark(point)}." if view.mark(point) else ""
    yield _text(" ".join(filter(None, [chosen, constant_sentence(view), marked, *view.notes])))
    yield from _origin(view.provenance)


def _figures(record: AuditRecord) -> Iterable[str]:
    """What an audit found: in sentences, by group, and the distances that are most certain."""
    yield "\n".join(f"- {_text(sentence)}" for sentence in record.summary)
    for found in record.by_group[:_MOST_TABLES]:
        known = [key for key in FIGURES if any(getattr(one, key) is not None for one in found.groups)]
        yield f"**{_text(found.attribute)}, {_text(found.within)}** (each interval of one figure by itself)"
        rows = ((one.group, f"{one.size:,}", *(_measure(getattr(one, key)) for key in known)) for one in found.groups)
        yield _table(("Group", "Rows", *(FIGURES[key] for key in known)), rows)
    for table in record.decisions[:_MOST_TABLES]:
        yield f"**Decisions at {number_text(table.threshold)}: {_text(table.attribute)}, {_text(table.within)}**"
        rates = []
        for own in table.rates:
            selected = percent_text(own.selection_rate) + _bounds(own.interval, percent_text)
            rates.append((own.group, f"{own.size:,}", selected, number_text(own.ratio) + _bounds(own.ratio_interval)))
        yield _table(("Group", "Rows", "Selected", "Ratio to the reference"), rates)
    shown = most_certain_first(record.findings)[:_MOST_FINDINGS]
    if shown:
        yield (
            f"**Distances**, the most certain first ({len(shown)} of {len(record.findings)}); intervals hold for all "
            f"comparisons at once, with {percent_text(record.confidence)} confidence."
        )
        distances = []
        for one in shown:
            who, bounds = (
                " / ".join(one.groups),
                _bounds(one.joint_interval) if one.enough else " (too few rows to tell)",
            )
            place = f"{one.attribute}: {who}", one.within, criterion_name(one.criterion)
            distances.append((*place, metric_words(one.metric).name, number_text(one.value) + bounds))
        yield _table(("Groups", "Among", "Criterion", "Distance", "Value (interval)"), distances)
    yield from _origin(record.provenance)


def _origin(provenance: Provenance) -> Iterable[str]:
    if lines := provenance.lines():
        yield from ("**Where this comes from**", _table(("", ""), lines))


def _limits(inner: Any, audit: Audit | None) -> Iterable[str]:
    if getattr(inner, "needs_group", False):
        yield "It asks for each person's group to predict, which may not be lawful everywhere."
    if scheme := _scheme(inner):
        fair = ", ".join(_text(str(attribute.name)) for attribute in scheme.attributes)
        if fair and getattr(inner, "strength", 1) != 0:
            yield f"It was made fair towards the groups of {fair}, and no others."
    yield from () if audit is None else (_text(note.text) for note in audit.notes)


def _frontier_results(view: FrontierView | None, point: Point | None) -> list[dict[str, Value]]:
    if view is None or point is None:
        return []
    figures = ((key, point.figure(key)) for key in view.keys)
    return [
        {"type": key, "name": view.label(key), "value": _shown(value)} for key, value in figures if value is not None
    ]


def _audit_results(audit: Audit | None) -> list[dict[str, Value]]:
    if audit is None:
        return []
    found: list[dict[str, Value]] = [
        {
            "type": key,
            "name": f"{FIGURES[key]} of {one.group} ({table.attribute}, {table.within})",
            "value": _shown(own.value),
        }
        for table in audit.record.by_group[:_MOST_TABLES]
        for one in table.groups
        for key in ("accuracy", "auc")
        if (own := getattr(one, key)) is not None
    ]
    first = {one.metric: one for one in reversed(most_certain_first(audit.findings)) if one.enough}
    for one in first.values():  # the most certain by each metric; of too few rows nothing is a headline
        who = f"{one.groups[0]} against {one.groups[1]}, {one.within}, {criterion_name(one.criterion).lower()}"
        found.append(
            {"type": one.metric, "name": f"{metric_words(one.metric).name}: {who}", "value": _shown(one.value)}
        )
    return found


def _shown(value: float) -> float:
    return float(shown_number(value) or 0.0)


def _measure(found: Measure | None) -> str:
    return measure_text(found) + _bounds(None if found is None else found.interval)


def _bounds(interval: Interval | None, show: Callable[[float], str] = number_text) -> str:
    return "" if interval is None else f" ({show(interval.low)} to {show(interval.high)})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown; whatever the data call things is text."""
    lines = [head, ["---"] * len(head), *(tuple(_text(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    >>> print(_text("a|b <i>\n*c*"))
    a\|b \<i\> \*c\*
    """
    plain = re.sub(r"([\\`*_\[\]<>&|~$@]|:(?=//)|(?<=www)\.|^[#+=-])", r"\\\1", " ".join(text.split()))
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", plain)  # else a list begins


def _yaml(value: Mapping[str, Value], indent: str = "") -> Iterable[str]:
    """Lines of YAML; every text is quoted, what is empty left out.

    >>> print("".join(_yaml({"name": 'no: "x"', "tags": ["yes"], "none": [], "of": [{"value": 1e-05, "type": "f1"}]})))
    name: "no: \\"x\\""
    tags:
    - "yes"
    of:
    - value: 1.0e-05
      type: "f1"
    <BLANKLINE>
    """
    for key, inner in value.items():
        if isinstance(inner, str | int | float):
            yield f"{indent}{key}: {_scalar(inner)}\n"
        elif isinstance(inner, Mapping):
            yield f"{indent}{key}:\n"
            yield from _yaml(inner, indent + "  ")
        elif inner:
            yield f"{indent}{key}:\n"
            for one in inner:
                lines = list(_yaml(one, indent + "  ")) if isinstance(one, Mapping) else [f"  {_scalar(one)}\n"]
                yield f"{indent}- {lines[0].strip()}\n"
                yield from lines[1:]


def _scalar(value: Value) -> str:
    """A number, or text in quotes with everything escaped that a reader of YAML could take for something else."""
    if not isinstance(value, str):
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")  # else YAML 1.1 reads a text
    plain = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(sign if sign.isprintable() else f"\\U{ord(sign):08x}" for sign in plain) + '"'
