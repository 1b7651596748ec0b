"""Quantiles against SciPy, closed forms, and integrals of many digits."""

from __future__ import annotations

from itertools import product
from math import pi, sqrt, tan

import mpmath
import numpy as np
import pytest
from scipy import special

from tests.seams.support import beta_quantile, normal_cdf, normal_quantile, student_quantile

SHARES = [
    1e-12,
    1e-6,
    0.001,
    0.005,
    0.025,
    0.05,
    0.3,
    0.5,
    0.7,
    0.95,
    0.975,
    0.995,
    0.999,
    1 - 1e-6,
    1 - 1e-12,
]
COUNTS = [0.5, 0.7, 1.0, 1.5, 2.5, 10.5, 100.5, 999.5, 12345.5, 1e5]
LARGE = [
    (0.5, 1e8),
    (1e8 + 0.5, 0.5),
    (1000.0, 1e8 + 0.5),
    (1e8 + 0.5, 1000.0),
    (3e8, 1e8),
    (1e6 + 0.5, 1e6 + 0.5),
]
FREEDOMS = [1.0, 1.3, 2.0, 2.5, 3.0, 5.0, 10.0, 33.3, 100.0, 1e4, 1e6, 1e9]


@pytest.mark.parametrize("share", [1e-300, 1e-16, *SHARES])
def test_normal_quantiles_are_those_of_scipy(share: float) -> None:
    assert normal_quantile(share) == pytest.approx(special.ndtri(share), rel=1e-13, abs=1e-300)


def test_the_ends_of_distributions_on_the_line_are_infinite() -> None:
    assert (normal_quantile(0.0), normal_quantile(1.0)) == (-np.inf, np.inf)
    assert (student_quantile(3.0, 0.0), student_quantile(3.0, 0.5), student_quantile(3.0, 1.0)) == (
        -np.inf,
        0,
        np.inf,
    )


def test_normal_shares_are_those_of_scipy() -> None:
    x = np.append(np.linspace(-37, 9, 2001), [-np.inf, np.inf])
    np.testing.assert_allclose(normal_cdf(x), special.ndtr(x), rtol=1e-12, atol=0)
    assert normal_cdf(0.0) == 0.5


@pytest.mark.parametrize("share", [1e-100, 1e-30, *SHARES])
def test_beta_quantiles_are_those_of_scipy(share: float) -> None:
    a, b = np.array(list(product(COUNTS, COUNTS))).T
    np.testing.assert_allclose(
        beta_quantile(a, b, share), special.betaincinv(a, b, share), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize(("a", "b"), LARGE)
@pytest.mark.parametrize("share", [1e-12, 0.005, 0.975, 1 - 1e-6])
def test_beta_quantiles_of_large_counts_have_the_share_below_them(
    a: float, b: float, share: float
) -> None:
    # SciPy's own are off by up to 2e-3 here.
    with mpmath.workdps(40):
        x = mpmath.mpf(float(beta_quantile(a, b, share)))
        log_constant = mpmath.loggamma(a + b) - mpmath.loggamma(a) - mpmath.loggamma(b)

        def density(at: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(log_constant + (a - 1) * mpmath.log(at) + (b - 1) * mpmath.log1p(-at))

        if min(a, b) > 100:
            deviation = mpmath.sqrt(mpmath.mpf(a) * b / (a + b + 1)) / (a + b)
            below = mpmath.quad(density, mpmath.linspace(x - 20 * deviation, x, 21))
        elif a < b:
            below = mpmath.betainc(a, b, 0, x, regularized=True)
        else:
            below = 1 - mpmath.betainc(b, a, 0, 1 - x, regularized=True)
        # near 1, neighboring doubles are this far apart
        rounding = mpmath.mpf(np.spacing(float(x))) / x
        assert abs((below - mpmath.mpf(share)) / density(x) / x) < 1e-12 + rounding


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("share", [share for share in [*SHARES, 0.51, 0.9, 0.99] if share != 0.5])
def test_student_quantiles_are_those_of_scipy(freedom: float, share: float) -> None:
    assert student_quantile(freedom, share) == pytest.approx(
        special.stdtrit(freedom, share), rel=1e-12
    )


@pytest.mark.parametrize("share", [1e-12, 0.001, 0.3, 0.5 + 1e-7, 0.7, 0.975, 1 - 1e-6])
def test_student_quantiles_of_one_and_two_degrees_are_the_formulas(share: float) -> None:
    beyond = min(share, 1 - share)
    size = 1 / tan(pi * beyond) if beyond < 0.25 else tan(pi * (0.5 - beyond))
    assert abs(student_quantile(1.0, share)) == pytest.approx(size, rel=1e-12)
    both = 4 * beyond * (1 - beyond)
    assert student_quantile(2.0, share) == pytest.approx(
        (2 * share - 1) * sqrt(2 / both), rel=1e-12
    )
