"""Batches for tests that compare a device with the CPU."""

import pytest

from tests.seams.batches import samples


@pytest.fixture(autouse=True)
def same_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the batches of a device on the host, as for the CPU."""
    monkeypatch.setattr(samples, "DevicePasses", samples.StratifiedPasses)
