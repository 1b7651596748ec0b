"""A model card: description, training data and figures of a model, in Markdown with metadata
for model hubs.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from metrifair import __version__
from metrifair.api.audit_result import Audit
from metrifair.api.cross_validated import FairClassifierCV, FairRegressorCV
from metrifair.api.frontier import Frontier
from metrifair.auditing.ranking import sort_findings
from metrifair.errors import DataError
from metrifair.estimators.table_model import TableModel
from metrifair.metrics.penalty_options import HasPenaltyOptions, penalty_options
from metrifair.problem.problem import Scheme
from metrifair.report.audit.markdown import (
    MOST_TABLES,
    YamlValue,
    audit_markdown,
    markdown_table,
    markdown_text,
    origin_markdown,
    yaml_lines,
)
from metrifair.saving.estimators import file_name
from metrifair.saving.modelfile import Content, PathLike, fingerprint, to_bytes
from metrifair.saving.models import class_named, make_content
from metrifair.support.files import write_file
from metrifair.tradeoff.points import Outcome, Point
from metrifair.tradeoff.sweep import needs_group
from metrifair.wording.frontier import constant_sentence, headline, note_texts, verdict
from metrifair.wording.frontier_view import FrontierView, figure_texts
from metrifair.wording.metrics import criterion_name, metric_words
from metrifair.wording.numbers import count_text, noun, shown_number
from metrifair.wording.provenance import score_origin_text
from metrifair.wording.terms import term_name

_ALWAYS = """\
- Scores that are distributed alike across groups are group fairness, no more: they say nothing about individuals, and
  enforcing them can hurt where groups differ for a good reason.
