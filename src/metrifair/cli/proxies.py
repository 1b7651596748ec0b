"""Options of probabilities in place of groups, as commands take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click


class Proxy(NamedTuple):
    """What probabilities of groups change: which columns the groups are, and what takes their place."""

    columns: Mapping[str, Any] = {}
    arguments: Mapping[str, Any] = {}


def probabilities_asked(asked: dict[str, Any]) -> Proxy:
    """The options of probabilities in place of groups, which are taken out of ``asked``; a command may lack some."""
    given = asked.pop("group_probabilities")
    others = {"known_groups": "known_group", "cells": "proxy_cells", "with_labels": "proxy_labels"}
    further = {argument: asked.pop(option, None) for argument, option in others.items()}
    if given is None:
        for option, value in zip(others.values(), further.values(), strict=True):
            if value is not None:
                raise click.UsageError(f"--{option.replace('_', '-')} needs --group-probabilities")
        if not asked["group"]:
            raise click.UsageError("Missing option '--group', or '--group-probabilities'.")
        return Proxy()
    if asked["group"]:
        raise click.UsageError("--group and --group-probabilities cannot be combined; use one of them")
    from metrifair.problem.proxies import GroupProbabilities, proxy_columns

    attribute, columns = given
    found = GroupProbabilities(columns, attribute=attribute, **further)
    return Proxy({"group": proxy_columns(found)}, {"group": found})
