"""An exact test of differences that are as likely with either sign."""

from __future__ import annotations

from math import sqrt

import numpy as np

from metrifair.support.arrays import Floats
from metrifair.support.special import normal_probability

_TAIL = 1 / (4 * normal_probability(-sqrt(2)))  # about 3.178


def sign_flip_p_value(differences: Floats) -> float:
    """The two-sided p-value of a sum of independent differences, each of which is as likely with
    either sign.

    Given their sizes, only the signs are random. The probability that the sum is at least x times
    the root of the sum of squares is at most c P(Z >= x), with Z standard normal and c = 1 / (4 P(Z
    >= sqrt(2))): Bentkus and Dzindzalieta, "A tight Gaussian bound for weighted sums of Rademacher
    random variables", Bernoulli 21, 2015. So the p-value is valid for any number of differences and
    any distribution. It is not an approximation.

    >>> sign_flip_p_value(np.array([1.0, -1.0])), round(sign_flip_p_value(np.ones(20)), 6)
    (1.0, 2.5e-05)
    """
    length = float(np.linalg.norm(differences))
    if length == 0:
        return 1.0
    return min(1.0, 2 * _TAIL * normal_probability(-abs(float(differences.sum())) / length))
