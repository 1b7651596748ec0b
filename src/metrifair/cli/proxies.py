"""Options of probabilities in place of groups, as commands take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click


class Proxy(NamedTuple):
    """Group probabilities: the columns that they are in, and the arguments that replace groups."""

    columns: Mapping[str, Any] = {}
    arguments: Mapping[str, Any] = {}


def take_probabilities(arguments: dict[str, Any]) -> Proxy:
    """The options of probabilities in place of groups, which are removed from ``arguments``;
    some may be missing.
    """
    probabilities = arguments.pop("group_probabilities")
    option_names = {
        "known_groups": "known_group",
        "cells": "proxy_cells",
        "with_labels": "proxy_labels",
    }
    settings = {argument: arguments.pop(option, None) for argument, option in option_names.items()}
    if probabilities is None:
        for option, value in zip(option_names.values(), settings.values(), strict=True):
            if value is not None:
                raise click.UsageError(f"--{option.replace('_', '-')} needs --group-probabilities")
        if not arguments["group"]:
            raise click.UsageError("Missing option '--group', or '--group-probabilities'.")
        return Proxy()
    if arguments["group"]:
        raise click.UsageError(
            "--group and --group-probabilities cannot be combined; use one of them"
        )
    from metrifair.problem.memberships import GroupProbabilities, proxy_columns

    attribute, columns = probabilities
    proxy = GroupProbabilities(columns, attribute=attribute, **settings)
    return Proxy({"group": proxy_columns(proxy)}, {"group": proxy})
