"""Results that are printed as text and written as pages: what their classes share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

from metrifair import report
from metrifair.support.files import write_json


class Summarized:
    """A result with a summary, which ``print`` shows."""

    @property
    def summary(self) -> str:
        """The answer first, then caveats, one statement per line."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.summary

    def __repr__(self) -> str:
        return self.summary


class PrintedPage(Summarized):
    """A result whose page can be printed."""

    to_html: Callable[..., None]

    def to_pdf(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the page of ``to_html`` as a PDF file, printed by Chromium or Google Chrome without
        a network.

        Parameters
        ----------
        path : str or path-like
            The file.
        **options : object
            Further options, as in ``to_html``.

        Raises
        ------
        MissingBrowser
            If neither browser is installed.
        DataError
            If nothing can be written there.
        """
        report.print_pdf(partial(self.to_html, **options), path)


class ComparedAudits(PrintedPage):
    """Base of a comparison and of a series of audits: sentences, JSON text and a page."""

    kind: ClassVar[str]
    record: Any

    def _sentences(self) -> Sequence[str]:
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """The result in sentences, the most important first, one per line."""
        return "\n".join(self._sentences())

    def _page(self, title: str | None = None, about: Mapping[str, str] | None = None) -> str:
        raise NotImplementedError

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The result as JSON text: ``kind``, ``version``, ``summary`` and all values.

        Parameters
        ----------
        path : str or path-like, default=None
            The file, if the text is to be written too.

        Returns
        -------
        str
            The text.
        """
        content = {
            "kind": f"metrifair {self.kind}",
            "version": 1,
            "summary": self._sentences(),
            **asdict(self.record),
        }
        return write_json(content, path)

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write the result as one page.

        Parameters
        ----------
        path : str or path-like
            The file.
        title : str, default=None
            Title of the page; by default "Audits compared" or "Audits over time".
        about : dict of str, default=None
            Metadata shown in the report, such as the reason of the comparison.
        """
        report.write_html(path, self._page(title, about))

    def _repr_html_(self) -> str:
        return report.framed(self._page(), height=640, title=f"A {self.kind} of audits")
