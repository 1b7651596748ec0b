"""No hint of a message, if followed, yields a result whose meaning the user did not state.

All hints of the source are collected and must be in the tables below. A hint about an argument that
states what data mean shows a placeholder, never a value. Hints with a value are followed here, and
the figures must be the true ones.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

import metrifair
from metrifair import AuditOptions, DataError, ReadOptions
from metrifair.cli import main
from metrifair.errors import MetrifairWarning, Remedy
from tests.seams.cli import OPTION_NAMES
from tests.seams.errors import remedy_text

SOURCE = Path(metrifair.__file__).parent
# Arguments that state what data mean: which outcome is favorable, which rows count, what is
# compared with what.
MEANING = {
    *(
        "favorable",
        "favorable_decision",
        "pos_label",
        "replace",
        "reference",
        "known_names",
        "threshold",
        "cuts",
        "loss",
    ),
    *(
        "y_true",
        "score_range",
        "sample_weight",
        "weight",
        "label",
        "score",
        "group",
        "sensitive_features",
    ),
}


class Hint(NamedTuple):
    """A remedy as it stands in the source: the argument, and what stands for its value."""

    file: str
    argument: str
    value: str  # "placeholder", "leave out", or the source of a value


HINTS = {
    *(Hint("api/state.py", name, "leave out") for name in ("name", "min_group_size")),
    # known_groups, cells, confusion
    Hint("auditing/sources/state_parts.py", "name", "leave out"),
    # if the rows are independent, as it says
    Hint("auditing/sources/memory.py", "clusters", "leave out"),
    Hint("auditing/sources/state_rows.py", "cuts", "placeholder"),
    Hint("auditing/release/released_rows.py", "threshold", "placeholder"),
    Hint("auditing/release/releases.py", "again", "True"),
    # an assumption
    *(
        Hint("problem/problem.py", "with_labels", value)
        for value in ("'included'", "'independent'")
    ),
    *(
        Hint(file, "known_names", "placeholder")
        for file in (
            "auditing/measure/reference_groups.py",
            "api/audit_result.py",
            "cli/rules.py",
        )
    ),
    # another release of the same rows, with the same figures
    Hint("auditing/release/releases.py", "again", "True"),
    Hint("auditing/measure/selection.py", "threshold", "placeholder"),
    Hint("auditing/measure/reference_groups.py", "reference", "value"),
    *(
        Hint("auditing/group_measures.py", *rest)
        for rest in (("threshold", "placeholder"), ("y_pred", "'scores'"))
    ),
    *(
        Hint("auditing/sources/column_values.py", *rest)
        for rest in (
            ("replace", "placeholder"),
            ("missing", "placeholder"),
            ("favorable_decision", "placeholder"),
            ("pos_label", "placeholder"),
            ("decimal", "','"),
            ("decimal", "placeholder"),
        )
    ),
    Hint("auditing/sources/connections.py", "table", "placeholder"),
    *(
        Hint("auditing/sources/file_tables.py", *rest)
        for rest in (
            ("separator", "separator"),
            ("separator", "';'"),
            ("role", "parts"),
            ("encoding", "'cp1252'"),
            ("encoding", "encoding"),
            ("format", "placeholder"),
        )
    ),
    *(
        Hint("auditing/sources/file_formats.py", *rest)
        for rest in (
            ("encoding", "placeholder"),
            ("sheet", "placeholder"),
            ("missing", "placeholder"),
            ("format", "placeholder"),
            ("missing", "old"),
            ("argument", "leave out"),
        )
    ),
    Hint("auditing/sources/table_rows.py", "favorable_decision", "placeholder"),
    *(
        Hint("auditing/request.py", *rest)
        for rest in (
            ("argument", "leave out"),
            ("max_groups", "groups"),
            ("cuts", "placeholder"),
            ("favorable", "leave out"),
            ("reference", "leave out"),
        )
    ),
    Hint("auditing/measure/parts.py", "y_true", "placeholder"),
    Hint("auditing/sources/state_parts.py", "score_range", "placeholder"),
    *(Hint(file, "decimal", "','") for file in ("cli/tables.py", "encoding/encoder.py")),
    Hint("cli/training_file.py", "pos_label", "placeholder"),
    *(
        Hint(file, "max_unfairness", "placeholder")
        for file in ("api/cross_validated.py", "tradeoff/goal.py")
    ),
    *(
        Hint(file, "families", "leave out")
        for file in ("api/cross_validated.py", "tradeoff/sweep.py")
    ),
    Hint("tradeoff/goal.py", "min_accuracy", "leave out"),
    Hint("nn/penalty.py", "estimate", "'rows'"),
    # it says what each of them means
    *(Hint("nn/samplers.py", "continuous", value) for value in ("True", "False")),
    *(Hint("postprocessing/calibration.py", "needs_group", value) for value in ("True", "False")),
    *(
        Hint("problem/attributes.py", *rest)
        for rest in (
            ("continuous", "value"),
            ("continuous", "False"),
            ("continuous", "[continuous]"),
            ("continuous", "placeholder"),
            ("intersectional", "leave out"),
            ("cuts", "placeholder"),
        )
    ),
    *(
        Hint("problem/predictions.py", name, "placeholder")
        for name in ("loss", "y_true", "favorable_decision")
    ),
    *(
        Hint("problem/problem.py", *rest)
        for rest in (
            ("inputs.label", "placeholder"),
            ("name", "leave out"),
            ("pos_label", "placeholder"),
        )
    ),
    # Probabilities of groups: how training compares groups, and what it estimates.
    Hint("problem/problem.py", "confusion", "leave out"),
    Hint("estimators/settings.py", "estimate", "'rows'"),
    # units of hidden layers were given: a network is meant
    Hint("estimators/settings.py", "model", "'mlp'"),
    Hint("report/audit/plots.py", "y_true", "placeholder"),
    *(
        Hint(f"auditing/groups/{file}.py", name, "placeholder")
        for file, name in (
            ("conditions", "min_rows"),
            ("counting", "max_conditions"),
            ("counting", "min_rows"),
            ("outcomes", "threshold"),
            ("outcomes", "y_true"),
            ("search", "min_rows"),
        )
    ),
    *(
        Hint("tradeoff/frontier.py", *rest)
        for rest in (("random_state", "0"), ("folds", "leave out"))
    ),
    *(
        Hint("tradeoff/result.py", *rest)
        for rest in (("best_effort", "True"), ("utility", "leave out"))
    ),
}
# To leave these out changes what is measured only to what another argument of the user states.
# favorable_decision says it
STATED_OTHERWISE = {Hint("auditing/request.py", "favorable", "leave out")}
STATED_OTHERWISE |= {Hint("auditing/request.py", "reference", "leave out")}  # the standard says it
# the groups that were named, and a placeholder for each attribute without one
STATED_OTHERWISE |= {Hint("auditing/measure/reference_groups.py", "reference", "value")}
# Sentences: what is done to the data or with other functions, without a value that decides what
# they mean.
SENTENCES = {
    "auditing/groups/outcomes.py": ["pass the column of one class"],
    "auditing/groups/conditions.py": ["merge values", "pass such as {'age': [25, 40, 60]}"],
    "auditing/groups/counting.py": ["pass fewer columns"],
    "metrics/penalty_options.py": ["pass penalty=PenaltyOptions(...)"],
    "api/audit.py": ["pass the predictions of a single model as an array or a table"],
    "api/pages.py": ["use {method}"],
    "api/audit_columns.py": [
        (
            "count the rows in parts with AuditState or metrifair count, or raise "
            "AuditOptions.in_memory_rows"
        ),
        (
            "raise AuditOptions.in_memory_rows if memory allows, or audit a random sample of whole "
            "clusters"
        ),
    ],
    "api/search_counts.py": [
        "choose by a utility of scores such as 'auc'",
        "choose by one of {', '.join(map(repr, known))}",
        "use models with predict_proba",
        "write the frontier with to_json or to_html",
    ],
    "auditing/groups/same_rows.py": ["audit scores whose high values are favorable"],
    "api/evidence_writer.py": ["write the audit with to_json or to_html"],
    "api/audit_result.py": ["audit arrays, or a file with a larger in_memory_rows"],
    "api/state.py": [
        "count the rows of both with one value",
        "pass the rows and clusters to audit",
    ],
    "auditing/sources/column_values.py": [
        "audit each by itself and compare the audits if they are several models",
        "correct these values",
        "its values are {_counts_in(decisions)}",
        "subtract a constant from all of them, or round them yourself",
        "write numbers without a sign between thousands",
        "write shares as numbers, such as 0.25 for 25%",
    ],
    "auditing/sources/column_roles.py": ["name two columns"],
    "auditing/changes/differences.py": [
        "audit both in memory, such as audit(y_true, {'a': scores, 'b': others}, ...)",
        "audit both with the same value",
        "audit the rows of both with clusters",
        "audit the rows with clusters",
        "audit the same groups, criteria and metrics in both",
    ],
    "auditing/sources/connections.py": [
        (
            "download the file and pass its path; databases are duckdb:FILE and what Ibis connects "
            "to, "
            "such as postgres://user@host/database"
        ),
        "leave one of them out",
        "pass its path, without file://",
    ],
    "auditing/measure/reference_groups.py": [
        "name a group of each attribute",
        "name another group",
        "of several attributes, name one for each",
    ],
    "auditing/measure/selection.py": [
        "audit one class at a time",
        "pass the reported groups, or another standard",
    ],
    "auditing/sources/file_tables.py": [
        "check its quotes",
        "did you mean {similar!r}?",
        "its columns are {names}",
        "its only column is {names}",
        "look for another spelling",
    ],
    "auditing/sources/file_formats.py": [
        "change it where the file is written, or write the file as csv",
        "name it in one of them",
        "name it once",
    ],
    "auditing/group_measures.py": ["pass a function that takes weights, or audit without them"],
    "auditing/changes/series.py": ["audit the same groups, criteria and metrics in all"],
    "auditing/request.py": [
        "leave it out: any other name is that of a group",
        "name another column",
    ],
    "auditing/sources/state_parts.py": [
        "audit all rows at once, with audit or audit_file",
        "count the scores of the positive label as a single column",
    ],
    "auditing/sources/state_rows.py": [
        "count the table in parts, and merge the counts",
        "divide all weights by a constant",
    ],
    "auditing/release/released_rows.py": [
        (
            "count them with AuditState or metrifair count, or use metrifair evidence, which "
            "counts files"
        ),
        "write the report with to_html or to_json",
    ],
    "auditing/release/releases.py": [
        "release them with the same parameters",
        "restore it from a copy, or write to another folder",
    ],
    "auditing/release/suppression.py": [
        "use fewer columns, merge small groups, or use a smaller minimum"
    ],
    "auditing/sources/table_rows.py": [
        "cast it in a query or a view",
        "cast it to text in a query or a view",
    ],
    "baselines/network.py": [
        "set warm_start=False, or use a network or a learner that has warm_start"
    ],
    "baselines/baseline.py": ["leave the group out or use another criterion"],
    "boosting/booster.py": ["use FairXGBClassifier or FairXGBRegressor, or pass X.compute()"],
    "boosting/dask.py": [
        "check their memory and logs, then call fit again",
        "pass expected_groups=False to use the observed groups, or use arrays",
    ],
    "boosting/objective.py": [
        "lower learning_rate, or check the target, and the score of a user-defined criterion"
    ],
    "cli/options.py": ["name it once"],
    "cli/tables.py": ["leave the column out"],
    "cli/training_file.py": ["correct its values, or name words for missing values with --missing"],
    "datasets/fetch.py": [
        "replace it with the one from {raw.address}, or remove it to have it downloaded"
    ],
    "encoding/encoder.py": ["make it a category to have names"],
    "estimators/estimator.py": [
        "pass groups=, a list of all groups, to the first partial_fit",
        "pass sensitive_features, one value per sample, or set strength=0",
        "remove its last layer if that is Sigmoid or Softmax",
    ],
    "estimators/settings.py": ["use {regressor}, or number the classes from 0 if they are classes"],
    "estimators/fair.py": ["pass a dict"],
    "estimators/table_model.py": ["fit them together"],
    "nn/penalty.py": ["pass targets and criterion={needed!r} to the sampler"],
    "nn/samplers.py": ["number the values from 0 upwards"],
    "postprocessing/calibration.py": ["; XianPostprocessor takes more", "define both"],
    "postprocessing/postprocessor.py": ["use smaller clusters, or leave clusters out"],
    "postprocessing/threshold.py": [
        "use statistical_parity, equal_opportunity, predictive_equality or equalized_odds"
    ],
    "problem/attributes.py": [
        "cut it into groups",
        "cut {them} into groups",
        "leave it out",
        "leave one of them out",
    ],
    "problem/predictions.py": [
        "check the units of X, or leave the row out",
        "convert the text to numbers",
        "correct these values, or leave the rows out",
        "exchange them",
        "exchange them, or audit the decisions without labels",
        "its values are {value_counts(Counter(map(str, decisions)).items())}",
        "leave these rows out",
        "pass an array or a data frame",
        "pass its probability as a single column",
        "use one spelling for the favorable decision, and another word for any other",
        "write the favorable decision as 1 and others as 0",
    ],
    "problem/problem.py": [
        "leave it out",
        "leave those samples out",
        "make numbers of them",
        "merge labels",
        "turn them into numbers or text",
    ],
    "problem/memberships.py": [
        "merge groups that are often confused",
        (
            "name the column of every group, write percentages as shares, and leave all columns of "
            "a row empty if its "
            "group is unknown"
        ),
        "name them, as in GroupProbabilities(['p_white', 'p_black'], attribute='race')",
        "pass only one of them",
        "pass the group of each row, or use what accepts them, such as audit or FairClassifier.fit",
    ],
    "problem/tables.py": [
        "encode them first with TableEncoder",
        "name another column, or shorten the names",
        "pass the column, such as table[{table!r}]",
    ],
    "report/pdf.py": [
        "install chromium, or write the HTML page and print it in any browser",
        "write the HTML page and print it in any browser",
    ],
    "stacking.py": [
        "cut numbers into groups and use contrast='pairs' or 'rest', or use FairClassifier",
        "use FairClassifier or FairRegressor",
    ],
    "support/checks.py": ["did you mean {choices}?", "{percent:g} percent is {percent / 100:g}"],
    "support/ssh_signatures.py": ["install OpenSSH 8.2 or later", "name a .pub file"],
    "tradeoff/ledger.py": ["define it at the top of a module, or leave ledger out"],
    "tradeoff/portfolio.py": [
        "leave it out",
        "leave it out, or allow models that need the group (needs_group)",
        "leave it out, or install LightGBM: pip install 'metrifair[boosting]'",
    ],
    "tradeoff/resamples.py": ["merge small groups, or mark them as missing"],
    "tradeoff/result.py": [
        "leave needs_group out, or train other families",
        "lower min_accuracy",
        "merge small groups, or mark them as missing",
        "raise the limit",
        "train with larger strengths",
        "use fewer folds",
    ],
    "tradeoff/split.py": [
        "use fewer, or leave rare labels out",
        "use smaller clusters, or omit clusters",
    ],
    "tradeoff/sweep.py": [
        "leave devices out",
        "name another parameter with parameter=...",
        "wrap it, as in BarycenterPostprocessor({name}())",
        "pass {fair}",
        "pass an object with fit and predict, such as FairClassifier()",
    ],
    "wording/compare.py": [
        "audit the scores together",
        "pass paired=True, or audit the scores together",
    ],
}
# Messages of the command line that show an option with a value that they fill in, and why it is
# safe.
OPTIONS_WITH_VALUES = {
    ("cli/datasets.py", "--group"): "the column of a data set that we ship",
    (
        "cli/models.py",
        "--positive",
    ): "the label that was positive in training, whose probability was written",
    ("cli/models.py", "--threshold"): "the threshold in the model",
    ("cli/tables.py", "--ignore"): "leaves out a feature",
    ("cli/tables.py", "--keep"): "keeps a feature",
    ("cli/train.py", "--strength"): "the strength of the chosen model",
    ("report/pdf.py", "--print-to-pdf"): "an option of the browser",
    ("report/pdf.py", "--user-data-dir"): "an option of the browser",
    ("wording/training_file.py", "--ignore"): "leaves out a feature",
    (
        "wording/training_file.py",
        "--continuous",
    ): "asks whether an attribute is a number, both ways",
    ("cli/training_file.py", "--families"): "repeats what the user typed",
    ("cli/training_file.py", "--label"): "repeats what the user typed",
    ("cli/training_file.py", "--group"): "repeats what the user typed",
    ("cli/training_file.py", "--weight"): "repeats what the user typed",
    ("cli/training_file.py", "--model"): "repeats what the user typed",
    ("cli/datasets.py", "--label"): "the column of a data set that we ship",
    ("studio/commands.py", "--max-unfairness"): "repeats what the user chose",
}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "errors.py":
            yield str(path.relative_to(SOURCE)), ast.parse(path.read_text(encoding="utf-8"))


def hint_in(file: str, call: ast.Call) -> Hint:
    named = {word.arg: word.value for word in call.keywords}
    argument = call.args[0]
    value = call.args[1] if len(call.args) > 1 else named.get("value")
    name = str(argument.value) if isinstance(argument, ast.Constant) else ast.unparse(argument)
    if "leave_out" in named:
        return Hint(file, name, "leave out")
    return Hint(
        file, name, "placeholder" if value is None or is_open(value) else ast.unparse(value)
    )


def is_open(value: ast.expr) -> bool:
    """Whether nothing but names of columns or values is filled in, and what they stand for is
    left to the user.
    """
    if isinstance(value, ast.Dict):
        return all(isinstance(one, ast.Constant) and one.value is ... for one in value.values)
    if isinstance(value, ast.Call):  # dict.fromkeys(words, ...)
        return ast.unparse(value.func) == "dict.fromkeys" and ast.unparse(value.args[1]) == "..."
    return isinstance(value, ast.Constant) and value.value is ...


def hints_in(file: str, tree: ast.Module) -> set[Hint]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {
        hint_in(file, call)
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "Remedy"
    }


def sentences_in(tree: ast.Module) -> set[str]:
    """Texts in ``remedy=``, in variables of that name, and in functions that return remedies."""
    places: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "remedy":
            places.append(node.value)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            places += [node.value] * any(
                ast.unparse(one) in ("remedy", "remedies", "insist") for one in targets
            )
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            returns = "Remed" in ast.unparse(node.returns) or node.name in (
                "did_you_mean",
                "share_hint",
            )
            places += [
                one.value
                for one in ast.walk(node)
                if isinstance(one, ast.Return) and one.value and returns
            ]
    return {text for place in places for text in texts_in(place)}


def texts_in(node: ast.AST) -> Iterator[str]:
    """Texts outside of calls and comparisons: those of ``Remedy`` are hints with an argument."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(
            str(one.value)
            if isinstance(one, ast.Constant)
            else ast.unparse(ast.JoinedStr([one]))[2:-1]
            for one in node.values
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from filter(None, [node.value])
    elif isinstance(node, ast.IfExp):
        yield from (*texts_in(node.body), *texts_in(node.orelse))
    elif isinstance(node, ast.List | ast.Tuple | ast.Starred):
        for child in ast.iter_child_nodes(node):
            yield from texts_in(child)


