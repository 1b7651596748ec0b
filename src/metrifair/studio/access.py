"""Who may use the studio: addresses and tickets that work once, and the key that one tab of the
page keeps.

An address ends with a token, which the page exchanges for the key of the studio. The page keeps the
key in its ``sessionStorage``, which other ports of this machine and other users cannot read, and
sends it as a header. There is no cookie: browsers send cookies to every port of a host. The browser
of this machine is started with the path of a private file that redirects to an address, since other
users can read the arguments of a process.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import NamedTuple

_BYTES = 32  # of a key, a token or a ticket
_MOST_TICKETS = 10_000  # a tab that is open for days needs more


class Ticket(NamedTuple):
    """The file that a ticket opens: a step, the number of its result, and the file's name."""

    step: str
    number: int
    name: str


def make_token() -> str:
    """A random text for addresses that nobody can guess."""
    return secrets.token_urlsafe(_BYTES)


class Access:
    """The key of a running studio, the tokens that were not used yet, and the tickets of
    results.
    """

    def __init__(self) -> None:
        self._key = make_token()
        self._on_use: dict[str, Callable[[], None]] = {}  # by token: what follows its use
        self._tickets: dict[str, Ticket] = {}

    def new_token(self, on_use: Callable[[], None]) -> str:
        """A token for one tab; ``on_use`` is called when it is exchanged."""
        token = make_token()
        self._on_use[token] = on_use
        return token

    def exchange(self, token: str) -> str | None:
        """The key for a token that was not used yet; None for others.

        >>> used = []
        >>> access = Access()
        >>> token = access.new_token(lambda: used.append("first"))
        >>> access.is_key(access.exchange(token)), access.exchange(token), used
        (True, None, ['first'])
        """
        on_use = self._on_use.pop(token, None)
        if on_use is None:
            return None
        on_use()
        return self._key

    def is_key(self, text: str | None) -> bool:
        """Whether a request has the key."""
        return hmac.compare_digest((text or "").encode(), self._key.encode())

    def new_ticket(self, ticket: Ticket) -> str:
        """A text that opens one file once: frames and downloads send no header."""
        while len(self._tickets) >= _MOST_TICKETS:
            del self._tickets[next(iter(self._tickets))]  # the oldest
        text = make_token()
        self._tickets[text] = ticket
        return text

    def use_ticket(self, text: str) -> Ticket | None:
        """The file of a ticket, which is used up then; None for others."""
        return self._tickets.pop(text, None)


def write_redirect(path: Path, address: str) -> None:
    """Write a page that opens an address; only the user who runs the studio can read it."""
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="referrer" '
        'content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={escape(address)}"><title>metrifair '
        "studio</title></head>"
        "<body><p>The studio opens.</p></body></html>\n"
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(page)
