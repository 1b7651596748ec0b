"""What tests of all rooms share: expected errors whose messages are approved."""

from __future__ import annotations

import pytest

from tests.expected_errors import Refusals


@pytest.fixture
def refused(request: pytest.FixtureRequest) -> Refusals:
    """Expect errors whose messages are approved: ``with refused(DataError): ...``."""
    return Refusals(request.function.__name__)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make approve` runs."""
    for item in items:
        if "refused" in getattr(item, "fixturenames", ()):
            item.add_marker("refusal")
