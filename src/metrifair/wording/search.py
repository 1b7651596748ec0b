"""The words of the evidence of a search: what was searched, what was chosen and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from metrifair.auditing.release.releases import LEDGER
from metrifair.support.provenance import Provenance
from metrifair.tradeoff.search_facts import (
    BoundedFigure,
    ConfigurationFacts,
    ConfigurationFigures,
    SearchFacts,
    SearchFigures,
)
from metrifair.wording.numbers import count_text, figure_text, listed, noun
from metrifair.wording.provenance import origin_sentences, readme_lines
from metrifair.wording.rates import NO_VERDICT
from metrifair.wording.terms import term_name

_EXCLUDED = {
    "": "",
    "failed": "training failed",
    "needs_group": "not asked for: whether prediction needs the group",
    "no_utility": "its scores do not determine the utility",
    "unlike_folds": "the model of all rows is unlike the models of the folds",
}
CONFIGURATION_HEADINGS = (
    "number",
    "family",
    "parameter",
    "value",
    "seed",
    "needs group",
    "utility",
    "utility at least",
    "utility at most",
    "standard error of utility",
    "unfairness",
    "unfairness at least",
    "unfairness at most",
    "standard error of unfairness",
    "on the front",
    "the rule may choose it",
    "chosen",
    "excluded",
)


class SearchShown(NamedTuple):
    """All that pages and texts show of a search."""

    facts: SearchFacts
    figures: SearchFigures
    provenance: Provenance
    min_cell: int
    suppressed: Mapping[str, Sequence[Any]]
    single: int  # counts of one row

    @property
    def chosen(self) -> ConfigurationFigures:
        """The figures of the chosen configuration."""
        return next(
            item for item in self.figures.configurations if item.number == self.facts.chosen
        )


def configuration_name(item: ConfigurationFacts) -> str:
    """A configuration by its family and strength.

    >>> configuration_name(ConfigurationFacts(number=2, family="linear", parameter="strength",
    ...     value=0.5, seed=0, needs_group=False, excluded=""))
    'linear, strength 0.5'
    """
    name = f"{item.parameter} {item.value:g}"
    if item.family:
        name = f"{item.family}, {name}"
    if item.seed:
        name = f"{name}, seed {item.seed}"
    return name


def search_sentences(shown: SearchShown) -> list[str]:
    """The choice, its rule, its figures and its alternatives, the answer first."""
    facts = shown.facts
    expected = facts.expected
    chosen = configuration_name(facts.chosen_configuration)
    return [
        (
            f"Chosen: configuration {facts.chosen} ({chosen}) of "
            f"{count_text(len(facts.configurations), 'configuration')}."
        ),
        f"Reason: {facts.reason}",
        *_rule_sentences(facts),
        (
            f"Expected on new rows of the same population: unfairness {figure_text(expected.unfairness)} (95% interval "
            f"{figure_text(expected.unfairness_low)} to {figure_text(expected.unfairness_high)}), "
            f"{_utility(facts)} {figure_text(expected.utility)} ("
            f"{figure_text(expected.utility_low)} to {figure_text(expected.utility_high)}). These "
            "figures are corrected for choosing the best of many; those by the counts are not."
        ),
        *_limit_sentences(facts),
        *_cost_sentences(shown),
        _possible_sentence(shown),
        _delivered_sentence(shown),
    ]


def _limit_sentences(facts: SearchFacts) -> list[str]:
    """Whether new rows may exceed the limit."""
    goal = facts.goal
    if goal is None or goal.max_unfairness is None or not facts.met:
        return []
    if facts.expected.unfairness_high <= goal.max_unfairness:
        return []
    return ["The true unfairness may be above the limit: its 95% interval reaches above it."]


def _utility(facts: SearchFacts) -> str:
    """The name of the utility inside a sentence."""
    return noun(term_name(facts.utility))


def _rule_sentences(facts: SearchFacts) -> list[str]:
    """The limit and the rule of choice."""
    rule = (
        f"Rule: of the {_eligible(facts)}, those {_near_best(facts)} count as equally good, "
        "and the simplest of them is chosen: without a penalty before a penalty, models that predict "
        "without the group before others, then by family, then the smaller penalty."
    )
    if facts.allowance:
        rule += (
            f" Before squared gaps are compared with the square of the limit, "
            f"{figure_text(facts.allowance, digits=4)} is added to them: an allowance for choosing "
            "the best of many."
        )
    return [_asked(facts), rule]


def _asked(facts: SearchFacts) -> str:
    """The limit, and whether it was met."""
    goal = facts.goal
    if goal is None:
        return "No limit was asked for: the least unfair configuration is chosen."
    asked = f"Limit: accuracy at least {goal.min_accuracy or 0:g}."
    if goal.max_unfairness is not None:
        asked = f"Limit: unfairness at most {goal.max_unfairness:g}"
        if goal.confidence is not None:
            asked += f", with confidence {goal.confidence:g}"
        asked += "."
    if not facts.met:
        asked += " No configuration meets it; the least unfair one was asked for instead."
    return asked


def _eligible(facts: SearchFacts) -> str:
    """The configurations among which the best is sought."""
    goal = facts.goal
    group = ""
    if goal is not None and goal.needs_group is not None:
        group = " that need the group" if goal.needs_group else " that predict without the group"
    if goal is not None and facts.met:
        return f"configurations{group} within the limit"
    least = f"least unfair configurations{group} (several where chance explains the unfairness)"
    if goal is not None and goal.confidence is not None:
        least += f", by what the unfairness is below with confidence {goal.confidence:g}"
    return least


def _near_best(facts: SearchFacts) -> str:
    """What the configurations have in common that count as equally good."""
    if facts.goal is not None and facts.goal.min_accuracy is not None and facts.met:
        return "within one standard error (of the difference) of the least unfairness"
    return f"whose {_utility(facts)} is within one standard error (of the difference) of the best"


def _cost_sentences(shown: SearchShown) -> list[str]:
    """The chosen configuration beside the best one by utility."""
    facts = shown.facts
    sign = 1.0 if facts.larger_is_better else -1.0
    best = max(shown.figures.configurations, key=lambda item: sign * item.utility.value)
    chosen = shown.chosen
    utility = _utility(facts)
    own = (
        f"By the counts, configuration {chosen.number} has the {utility} "
        f"{bounded_text(chosen.utility)} and the unfairness {bounded_text(chosen.unfairness)}"
    )
    if best.number == chosen.number:
        return [f"{own}; none has a better {utility}."]
    other = (
        f"configuration {best.number}, the best by {utility}, has {bounded_text(best.utility)} and "
        f"{bounded_text(best.unfairness)}."
    )
    worse = abs(best.utility.value - chosen.utility.value)
    side = "lower" if facts.larger_is_better else "higher"
    change = best.unfairness.value - chosen.unfairness.value
    cost = (
        f"Cost: {utility} {figure_text(worse)} {side}, for an unfairness that is "
        f"{figure_text(abs(change))} {'lower' if change >= 0 else 'higher'}."
    )
    return [f"{own}; {other}", cost]


def _possible_sentence(shown: SearchShown) -> str:
    possible = [item.number for item in shown.figures.configurations if item.possible]
    if possible == [shown.facts.chosen]:
        return "The counts and the standard errors determine this choice."
    others = [str(number) for number in possible if number != shown.facts.chosen]
    if shown.facts.chosen not in possible:
        instead = listed(others) if others else "none"
        return (
            "The counts and the standard errors exclude this choice. The configurations that they "
            f"do not exclude: {instead}."
        )
    return (
        f"With the original scores, the rule gives configuration {shown.facts.chosen}. The counts, "
        f"whose scores are rounded to a grid, do not exclude {listed(others)}."
    )


def _delivered_sentence(shown: SearchShown) -> str:
    """The model of all rows, on its own training rows."""
    delivered = shown.figures.delivered
    return (
        f"The delivered model is configuration {shown.facts.chosen}, trained on all rows. On these "
        f"same rows, it has the {_utility(shown.facts)} {bounded_text(delivered.utility)} and the "
        f"unfairness {bounded_text(delivered.unfairness)}; new rows are better judged by the figures "
        "above."
    )


def bounded_text(figure: BoundedFigure) -> str:
    """A figure with its bounds.

    >>> bounded_text(BoundedFigure(value=0.2, low=0.19, high=0.2125))
    '0.200 (0.190 to 0.212)'
    """
    ends = f"{figure_text(figure.low)} to {figure_text(figure.high)}"
    return f"{figure_text(figure.value)} ({ends})"


def configuration_cells(
    facts: SearchFacts, item: ConfigurationFacts, figures: ConfigurationFigures | None
) -> list[object]:
    """The values of a configuration below ``CONFIGURATION_HEADINGS``."""
    numbers: list[object] = [None] * 8
    marks: list[object] = [False, False]
    if figures is not None:
        utility = figures.utility
        unfairness = figures.unfairness
        numbers = [
            utility.value,
            utility.low,
            utility.high,
            item.utility_error,
            unfairness.value,
            unfairness.low,
            unfairness.high,
            item.unfairness_error,
        ]
        marks = [figures.on_front, figures.possible]
    return [
        item.number,
        item.family,
        item.parameter,
        item.value,
        item.seed,
        item.needs_group,
        *numbers,
        *marks,
        item.number == facts.chosen,
        _EXCLUDED[item.excluded],
    ]


def stated_values(content: object, at: str = "") -> list[tuple[str, object]]:
    """Every value of JSON content with its place.

    >>> stated_values({"a": [1, 2], "b": None})
    [('a[0]', 1), ('a[1]', 2), ('b', None)]
    """
    return list(_values(content, at))


def _values(content: object, at: str) -> Iterator[tuple[str, object]]:
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _values(value, f"{at}.{name}" if at else name)
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from _values(value, f"{at}[{number}]")
    else:
        yield at, content


def searched_sentences(shown: SearchShown) -> list[str]:
    """What was searched, and on which rows."""
    facts = shown.facts
    *columns, label = facts.columns
    families = Counter(item.family for item in facts.configurations)
    named = [f"{name or 'one family'} ({count})" for name, count in families.items()]
    compared = "by fitted models"
    if facts.folds:
        compared = f"by {facts.folds}-fold cross-validation"
    comparisons = [
        f"{item.attribute} {item.groups[0]} against {item.groups[1]}, {item.within}"
        for item in facts.comparisons
    ]
    return [
        (
            f"{count_text(len(facts.configurations), 'configuration')} were compared {compared}: "
            f"{listed(named)}. Seed of the folds: {facts.seed}. Nothing is said of other models, "
            "columns or settings."
        ),
        (
            f"Unfairness is {_GAPS[facts.unfairness_of]}, without the part that chance explains "
            f"({facts.criterion}). {_compared(comparisons)}"
        ),
        *_ranking_sentences(facts),
        f"Unfairness below {figure_text(shown.figures.noise)} can be chance with these rows.",
        (
            f"The counts contain {shown.figures.rows:,} rows by {', '.join(columns)} and {label}. "
            f"Positive label: {facts.positive}."
        ),
    ]


_GAPS = {
    "scores": "the largest difference between the groups' shares at or above a score, over all "
    "scores",
    "decisions": "the difference between the groups' shares of positive decisions",
}


def _compared(comparisons: Sequence[str]) -> str:
    if len(comparisons) == 1:
        return f"Compared: {comparisons[0]}."
    return f"The largest of these counts: {'; '.join(comparisons)}."


def _ranking_sentences(facts: SearchFacts) -> list[str]:
    """How a ranking of scores of several models is counted."""
    if facts.utility != "auc" or not facts.folds:
        return []
    return [
        "AUC is the mean over the folds, by the number of pairs, as each fold has its own model."
    ]


def absent_sentences(shown: SearchShown) -> list[str]:
    """What the folder does not contain."""
    data = "no input file and no sha256 of one, as the rows were read from memory"
    if shown.provenance.files:
        data = "no input file, only its sha256"
    sentences = [
        (
            f"The evidence contains {data}, and no scores: only counts of scores by fold, group and "
            "label, in intervals of a public grid."
        ),
        "Scores of single rows, and the model file, are not part of the folder.",
    ]
    if shown.min_cell == 1:
        sentences.append(
            f"{shown.single:,} counts are of a single row: each shows the score of one person to "
            "the width of the grid. With --min-cell, every count is of at least so many rows."
        )
    else:
        sentences.append(f"Every count is of at least {shown.min_cell} rows.")
    for column, values in shown.suppressed.items():
        sentences.append(
            f"Withheld, as cells have fewer rows: {column} {listed(list(map(str, values)))}. At most "
            f"{shown.figures.withheld:,} rows are missing, and all bounds allow for them."
        )
    if shown.suppressed:
        sentences.append(
            "The standard errors, the allowance, the choice and the expected figures are computed "
            "with the withheld rows, and depend on them. All other figures are those of the counts."
        )
    passed_over = sum(item.excluded == "unlike_folds" for item in shown.facts.configurations)
    if passed_over:
        sentences.append(
            f"{count_text(passed_over, 'configuration')} passed over, as the model of all rows is "
            "unlike the models of the folds: neither the counts nor the scores show this."
        )
    return [
        *sentences,
        "Two configurations with almost equal scores can show how few rows lie between them.",
        (
            f"{LEDGER}, which stays beside the folder where it was written, lists earlier releases "
            "of these rows."
        ),
        (
            "Standard errors, the allowance and the expected figures are stated in search.json: "
            "they need the scores of single rows to be recomputed."
        ),
        (
            "They are computed from the original scores. Releases before and after a person is "
            "added also differ in these figures."
        ),
        NO_VERDICT,
    ]


_FILES = {
    "report.html": "The report. Open it in any browser; it needs no network.",
    "tables/": "All configurations, and every value of search.json, as csv files.",
    "search.json": "What was searched, the rule, standard errors, the choice and its expected "
    "figures.",
    "figures.json": "All figures that are computed from the counts.",
    "counts/": "Counts of out-of-fold scores of each configuration, and of the delivered model's.",
    "MANIFEST.json": "The sha256 of every file, and of the inputs if they are files; the command, "
    "versions and time.",
}
_VERIFY = (
    (
        "pip install 'metrifair[train]', then: metrifair verify FOLDER [--data FILE] "
        "[--scores FILE] [--model FILE] [--verify-key KEY.pub]"
    ),
    (
        "It checks every sha256, recomputes every figure and the front from the counts, and checks "
        "whether the rule can give this choice with the stated standard errors."
    ),
    (
        "With --scores, the file of out-of-fold scores that was kept aside, it recomputes the "
        "standard errors, the choice and the expected figures."
    ),
    (
        "With --model, it compares the sha256 of the model file; with --data and --scores too, "
        "the scores of the model."
    ),
    "Without a signature, verification detects accidents and careless edits.",
)


def search_readme(shown: SearchShown) -> str:
    """The README of the folder."""
    parts = [
        ("WHAT WAS CHOSEN, AND WHY", search_sentences(shown)),
        ("WHAT WAS SEARCHED", searched_sentences(shown)),
        ("ON WHAT", origin_sentences(shown.provenance)),
        ("WHAT IS NOT HERE", absent_sentences(shown)),
        ("FILES", [f"{name:18} {text}" for name, text in _FILES.items()]),
        ("HOW TO VERIFY", list(_VERIFY)),
    ]
    if shown.facts.model is not None:
        model = shown.facts.model
        parts[0][1].append(f"Model file: {model.name}, sha256 {model.sha256}")
    title = search_title(shown)
    lines = [title, "=" * len(title)]
    for heading, sentences in parts:
        lines += ["", heading]
        lines += [line for sentence in sentences for line in readme_lines(sentence)]
    return "\n".join(lines) + "\n"


def search_title(shown: SearchShown) -> str:
    """The title of the report."""
    return shown.provenance.title or "Search for a less discriminatory alternative"


def page_cells(
    facts: SearchFacts, item: ConfigurationFacts, figures: ConfigurationFigures | None
) -> list[str]:
    """The row of a configuration on a page, below ``PAGE_HEADINGS``."""
    texts = ["\N{EN DASH}"] * 4
    marks = [_EXCLUDED[item.excluded]]
    if figures is not None:
        texts = [
            bounded_text(figures.utility),
            figure_text(item.utility_error, digits=4),
            bounded_text(figures.unfairness),
            figure_text(item.unfairness_error, digits=4),
        ]
        marked = {
            "chosen": item.number == facts.chosen,
            "on the front": figures.on_front,
            "the rule may choose it": figures.possible,
        }
        marks = [*(mark for mark, is_so in marked.items() if is_so), *marks]
    group = "yes" if item.needs_group else "no"
    return [
        f"{item.number}: {configuration_name(item)}",
        group,
        *texts,
        ", ".join(filter(None, marks)),
    ]


def page_headings(facts: SearchFacts) -> list[str]:
    """The headings of the table of configurations."""
    return [
        "configuration",
        "needs group",
        f"{_utility(facts)} (bounds)",
        f"standard error of {_utility(facts)}",
        "unfairness (bounds)",
        "standard error of unfairness",
        "status",
    ]


PAGE_WORDS = (
    (
        "bounds",
        (
            "The figure of the original scores lies between these. They come from the grid, not from "
            "chance."
        ),
    ),
    (
        "on the front",
        "No other configuration is as good in both figures of the counts and better in one.",
    ),
    (
        "the rule may choose it",
        "For some figures between the bounds, with the stated standard errors, the rule chooses it.",
    ),
)