- Figures hold for people like those in the rows that they were measured on, at the time of those rows."""
_UNSAID = "Not stated. Do not use for decisions."
_UNAUDITED = (
    "No audit of this model's scores was given: nothing is known of how this model treats groups."
)
_UNAUDITED_WITH_FIGURES = (
    "No audit of this model's scores was given. The only figures on groups are those above."
)
_OUT_OF_FOLD = (
    "These are not figures of this model, but of models with the same settings that were trained "
    "without the rows that they score."
)
_CHOSEN_BY_THEM = (
    "If the penalty strength or the family was chosen, it was chosen by these rows too, so the "
    "figures can be too good."
)
_OTHER_SCORES = (
    "This audit does not record that this model computed the scores. Its figures describe the "
    "audited scores, not this "
    "model."
)
_CONTRADICTED = (
    "The author's description of these rows is left out, because the record names other scores."
)
_TRAINING_FILE = "The audited file is the training file of this model."
_SETTINGS = {
    "criterion": "Criterion",
    "metric": "Distance in the penalty",
    "strength": "Strength of the penalty",
    "tolerance": "Tolerance",
    "contrast": "Groups compared",
    "random_state": term_name("seed"),
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
    audited_rows: str | None = None,
) -> str:
    """The model card of a fitted model, in Markdown with a YAML head that model hubs read.

    The card reads the settings from the model, the figures by group with their intervals from the
    audit, and the cost of fairness from the frontier.

    Parameters
    ----------
    model : estimator
        Fitted model: a fair estimator or booster, a post-processor, a ``TableModel``, a pipeline,
        or another fitted estimator with the interface of scikit-learn. Of a ``FairClassifierCV`` or
        ``FairRegressorCV``, the card describes the chosen model.
    audit : Audit, default=None
        Audit to report. The card reports it as the model's if the audit records that this model
        computed the scores: ``audit_file`` reads this from files that ``metrifair train
        --held-out`` and ``metrifair predict`` wrote. Any other audit is shown as an audit of other
        scores.
    frontier : Frontier, default=None
        Frontier to report: the one that the model was selected from. A ``FairClassifierCV`` or
        ``FairRegressorCV`` brings its own. If ``Frontier.select`` chose
        the model, the card shows the figures that are expected of it on new rows, or its figures on
        the test rows. For any other model of the frontier it shows the figures by which models were
        compared. For a model with the same settings that was fitted on other rows, the card states
        which model the figures describe.
    path : str or os.PathLike, default=None
        The file, if the text is to be written too, such as README.md of a repository at a hub.
    title : str, default=None
        Title of the card. By default the class of the model and its target.
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
    audited_rows : str, default=None
        Description of the audited rows, such as "applications of 2025, not used for training". It
        states that this model computed the scores of an audit that does not record it. The card
        shows it as a statement. It changes nothing for an audit that records whose scores it has.

    Returns
    -------
    str
        The card.

    Raises
    ------
    DataError
        If the model is not a fitted one, or none of the frontier's; an argument is of the wrong
        kind; or nothing can be written there.

    Examples
    --------
    >>> from metrifair import FairClassifier
    >>> X, y, sex = [[0.0], [1.0], [2.0], [3.0]] * 9, [0, 1, 0, 1] * 9, ["f", "f", "m", "m"] * 9
    >>> model = FairClassifier(0.05, model="linear", random_state=0).fit(X, y, sensitive_features=sex)
    >>> card = to_card(model, title="Loans", license="mit")
    >>> print(*card.splitlines()[:4], sep=chr(10))
    ---
    license: "mit"
    library_name: "metrifair"
    pipeline_tag: "tabular-classification"
    >>> [line for line in card.splitlines() if line.startswith("## ")]
    ['## Intended use', '## What it is', '## Figures by group', '## Limits', '## How to use it']
    """
    _check_kind("audit", audit, Audit)
    _check_kind("frontier", frontier, Frontier)
    _check_texts(
        title=title,
        license=license,
        language=language,
        intended_use=intended_use,
        audited_rows=audited_rows,
    )
    _check_names("datasets", datasets)
    _check_names("tags", tags)
    _check_fitted(model)
    search = _search(model)
    if frontier is None and search is not None:
        frontier = search.frontier_
    if search is model:
        model = model.estimator_
    inner = _last(model)
    about = f" for {model.target}" if isinstance(model, TableModel) else ""
    title = title or f"{type(inner).__name__}{about}"
    view = None if frontier is None else frontier.view()
    figures = None
    if frontier is not None and view is not None:
        outcome, apart = _matching_outcome(_delivered(model), inner, frontier)
        figures = _figures(frontier, view, outcome, apart)
    head: dict[str, YamlValue] = {"language": language or (), "license": license or ()}
    head |= _hub_facts(inner, tags) | {"datasets": list(datasets)}
    audited = None if audit is None else _audited(model, audit, audited_rows)
    own_audit = audit if audited is not None and audited.of_model else None
    of_model = None if figures is None or not figures.of_model else figures
    head |= _results(title, str(head["pipeline_tag"]), datasets, (view, of_model), own_audit)
    cost: list[str] = []
    if view is not None and figures is not None:
        cost = ["## What fairness cost", *_choice(view, figures)]
    if audit is not None and audited is not None:
        by_group = [*audited.lines, *audit_markdown(audit.record)]
    elif cost:
        by_group = [_UNAUDITED_WITH_FIGURES]
    else:
        by_group = [_UNAUDITED]
    body = [
        f"# {markdown_text(title)}",
        f"Described by [metrifair](https://pypi.org/project/metrifair/) {__version__}.",
        "## Intended use",
        intended_use or _UNSAID,
        "## What it is",
        markdown_table(("", ""), _facts(model, inner)),
        *cost,
        "## Figures by group",
        *by_group,
        "## Limits",
        "\n".join([_ALWAYS, *(f"- {line}" for line in _limits(inner))]),
        "## How to use it",
        _use(model, inner),
    ]
    card = f"---\n{''.join(yaml_lines(head))}---\n\n" + "\n\n".join(body) + "\n"
    if path is not None:
        write_file(path, card.encode(errors="replace"))
    return card


class _Audited(NamedTuple):
    """The lines of a card on an audit, and whether its figures are those of the model."""

    of_model: bool
    lines: Sequence[str]


def is_audit_of(model: Any, audit: Audit) -> bool:
    """Whether the audit records scores of this model, or of fits without the rows that they
    score.
    """
    origin = audit.provenance.score_origin
    print_of_model = _fingerprint(model)
    return (
        origin is not None
        and print_of_model is not None
        and print_of_model == (origin.model or origin.refit)
    )


def _audited(model: Any, audit: Audit, stated_rows: str | None) -> _Audited:
    """The lines on an audit.

    Its record decides whose scores it has; a statement counts where there is no record.
    """
    origin = audit.provenance.score_origin
    if origin is None:
        return _audited_without_record(model, audit, stated_rows)
    scored = markdown_text(score_origin_text(origin))
    if not is_audit_of(model, audit):
        lines = [
            _UNAUDITED,
            "## An audit of other scores",
            _OTHER_SCORES,
            f"Its record names them: {scored}.",
        ]
        return _Audited(False, [*lines, *([] if stated_rows is None else [_CONTRADICTED])])
    rows = f"Audited: {scored}."
    if _fingerprint(model) == origin.model:
        return _Audited(True, [rows])
    return _Audited(False, [f"{_OUT_OF_FOLD} {_CHOSEN_BY_THEM}", rows])


def _audited_without_record(model: Any, audit: Audit, stated_rows: str | None) -> _Audited:
    """The lines on an audit that does not record whose scores it has."""
    if stated_rows is None:
        return _Audited(False, [_UNAUDITED, "## An audit of other scores", _OTHER_SCORES])
    lines = [f"Audited, as the author of this card states: {markdown_text(stated_rows)}."]
    audited_files = {file.sha256 for file in audit.provenance.files}
    if audited_files & set(getattr(model, "training_files", ())):
        lines.append(_TRAINING_FILE)
    return _Audited(True, lines)


def _fingerprint(model: Any) -> str | None:
    content = _content(model)
    return None if content is None else fingerprint(content)


def _check_kind(name: str, value: object, kind: type) -> None:
    """Raise a DataError unless the argument is of this class, or None."""
    if value is None or isinstance(value, kind):
        return
    article = "an" if kind is Audit else "a"
    raise DataError(f"{name} must be {article} {kind.__name__}, got {type(value).__name__}")


def _check_texts(**arguments: object) -> None:
    """Raise a DataError that names the first argument that is not text, and not None."""
    for name, value in arguments.items():
        if not isinstance(value, str | None):
            raise DataError(f"{name} must be text, got {reprlib.repr(value)}")


def _check_names(name: str, value: Any) -> None:
    """Raise a DataError unless the argument is a list of names."""
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    if not listed or not all(isinstance(item, str) for item in value):
        raise DataError(
            f"{name} must be a list of names, such as ['adult'], got {reprlib.repr(value)}"
        )


def _check_fitted(model: Any) -> None:
    """Raise a DataError unless the model, or its last step, is fitted."""
    search = _search(model)
    parts = (model, _last(model)) if search is None else (search,)
    fitted = any(hasattr(part, "n_features_in_") for part in parts)
    if not hasattr(model, "predict") or not fitted:
        raise DataError(f"model must be a fitted model, got {type(parts[-1]).__name__}")


def _class_facts(inner: Any) -> dict[str, object]:
    """The classes of a classifier, and the positive one, by name."""
    classes = getattr(inner, "classes_", None)
    if classes is None:
        return {}
    scheme = _scheme(inner)
    positive = None if scheme is None else classes[scheme.positive]
    return {"Classes": ", ".join(map(str, classes)), "Positive class": positive}


def _facts(model: Any, inner: Any) -> list[tuple[str, str]]:
    """The facts that a model records, by name."""
    # whose scores a post-processor changes
    base = _last(getattr(inner, "base_", None))
    scheme = _scheme(inner)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else []
    first = [model.encoder] if isinstance(model, TableModel) else steps
    source = next((step for step in first if hasattr(step, "n_features_in_")), inner)
    names = getattr(source, "feature_names_in_", None)
    names = getattr(source, "coders_", names)  # columns that the encoder left out are no features
    count = source.n_features_in_ if names is None else len(names)
    wrapped = None if base is None else type(base).__name__
    target = model.target if isinstance(model, TableModel) else None
    step_names = [step if isinstance(step, str) else type(step).__name__ for step in steps if step]
    facts: dict[str, object] = {
        "Model": type(inner).__name__,
        "Steps": ", ".join(step_names) or None,
        "Changes the scores of": wrapped,
        "Predicts": target,
        **_class_facts(inner),
        "Features": f"{count:,}",
    }
    if names is not None:
        facts["Features"] = f"{count:,}: {', '.join(map(str, names))}"
    attributes = scheme.attributes if scheme is not None else ()
    for attribute in attributes:
        groups = "a number" if attribute.is_number else ", ".join(map(str, attribute.groups))
        facts[f"Sensitive attribute {attribute.name}"] = groups
    parameters: dict[str, Any] = {}
    for estimator in (base, inner):
        parameters |= estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
        if isinstance(estimator, HasPenaltyOptions):
            parameters["contrast"] = penalty_options(estimator).contrast
    facts |= {
        label: getattr(parameters.get(name), "name", parameters.get(name))
        for name, label in _SETTINGS.items()
    }
    facts["Criterion"] = (
        criterion_name(str(facts["Criterion"])) if facts["Criterion"] is not None else None
    )
    facts["Decides from a probability of"] = (
        model.threshold if isinstance(model, TableModel) else None
    )
    facts["Needs the group to predict"] = "yes" if needs_group(inner) else "no"
    return [(name, str(value)) for name, value in facts.items() if value is not None]


def _scheme(inner: Any) -> Scheme | None:
    """The meaning of values at the fit; None for boosters, which do not keep it."""
    scheme = getattr(inner, "scheme_", None) or getattr(
        getattr(inner, "crossed_", None), "scheme", None
    )
    return scheme if isinstance(scheme, Scheme) else None


def _last(model: Any) -> Any:
    """The model at the end of a table model or a pipeline, or the one that was chosen by
    cross-validation; any other is it itself.
    """
    return _end(_delivered(model))


def _end(model: Any) -> Any:
    """The model at the end of a table model or a pipeline; any other is it itself."""
    while isinstance(model, TableModel | Pipeline):
        model = model.estimator if isinstance(model, TableModel) else model.steps[-1][1]
    return model


def _delivered(model: Any) -> Any:
    """The model that was chosen by the cross-validation at the end of a model; others as they are,
    and those that are not fitted.
    """
    search = _search(model)
    if search is None:
        return model
    return getattr(search, "estimator_", search)


def _search(model: Any) -> FairClassifierCV | FairRegressorCV | None:
    """The cross-validation at the end of a model, which chose what it predicts with; None: there
    is none.
    """
    end = _end(model)
    if isinstance(end, FairClassifierCV | FairRegressorCV):
        return end
    return None


def _content(model: Any) -> Content | None:
    """The content of the model's file; None if the model cannot be saved."""
    last = _last(model)
    if class_named(file_name(type(last))) is not type(last):
        return None
    try:
        return model._content() if isinstance(model, TableModel) else make_content(model)
    except (DataError, NotFittedError):
        return None


