"""Where a public scheme or standard was read, and what was not read of it."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """The header of a scheme: its document, its status, and what its items rest on."""

    document: str  # the scheme itself: document and section
    version: str
    status: str  # whether it is in force, a draft, voluntary
    source: str  # where its items were read
    date: str  # when the source was read
    limits: str  # what of the document was not read, and which items are secondhand

    @property
    def sentences(self) -> list[str]:
        """The header as sentences.

        >>> Source("Act 1", "of 2020", "in force", "a reprint", "2026-11-19", "Not read: 2.").sentences
        ['Document: Act 1.', 'Version: of 2020. Status: in force.', 'Read on 2026-11-19: a reprint.', 'Not read: 2.']
        """
        return [
            f"Document: {self.document}.",
            f"Version: {self.version}. Status: {self.status}.",
            f"Read on {self.date}: {self.source}.",
            self.limits,
        ]
