"""One published file: its name, its content's fingerprint, and where it can be had."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RawFile:
    """A file exactly as its source publishes it.

    Parameters
    ----------
    name
        Name of the file in the folders that are searched (``name + ".gz"`` is looked for as well).
    size
        Bytes of the uncompressed content.
    sha256
        Hexadecimal digest of the uncompressed content.
    url
        Published address, of the file itself or of a zip archive that holds it.
    member
        Way into that archive: names of the archives inside it, outermost first, then of the file.

    Examples
    --------
    >>> grades = RawFile("a.csv", 3, "ab12", "https://example.org/all.zip", member=("inner.zip", "a.csv"))
    >>> grades.address
    'https://example.org/all.zip (in it: inner.zip, a.csv)'
    """

    name: str
    size: int
    sha256: str
    url: str
    member: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The address as a person needs it to fetch the file by hand."""
        return f"{self.url} (in it: {', '.join(self.member)})" if self.member else self.url