def _file(model: Any) -> bytes | None:
    """The bytes of the model's file; None if the model cannot be saved."""
    content = _content(model)
    return None if content is None else to_bytes(content)


def _settings(model: Any) -> tuple[type, dict[str, str]]:
    """The class and the parameters without seeds, so that copies compare as equal."""
    parameters = model.get_params() if hasattr(model, "get_params") else {}
    return type(model), {
        name: _setting(value)
        for name, value in parameters.items()
        if not name.endswith("random_state")
    }


def _setting(value: object) -> str:
    """A parameter as text: 3, 3.0 and NumPy's 3.0 are one strength."""
    if hasattr(value, "get_params"):
        return type(value).__name__
    return repr(float(value) if isinstance(value, Real) else value)


def _parameters(model: Any) -> list[Any]:
    return [getattr(_last(model), name, None) for name in ("strength", "tolerance")]


def _matching_outcome(model: Any, inner: Any, frontier: Frontier) -> tuple[Outcome, str]:
    """The outcome of this model in the frontier; otherwise that of a similar model, and how
    that model differs.
    """
    outcomes = [outcome for outcome in frontier._trade_off.outcomes if outcome.model is not None]
    match = next(
        (entry for entry in outcomes if entry.model is model or entry.model is inner), None
    )
    if match is None:  # it may have been saved and loaded since
        files = {type(entry): _file(entry) for entry in (model, inner)}
        near = (
            entry for entry in outcomes if _parameters(entry.model) == _parameters(inner)
        )  # serializing a model takes time
        match = next(
            (
                entry
                for entry in near
                if (file := files.get(type(entry.model))) and file == _file(entry.model)
            ),
            None,
        )
    if match is not None:
        moved = isinstance(model, TableModel) and model.threshold is not None
        return match, "that decides by its own threshold" if moved else ""
    settings = (_settings(model), _settings(inner))
    seed = getattr(inner, "random_state", None)
    trained = outcomes if frontier.record.folds else []
    similar = [entry for entry in trained if _settings(entry.model) in settings]
    if not similar:
        raise DataError(
            f"model is none of the frontier's: it keeps no {type(inner).__name__} with these "
            "parameters; pass the "
            "frontier that the model was chosen from, or leave frontier out"
        )
    return min(
        similar, key=lambda entry: entry.job.seed != seed
    ), "that was trained on other or fewer rows"


