"""Numbers as people read them: figures, shares and strengths as text; and words in the middle
of a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from metrifair.figures.intervals import Interval
from metrifair.problem.problem import is_evident_positive, positive_sentence

NO_NUMBER = "\N{EN DASH}"
"""Shown where a figure does not exist; never "NaN"."""

MINUS = "\N{MINUS SIGN}"

_LISTED = 5
_P_VALUE_ROUNDING = 1e-9  # of a p-value
_SINGLE_PRECISION = 1e-6  # a score of 0.4 may come from 32 bits
_MOST_DECIMALS = 12  # figures that differ by less are equal but for rounding


def figure_text(
    value: float | None, *, digits: int = 3, signed: bool = False, limit: float | None = None
) -> str:
    """The value with this many decimals; an en dash if there is none.

    It has more decimals if it would otherwise look equal to the ``limit``.

    >>> figure_text(0.8419), figure_text(-0.5), figure_text(float("nan")), figure_text(0.02, signed=True)
    ('0.842', '−0.500', '–', '+0.020')
    >>> figure_text(123456.7), figure_text(-0.0001)
    ('1.23e5', '0.000')
    >>> figure_text(0.7984, digits=2, limit=0.8), figure_text(0.8, digits=2, limit=0.8)
    ('0.798', '0.80')
    """
    if value is None or not math.isfinite(value):
        return NO_NUMBER
    digits = _decimals_beside(value, digits, limit)
    if abs(value) >= 1e4:
        text = f"{value:.2e}".replace("e+0", "e").replace("e+", "e")
    else:
        text = f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0: no minus before zero
    text = f"+{text}" if signed and value > 0 and text.strip("0.") else text
    return text.replace("-", MINUS)


def _decimals_beside(value: float, least: int, limit: float | None) -> int:
    """The smallest number of decimals with which the value differs from the limit; ``least`` if
    it equals the limit.
    """
    if limit is None:
        return least
    return next(
        (decimals for decimals in range(least, _MOST_DECIMALS) if round(value, decimals) != limit),
        least,
    )


def number_text(value: float | None, *, limit: float | None = None) -> str:
    """A number of any size, in three decimals or four digits if that is enough; an en dash if there
    is none.

    It has more decimals if it would otherwise look equal to the ``limit``.

    >>> number_text(0.8419), number_text(21.456), number_text(48123.4), number_text(0.0), number_text(None)
    ('0.842', '21.46', '48123', '0.000', '–')
    >>> number_text(0.00042), number_text(0.000042), number_text(-7.25e12)
    ('0.0004', '4.20e−5', '−7.25e12')
    >>> number_text(0.79996, limit=0.8), number_text(0.8, limit=0.8)
    ('0.79996', '0.800')
    """
    # the largest numbers there are round to infinity
    if value is None or not math.isfinite(float(f"{value:.2e}")):
        return NO_NUMBER
    # By the digits that are shown, so that the text of the shown number is the same text.
    if value and not 1e-4 <= abs(float(f"{value:.3g}")) < 1e5:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", MINUS)
    size = abs(float(f"{value:.4g}"))
    decimals = 3 if size < 10 else max(0, 3 - math.floor(math.log10(size)))
    decimals += bool(0 < abs(float(f"{value:.4f}")) < 0.001)
    decimals = _decimals_beside(value, decimals, limit)
    return f"{value + 0.0:.{decimals}f}".replace("-", MINUS)


def interval_text(interval: Interval | None, show: Callable[[float], str] = number_text) -> str:
    """Both ends, each as ``show`` has it; an en dash if there is none.

    >>> interval_text(Interval(0.1, 0.25)), interval_text(Interval(0.1, 0.25), percent_text), interval_text(None)
    ('0.100 to 0.250', '10.0 to 25.0%', '–')
    """
    if interval is None:
        return NO_NUMBER
    return f"{show(interval.low).removesuffix('%')} to {show(interval.high)}"


def shown_number(value: float | None) -> float | None:
    """The number that is shown, as a number: the page's script then cannot round it otherwise.

    >>> shown_number(0.0625), number_text(0.0625), shown_number(float("inf"))
    (0.062, '0.062', None)
    """
    text = number_text(value)
    return None if text == NO_NUMBER else float(text.replace(MINUS, "-"))


def percent_text(share: float | None) -> str:
    """A share in percent; an en dash if there is none.

    >>> percent_text(0.8419), percent_text(None)
    ('84.2%', '–')
    """
    return NO_NUMBER if share is None else f"{figure_text(100 * share, digits=1)}%"


def strength_texts(strengths: Iterable[float]) -> tuple[str, ...]:
    """Short texts of the strengths, with as many digits as it takes to distinguish them.

    >>> strength_texts([0, 0.0316227766, 1000.0])
    ('0', '0.0316', '1000')
    >>> strength_texts([0.5001, 0.5002, 2e-7])
    ('0.5001', '0.5002', '2e−7')
    """
    values = list(strengths)
    distinct = len(set(values))
    for digits in range(3, 17):
        texts = tuple(_significant(value, digits) for value in values)
        if len(set(texts)) == distinct:
            return texts
    return tuple(repr(value) for value in values)


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return _trimmed(f"{value:.{decimals}f}")
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{_trimmed(mantissa)}e{int(exponent)}".replace("-", MINUS)


def _trimmed(text: str) -> str:
    """A number without zeros at the end of its decimals, with the minus sign of all texts."""
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", MINUS)


def p_text(value: float | None, draws: int = 0) -> str:
    """A p-value in four decimals; of ``draws`` permutations or resamples, none of them as extreme:
    "at most".

    >>> p_text(0.01234), p_text(3e-36), p_text(None)
    ('0.0123', '< 0.0001', '–')
    >>> p_text(1 / 1001, draws=1000), p_text(2 / 1001, draws=1000), p_text(1 / 31, draws=30)
    ('at most 0.001', '0.0020', 'at most 0.0323')
    """
    if value is None:
        return NO_NUMBER
    least = 1 / (1 + draws)
    if draws and value <= least * (1 + _P_VALUE_ROUNDING):
        return f"at most {math.ceil(least * 1e4) / 1e4:g}"
    return f"{value:.4f}" if value >= 1e-4 else "< 0.0001"


def listed(items: Sequence[str]) -> str:
    """The first few items as text.

    >>> listed(["a", "b"]), listed(list("abcdefg"))
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(items) - _LISTED
    return ", ".join(items[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def score_text(score: float, span: float = 0.0, *, is_place: bool = False) -> str:
    """A score in plain digits: three, and as many as distinguish hundredths of the ``span`` of all
    scores.

    The place of a gap has up to three more if it would end in 0: near a round threshold, it must
    not look equal to it.

    >>> score_text(0.43217), score_text(-12345.6), score_text(0.2), score_text(0.99968, 0.0004)
    ('0.432', '−12346', '0.2', '0.99968')
    >>> score_text(0.5003), score_text(0.5003, is_place=True), score_text(0.5, is_place=True)
    ('0.5', '0.5003', '0.5')
    """
    if score == 0 or not 1e-9 < abs(score) < 1e15:
        return f"{score:.3g}".replace("-", MINUS)
    decimals = 2 - math.floor(math.log10(abs(score)))
    if span > 0:
        decimals = max(decimals, math.ceil(2 - math.log10(span)))
    texts = [f"{score:.{max(0, decimals) + more}f}" for more in range(4 if is_place else 1)]
    text = next((text for text in texts if not text.endswith("0")), texts[0])
    return _trimmed(text)


def cutoff_text(score: float, span: float = 0.0) -> str:
    """The cutoff that only the scores above this score reach, after "a cutoff".

    Scores at a cutoff reach it. So the cutoff lies above the score, which the digits show only
    where the score has more of them.

    >>> cutoff_text(0.43217), cutoff_text(7.0)
    ('of 0.432', 'just above 7')
    """
    text = score_text(score, span, is_place=True)
    is_exact = math.isclose(float(text.replace(MINUS, "-")), score, rel_tol=_SINGLE_PRECISION)
    return f"just above {text}" if is_exact else f"of {text}"


def points_text(gap: float) -> str:
    """A difference of shares in percentage points.

    >>> points_text(0.21)
    '21.0 points'
    """
    return f"{percent_text(gap).rstrip('%')} points"


def confidence_text(confidence: float) -> str:
    """A confidence in percent, without needless digits.

    >>> confidence_text(0.95), confidence_text(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * confidence:.6g}%"


def count_text(number: int, noun: str) -> str:
    """A number of things.

    >>> count_text(1, "row"), count_text(1234, "row")
    ('1 row', '1,234 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def part_text(part: int, whole: int, nouns: str) -> str:
    """How many of several things, as the subject of a sentence.

    >>> part_text(2, 3, "gaps"), part_text(3, 3, "gaps"), part_text(2, 2, "gaps")
    ('2 of the 3 gaps', 'All 3 gaps', 'Both gaps')
    """
    if part < whole or whole == 1:
        return f"{part:,} of the {whole:,} {nouns}"
    return f"Both {nouns}" if whole == 2 else f"All {whole:,} {nouns}"


def quoted(name: str) -> str:
    """A group's name in quotation marks."""
    return f"“{name}”"


def name_text(name: str) -> str:
    """A group's name in a table, in quotation marks if it begins or ends with white space, which
    would be invisible.

    >>> name_text("Male"), name_text("Male ")
    ('Male', '“Male ”')
    """
    return name if name == name.strip() else quoted(name)


def positive_text(labels: Sequence[object], positive: int) -> str:
    """Which of two labels is positive by default; empty if their words show it.

    >>> positive_text(["approved", "denied"], 1)
    "'denied' counts as positive (alphabetical default); name another positive label to change it."
    >>> positive_text(["No", "Yes"], 1)
    ''
    """
    if is_evident_positive(labels, positive):
        return ""
    counts = positive_sentence(labels, labels[positive])
    return f"{counts}; name another positive label to change it."


def noun(label: str) -> str:
    """A label in the middle of a sentence: its capital goes, unless it is an abbreviation or a name
    of the user's.

    >>> noun("Unfairness of decisions"), noun("AUC"), noun("<b>")
    ('unfairness of decisions', 'AUC', '<b>')
    """
    return label[0].lower() + label[1:] if label[:1].isupper() and label[1:2].islower() else label
