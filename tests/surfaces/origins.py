"""What differs between two runs on two machines is no part of an approved text."""

from __future__ import annotations

import re

import metrifair

ORIGIN = {
    r"metrifair \d[^|<]{1,150}?numpy [\d.]+": "VERSIONS",
    re.escape(metrifair.__version__): "VERSION",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC": "TIME",
    r"(?<=PLATFORM\n)  .+": "  THIS MACHINE",
    r"\b[0-9a-f]{64}\b": "SHA256",
    r"[\d,]+(?= figures of \w+\.json)": "ALL",
}


def without_origin(text: str) -> str:
    """A text without versions, time, machine and hashes.

    >>> without_origin("metrifair 1.0, Python 3.11.7, numpy 2.4.1 at 2026-01-02 03:04:05 UTC")
    'VERSIONS at TIME'
    """
    for pattern, fixed in ORIGIN.items():
        text = re.sub(pattern, fixed, text)
    return text


def without_figures(text: str) -> str:
    """A text with # for each number, and one space for several, as numbers differ in length.

    Training computes other last digits on other processors.

    >>> without_figures("AUC  0.913 (−0.01, 1e-05) of 1,200 rows")
    'AUC # (#, #) of # rows'
    """
    numbers = re.sub(r"(?<![\w#])[-−]?\d(?:[\d,.]*\d)?(?:e[-+]?\d+)?", "#", text)
    return re.sub(r"(?<=\S) {2,}", " ", numbers)