class _Figures(NamedTuple):
    """The figures of a frontier that a card shows, and what the frontier records of them."""

    point: Point
    of_model: bool  # or of models with the same settings
    model: str  # "it" or "that one"
    apart: str  # how this model differs from that one
    is_chosen: bool  # by ``select``
    was_trained: bool  # by the frontier, not passed fitted
    keys: tuple[str, ...]  # of the figures that are those of ``rows``
    rows: str  # what the figures are of
    split: str  # the same, for model hubs


def _figures(frontier: Frontier, view: FrontierView, outcome: Outcome, apart: str) -> _Figures:
    """The figures of an outcome: those of the choice, or those by which it was compared."""
    was_trained = frontier.record.folds > 0
    chosen = frontier.chosen
    is_chosen = chosen is not None and chosen.job == outcome.job
    point = chosen if is_chosen and chosen is not None else outcome.point
    keys = view.keys
    if is_chosen and view.test_rows:
        use = "neither trained nor chose it" if was_trained else "did not choose it"
        rows = f"On {count_text(view.test_rows, 'test row')} that {use}"
        split = "test rows of the frontier"
    elif is_chosen:
        keys = (view.key, view.gap_key)
        rows = "Expected on new data, with the choice taken into account"
        if not was_trained:
            rows = "With the choice repeated on resamples of the rows"
        split = "resampled rows of the frontier"
    elif was_trained:
        rows = "In cross-validation, by which models are compared"
        split = "cross-validation"
    else:
        rows = "On the rows by which models are compared"
        split = "rows of the frontier"
    return _Figures(
        point,
        of_model=not apart and (is_chosen or not was_trained),
        model="that one" if apart else "it",
        apart=apart,
        is_chosen=is_chosen,
        was_trained=was_trained,
        keys=keys,
        rows=rows,
        split=split,
    )