def options_in(file: str, tree: ast.Module) -> set[tuple[str, str]]:
    """Options of f-strings with a value behind them that the message fills in."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for text, value in zip(node.values, node.values[1:], strict=False):
                if isinstance(text, ast.Constant) and isinstance(value, ast.FormattedValue):
                    option = re.search(r"(--[a-z-]+)[ =]$", str(text.value))
                    found |= {(file, option[1])} if option else set()
    return found


@pytest.mark.extended
def test_every_hint_is_in_the_table() -> None:
    assert {hint for module in modules() for hint in hints_in(*module)} == HINTS
    found = {file: sorted(sentences_in(tree)) for file, tree in modules() if sentences_in(tree)}
    assert found == {file: sorted(texts) for file, texts in SENTENCES.items()}
    assert {one for module in modules() for one in options_in(*module)} == set(OPTIONS_WITH_VALUES)


def broken_hints(hints: set[Hint]) -> set[Hint]:
    """Hints that decide what the data mean."""
    stated = {hint for hint in hints if hint.argument in MEANING and hint.value != "placeholder"}
    return stated - STATED_OTHERWISE


def test_a_hint_on_what_data_mean_has_a_placeholder() -> None:
    assert broken_hints(HINTS) == set()
    planted = ast.parse("DataError('x', remedy=Remedy('favorable_decision', values[0]))")
    assert broken_hints(hints_in("planted.py", planted))
    for argument in MEANING:
        text = remedy_text(Remedy(argument), OPTION_NAMES)
        shown = text.removeprefix("use ").split(" ", 1)[-1]
        assert shown.isupper() or shown.endswith(("=...", "high|low")), text


# --- hints with values, followed


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def followed(*arguments: object) -> Result:
    """The command, again with each option that its message shows with a value, until it shows
    no more.
    """
    words = list(map(str, arguments))
    for _ in range(5):
        done = run(*words)
        message = " ".join(done.stderr.split())
        hint = re.search(r"\buse (--[a-z-]+(?: (?:'[^']*'|\S+))?)", message)
        if done.exit_code != 2 or hint is None:
            return done
        more = shlex.split(hint[1])
        more[-1] = more[-1].rstrip(",;.") or more[-1]
        if more[-1].isupper() or more[-1].endswith(("=NEW", "=NUMBERS")):
            return done  # only the user can say it
        words += more
    raise AssertionError(message)


def people(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    sex = rng.choice(["Männer", "Frauen"], rows)
    p = np.round(rng.beta(2, 2, rows) * 0.9 + 0.05 * (sex == "Männer"), 3)
    return pl.DataFrame(
        {"p": p, "sex": sex, "age": rng.integers(20, 60, rows), "team": np.arange(rows) % 40}
    )


def gap(table: pl.DataFrame, score: str = "p") -> float:
    """The Kolmogorov distance between the two sexes, computed from the definition."""
    first, second = (table.filter(sex=name)[score].to_numpy() for name in ("Frauen", "Männer"))
    points = np.unique(table[score].to_numpy())
    return float(max(abs((first <= point).mean() - (second <= point).mean()) for point in points))


def with_commas(table: pl.DataFrame) -> bytes:
    return (
        table.with_columns(pl.col("p").cast(pl.String).str.replace(r"\.", ","))
        .write_csv(separator="\t")
        .encode()
    )


READINGS: dict[str, Callable[[pl.DataFrame], bytes]] = {
    "separator": lambda table: table.write_csv(separator="|").encode(),
    "encoding cp1252": lambda table: table.write_csv().encode("cp1252"),
    "encoding utf-16": lambda table: table.write_csv().encode("utf-16"),
    "decimal": with_commas,
}


@pytest.mark.parametrize("reading", READINGS)
def test_hints_on_reading_lead_to_the_true_figure(tmp_path: Path, reading: str) -> None:
    table, out = people(), tmp_path / "a.json"
    file = tmp_path / ("p.tsv" if reading == "decimal" else "p.csv")
    file.write_bytes(READINGS[reading](table))
    assert run("audit", file, "--score", "p", "--group", "sex").exit_code == 2
    done = followed("audit", file, "--score", "p", "--group", "sex", "--json", out)
    assert done.exit_code == 0, done.output
    findings = json.loads(out.read_text())["findings"]
    (value,) = [one["value"] for one in findings if one["metric"] == "kolmogorov"]
    assert value == pytest.approx(gap(table), abs=1e-9)
    assert {tuple(sorted(one["groups"])) for one in findings} == {("Frauen", "Männer")}


DECISIONS = {"Declined": 0.3, "Advanced": 0.5, "Pending": 0.2}


@pytest.mark.parametrize("command", ["audit", "count"])
@pytest.mark.parametrize(
    "standard", [(), ("--standard", "ll144"), ("--fail-above", "selection_difference=0.2")]
)
def test_obeying_messages_never_decides_which_decision_is_favorable(
    tmp_path: Path, command: str, standard: tuple[str, ...]
) -> None:
    rng = np.random.default_rng(1)
    decided = rng.choice(list(DECISIONS), 300, p=list(DECISIONS.values()))
    file = tmp_path / "d.csv"
    people(300).with_columns(Decision=pl.Series(decided)).write_csv(file)
    rest = ("--output", tmp_path / "s") if command == "count" else standard
    done = followed(command, file, "--score", "Decision", "--group", "sex", *rest)
    assert done.exit_code == 2
    for value in DECISIONS:
        assert f"'{value}' ({int((decided == value).sum())})" in done.stderr
    assert "--favorable-decision VALUE" in done.stderr


# changes of the table, and the command that must not succeed
NEVER_DECIDED: dict[str, tuple[Any, str]] = {
    "weights in words": (
        {"w": ["once", "twice"] * 200},
        "audit {} --score p --group sex --weight w",
    ),
    "thousands": ({"p": ["1,234", "999"] * 200}, "audit {} --score p --group sex"),
    "unclear labels": (
        {"y": ["Funded", "Charged off"] * 200},
        "train {} --label y --group sex --model linear",
    ),
    "unclear labels of a frontier": (
        {"y": ["Funded", "Charged off"] * 200},
        "frontier {} --label y --group sex --model linear --strengths 0",
    ),
    "no reference": ({}, "audit {} --score p --group sex --threshold 0.5 --standard credit"),
    "another reference": ({}, "audit {} --score p --group sex --threshold 0.5 --reference nobody"),
    "cuts of no column": ({}, "audit {} --score p --group age --group team --cuts 30"),
}


@pytest.mark.parametrize("case", NEVER_DECIDED)
def test_obeying_messages_never_succeeds_where_only_the_user_knows(
    tmp_path: Path, case: str
) -> None:
    changes, command = NEVER_DECIDED[case]
    file = tmp_path / "p.csv"
    people().with_columns(
        **{name: pl.Series(values) for name, values in changes.items()}
    ).write_csv(file)
    done = followed(*(str(file) if word == "{}" else word for word in command.split()))
    assert done.exit_code == 2, done.output


def test_hints_with_values_in_python_lead_to_what_the_user_stated(tmp_path: Path) -> None:
    table = people()
    asked: dict[str, Any] = {"sensitive_features": table.select("age"), "random_state": 0}
    asked["options"] = AuditOptions(resamples=20, permutations=20)
    with pytest.warns(
        MetrifairWarning,
        match=r"pass continuous=\['age'\] if the values are numbers, or pass continuous=False",
    ):
        taken = metrifair.audit(None, table["p"], **asked)
    same = metrifair.audit(None, table["p"], continuous=["age"], **asked)
    assert [one.value for one in same.findings] == [one.value for one in taken.findings]
    with pytest.raises(DataError, match="max_groups=40"):
        metrifair.audit(
            None, table["p"][:60], sensitive_features={"team": table["team"][:60].cast(pl.String)}
        )
    with pytest.raises(DataError, match=r"missing='Frauen'"):
        ReadOptions(replace={"Frauen": None})  # type: ignore[dict-item]


def test_what_is_left_out_was_stated_otherwise(tmp_path: Path) -> None:
    rows = people().with_columns(d=pl.Series(["Advanced", "Declined"] * 200))
    expected = [rows.filter(sex=name)["d"].eq("Advanced").mean() for name in ("Frauen", "Männer")]
    asked: dict[str, Any] = {"sensitive_features": rows["sex"], "favorable_decision": "Advanced"}
    with pytest.raises(DataError, match="leave favorable out"):
        metrifair.audit(None, rows["d"], favorable="low", **asked)
    found = metrifair.audit(
        None, rows["d"], random_state=0, options=AuditOptions(resamples=20), **asked
    )
    assert [one.selection_rate for one in found.record.decisions[0].rates] == pytest.approx(
        expected
    )
    with pytest.raises(DataError, match="leave reference out"):
        found.rates("ll144", reference="Frauen")
    ratios = {one.group: one.ratio for one in found.rates("ll144").audit.record.decisions[0].rates}
    assert ratios["Frauen"] == pytest.approx(expected[0] / max(expected))
