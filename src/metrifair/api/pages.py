"""Results that are printed as text and written as pages: what their classes share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

from metrifair import report
from metrifair.api.audit_tables import result_fields
from metrifair.errors import DataError
from metrifair.support.files import file_path, write_json
from metrifair.support.provenance import Provenance


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


class ResultPage(Summarized):
    """Base of results with a page: its title, its origin, and where it is written or shown.

    A subclass names its default title, has ``_origin``, and makes the page in ``_document``.
    """

    _in_notebooks: ClassVar[Mapping[str, Any]] = {}  # options that shorten a page
    _height: ClassVar[int] = 640  # of the frame in a notebook

    @property
    def page_title(self) -> str:
        """The title of a page without another one."""
        raise NotImplementedError(f"{type(self).__name__} must define page_title")

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write the result as one page, which needs nothing but a browser.

        Parameters
        ----------
        path : str or path-like
            The file, written in one step.
        title : str, default=None
            Title of the page. None: that of the result's provenance, or a usual one.
        about : dict of str, default=None
            Metadata shown in the report, such as the date and the source of the data.

        Raises
        ------
        DataError
            If nothing can be written there.
        """
        self._write_page(path, title, about)

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
        _refuse_ending(path, (".html", ".htm"), what="a web page", method="to_html")
        report.print_pdf(partial(self.to_html, **options), path)

    def _repr_html_(self) -> str:
        """The page, shortened, in its own frame: no style leaves it."""
        page = self._page(**self._in_notebooks)
        return report.framed(page, height=self._height, title=self.page_title)

    def _write_page(
        self,
        path: str | os.PathLike[str],
        title: str | None,
        about: Mapping[str, str] | None,
        **options: Any,
    ) -> None:
        _refuse_ending(path, (".pdf",), what="a PDF file", method="to_pdf")
        report.write_html(path, self._page(title, about, **options))

    def _page(
        self, title: str | None = None, about: Mapping[str, str] | None = None, **options: Any
    ) -> str:
        """The text of the page."""
        origin = self._origin.described(title, about)
        return self._document(origin, origin.title or self.page_title, **options)

    @property
    def _origin(self) -> Provenance:
        """Where the figures come from."""
        raise NotImplementedError

    def _document(self, origin: Provenance, title: str, **options: Any) -> str:
        """The text of the page with this origin and title."""
        raise NotImplementedError


def _refuse_ending(path: object, endings: Sequence[str], *, what: str, method: str) -> None:
    """Raise a DataError for a path that ends like a file of another method."""
    name = file_path(path).name
    if name.lower().endswith(tuple(endings)):
        raise DataError(
            f"is the name of {what}", argument="path", received=name, remedy=f"use {method}"
        )


class RecordedPage(ResultPage):
    """Base of results that are one record, whose fields JSON text has."""

    kind: ClassVar[str]
    record: Any

    def _sentences(self) -> Sequence[str]:
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """The result in sentences, the most important first, one per line."""
        return "\n".join(self._sentences())

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
        fields = result_fields(self.kind, self._sentences(), **self._fields())
        return write_json(fields, path)

    def _fields(self) -> dict[str, Any]:
        return asdict(self.record)