# by whether the frontier trained the model, and chose it: what it does not record
_UNKNOWN = {
    (True, True): "",
    (True, False): "The frontier does not record how this model was chosen.",
    (False, True): "The frontier does not record the training rows of a fitted model.",
    (False, False): (
        "The frontier does not record the training rows of a fitted model, nor how this one was "
        "chosen."
    ),
}


def _choice(view: FrontierView, figures: _Figures) -> Iterable[str]:
    """The lines on a frontier: the model's settings, the figures, and the rows that they are of."""
    point = figures.point
    # several families name it themselves
    parameter = "" if view.parameters else f"{view.label('strength').lower()} "
    settings = f"{markdown_text(parameter + view.strength_text(point))} and seed {point.seed}"
    models = count_text(len(view.usable), "model")
    utility = noun(view.label(view.key))
    if figures.apart:
        yield (
            "These are not figures of this model, but of one with the same settings "
            f"{figures.apart}."
        )
    elif not figures.of_model:
        yield _OUT_OF_FOLD
    who = figures.model if figures.of_model or figures.apart else "they"
    reach = "reach" if who == "they" else "reaches"
    yield (
        f"One of {models} between {utility} and unfairness, with {settings}. {figures.rows}, "
        f"{who} {reach}:"
    )
    texts = figure_texts(view, point)
    head = (term_name("figure"), f"{term_name('value')} (95 % interval)")
    yield markdown_table(head, ((view.label(key), texts[key]) for key in figures.keys))
    yield markdown_text(" ".join(filter(None, _remarks(view, figures, texts))))
    yield from origin_markdown(view.provenance)


def _remarks(view: FrontierView, figures: _Figures, texts: Mapping[str, str]) -> Iterable[str]:
    """Sentences below the figures: other figures, what is not recorded, the limit, the constant
    predictor, the mark, the notes.
    """
    others = [f"{view.label(key)} {texts[key]}" for key in view.keys if key not in figures.keys]
    if others:
        where = "On the rows by which models are compared"
        if figures.was_trained:
            where = "In cross-validation, by models that were trained without the rows they score"
        yield f"{where}: {', '.join(others)}."
    yield _UNKNOWN[figures.was_trained, figures.is_chosen]
    if figures.is_chosen and not figures.apart:
        if view.is_best_effort:
            yield headline(view)[0]
        yield verdict(view)
    yield constant_sentence(view)
    if mark := view.mark(figures.point):
        yield f"Mark of {'that' if figures.apart else 'this'} model: {mark}."
    yield from note_texts(view)


