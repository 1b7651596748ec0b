"""Hiring decisions as they come: text, pending cases, missing categories, one person of a kind."""

from __future__ import annotations

import csv
from pathlib import Path

SELECTED = {  # of each race/ethnicity: men, advanced men, women, advanced women
    "White": (190, 97, 180, 83),
    "Black or African American": (90, 38, 95, 32),
    "Hispanic or Latino": (85, 38, 80, 32),
    "Asian": (60, 33, 58, 31),
    "Two or More Races": (20, 10, 19, 9),
    "Native Hawaiian or Pacific Islander": (1, 1, 0, 0),  # one single person, and advanced
}
PENDING, UNKNOWN = 14, 6  # people whose case is open; advanced people who did not answer


def write_decisions(path: Path) -> Path:
    """A csv file with the columns Id, Sex, Race and Decision."""
    people = []
    for race, (men, chosen_men, women, chosen_women) in SELECTED.items():
        for sex, number, chosen in (("Male", men, chosen_men), ("Female", women, chosen_women)):
            people += [
                (sex, race, "Advanced" if at < chosen else "Rejected") for at in range(number)
            ]
    people += [("Male", "White", "Pending")] * PENDING + [("", "", "Advanced")] * UNKNOWN
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Id", "Sex", "Race", "Decision"])
        table.writerows([at, *one] for at, one in enumerate(people, 1))
    return path


def rate(races: set[str], sexes: set[str]) -> float:
    """The selection rate by hand."""
    rows = chosen = 0
    for race, (men, chosen_men, women, chosen_women) in SELECTED.items():
        if race in races:
            rows += men * ("Male" in sexes) + women * ("Female" in sexes)
            chosen += chosen_men * ("Male" in sexes) + chosen_women * ("Female" in sexes)
    return chosen / rows