def _use(model: Any, inner: Any) -> str:
    """How to load the model and call it."""
    # a table model reads them from its table
    by_argument = needs_group(inner) and not isinstance(model, TableModel)
    call = f"model.predict(rows{', sensitive_features=groups' if by_argument else ''})"
    if _file(model) is None:
        name = markdown_text(type(inner).__name__)
        return f"Those who publish this {name} say how it is read; metrifair does not. Then:\n\n```python\n{call}\n```"
    # its weights only
    module = ", module=network" if hasattr(getattr(inner, "model", None), "state_dict") else ""
    load = f'model = metrifair.load("model.metrifair"{module})  # runs no code from the file'
    return f"```python\nimport metrifair\n\n{load}\n{call}\n```"


def _limits(inner: Any) -> Iterable[str]:
    if needs_group(inner):
        yield "It needs each person's group to predict, which may not be lawful everywhere."
    if scheme := _scheme(inner):
        fair = ", ".join(markdown_text(str(attribute.name)) for attribute in scheme.attributes)
        if fair and getattr(inner, "strength", 1) != 0:
            yield f"Trained for fairness by {fair} only."


def _hub_facts(inner: Any, tags: Sequence[str]) -> dict[str, YamlValue]:
    """The keys by which hubs find a model: its library, its task and tags."""
    rooms = [base.__module__.split(".")[0] for base in type(inner).__mro__]
    library = next(
        (room for room in ("metrifair", rooms[0]) if room in rooms and room != "__main__"), ""
    )
    task = "regression" if getattr(inner, "classes_", None) is None else "classification"
    all_tags = ["fairness", "tabular", *tags]
    if library == "metrifair":
        all_tags.insert(0, library)
    return {
        "library_name": library or (),
        "pipeline_tag": f"tabular-{task}",
        "tags": list(dict.fromkeys(all_tags)),
    }


def _results(
    title: str,
    task: str,
    datasets: Sequence[str],
    choice: tuple[FrontierView | None, _Figures | None],
    audit: Audit | None,
) -> dict[str, YamlValue]:
    """The figures in the format of model hubs; the data set is named by its title, ``datasets``
    or the split.
    """
    view, own = choice
    figures: list[dict[str, YamlValue]] = []
    split = ""
    if view is not None and own is not None:
        split = own.split
        values = {key: own.point.figure(key) for key in own.keys}
        figures = [
            _metric(key, view.label(key), value)
            for key, value in values.items()
            if value is not None and view.below(own.point, key) is None
        ]
    parts = {
        split: (view, figures),
        "audited rows": (audit, _audit_results(audit)),
    }
    results: list[YamlValue] = []
    for split, (source, metrics) in parts.items():
        if source is not None and metrics:
            name = next(filter(None, (source.provenance.title, *datasets)), split)
            key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "tabular"
            data = {"name": name, "type": key, "split": split}
            results.append(
                {"task": {"type": task, "name": title}, "dataset": data, "metrics": metrics}
            )
    return {
        "metrics": list(
            dict.fromkeys(
                str(metric["type"]) for _, metrics in parts.values() for metric in metrics
            )
        ),
        "model-index": [{"name": title, "results": results}] if results else (),
    }


def _audit_results(audit: Audit | None) -> list[dict[str, YamlValue]]:
    if audit is None:
        return []
    results = [
        _metric(
            key,
            f"{term_name(key)} of {group.group} ({table.attribute}, {table.within})",
            measure.value,
        )
        for table in audit.record.by_group[:MOST_TABLES]
        for group in table.groups
        for key in ("accuracy", "auc")
        if (measure := getattr(group, key)) is not None
    ]
    first = {
        finding.metric: finding
        for finding in reversed(sort_findings(audit.findings))
        if finding.assessed
    }
    # by each metric the finding with the most evidence; small groups are no headline
    for finding in first.values():
        left, right = finding.groups
        compared = (
            f"{left} vs {right}, {finding.within}, {criterion_name(finding.criterion).lower()}"
        )
        results.append(
            _metric(
                finding.metric, f"{metric_words(finding.metric).name}: {compared}", finding.value
            )
        )
    return results


def _metric(kind: str, name: str, value: float) -> dict[str, YamlValue]:
    return {"type": kind, "name": name, "value": float(shown_number(value) or 0.0)}
