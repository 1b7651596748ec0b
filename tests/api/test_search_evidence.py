"""Evidence of a search for a less discriminatory alternative: written, verified, forged."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metrifair import AuditState, FairClassifier, Frontier, audit, frontier, load
from metrifair.errors import DataError
from metrifair.evidence import verify
from tests.expected_errors import Refusals
from tests.frontier_parts import source_of
from tests.seams.api import SearchManifest, derived_search_files, read_scorings, search_figures
from tests.seams.auditing import (
    decoded,
    file_hashes,
    read_files,
    read_parts,
    record_bytes,
    state_content,
    write_files,
)
from tests.seams.saving import from_bytes, to_bytes
from tests.seams.tradeoff import SearchFacts, SearchFigures, pareto

REASON = "The best model within the limit of the policy."
STRENGTHS = [0, 0.3, 1, 3, 10]


def people(
    rows: int = 1500, seed: int = 0, shift: float = 0.7
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], rows)
    X = rng.normal(size=(rows, 3)) + shift * (sex == "m")[:, None]
    y = (X.sum(1) + rng.normal(size=rows) > 1.0).astype(int)
    return X, y, sex


def search(groups: Any, X: Any, y: Any, **options: Any) -> Frontier:
    return frontier(
        FairClassifier(model="linear"),
        X,
        y,
        sensitive_features=groups,
        random_state=0,
        **{"strengths": STRENGTHS, **options},
    )


@pytest.fixture(scope="module")
def front() -> Frontier:
    X, y, sex = people()
    made = search({"sex": sex}, X, y)
    made.select(max_unfairness=0.3)
    return made


@pytest.fixture(scope="module")
def folder(front: Frontier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search")
    front.to_evidence(path / "evidence", reason=REASON, scores=path / "scores.csv")
    return path


def sealed(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files with a manifest that lists their hashes, as a forger would write it."""
    manifest = json.loads(files["MANIFEST.json"])
    manifest["files"] = file_hashes(files)
    return files | {"MANIFEST.json": json.dumps(manifest).encode()}


def facts_in(path: Path) -> SearchFacts:
    facts: SearchFacts = decoded((path / "search.json").read_bytes(), SearchFacts)
    return facts


def figures_in(path: Path) -> SearchFigures:
    figures: SearchFigures = decoded((path / "figures.json").read_bytes(), SearchFigures)
    return figures


def is_inside(value: float, figure: Any) -> bool:
    return figure.low - 1e-9 <= value <= figure.high + 1e-9


def test_a_search_is_written_and_verified(front: Frontier, folder: Path) -> None:
    evidence = folder / "evidence"
    found = verify(evidence, scores=folder / "scores.csv")
    assert found.agrees is True, str(found)
    kinds = {check.kind for check in found.checks}
    assert {"choice", "front", "search_figures", "scores_recount", "scores_facts"} <= kinds
    assert not list(evidence.glob("**/scores*"))
    readme = (evidence / "README.txt").read_text()
    assert REASON in readme
    assert "Limit: unfairness at most 0.3." in readme
    assert front.chosen is not None
    chosen = facts_in(evidence).chosen_configuration
    assert chosen.value == front.chosen.strength


def test_every_figure_of_the_search_lies_within_its_bounds(front: Frontier, folder: Path) -> None:
    figures = figures_in(folder / "evidence")
    assert len(figures.configurations) == len(front.points) == len(STRENGTHS)
    for found, point in zip(figures.configurations, front.points, strict=True):
        assert is_inside(point.unfairness, found.unfairness)
        assert is_inside(point.more["auc"], found.utility)
        assert found.unfairness.high - found.unfairness.low < 0.12
        assert abs(found.utility.value - point.more["auc"]) < 0.003
    on_front = {item.number for item in figures.configurations if item.on_front}
    expected = {
        1 + front.points.index(point)
        for point in pareto(front.points, quality=lambda p: p.more["auc"])
    }
    assert on_front == expected


def test_the_expected_figures_are_those_of_the_choice(front: Frontier, folder: Path) -> None:
    expected = facts_in(folder / "evidence").expected
    assert front.chosen is not None
    assert expected.unfairness == pytest.approx(front.chosen.unfairness, rel=1e-3)
    assert expected.utility == pytest.approx(front.chosen.more["auc"], rel=1e-3)
    interval = front.chosen.intervals["unfairness"]
    assert expected.unfairness_low == pytest.approx(interval.low, rel=1e-3)


@pytest.mark.parametrize("unfairness_of", ["scores", "decisions"])
@pytest.mark.parametrize("utility", ["accuracy", "balanced_accuracy", "auc", "brier", "log_loss"])
def test_utilities_and_decisions_lie_within_their_bounds(
    utility: str, unfairness_of: Any, tmp_path: Path, refused: Refusals
) -> None:
    X, y, sex = people(700, seed=3)
    made = search({"sex": sex}, X, y, utility=utility, unfairness_of=unfairness_of)
    made.select(max_unfairness=0.4, best_effort=True)
    if unfairness_of == "decisions" and utility not in ("accuracy", "balanced_accuracy"):
        with refused(DataError):
            made.to_evidence(tmp_path / "evidence", reason=REASON)
        return
    made.to_evidence(
        tmp_path / "evidence", reason=REASON, min_cell=5, scores=tmp_path / "scores.csv"
    )
    for found, point in zip(
        figures_in(tmp_path / "evidence").configurations, made.points, strict=True
    ):
        assert is_inside(point.gap(unfairness_of), found.unfairness)
        value = point.figure(utility)
        assert value is not None
        assert is_inside(value, found.utility)
    found = verify(tmp_path / "evidence", scores=tmp_path / "scores.csv")
    assert found.agrees is True, str(found)


@pytest.mark.parametrize("limit", [0.07, 0.09])
def test_a_gap_below_chance_and_an_allowance_that_is_cut_are_verified(
    limit: float, tmp_path: Path
) -> None:
    """The chooser compares signed squares, and leaves the fairest of them within the limit."""
    X, y, sex = people(300, seed=3, shift=0.3)
    strengths = [0, 0.1, 0.3, 1, 2, 3, 10]
    made = search(
        {"sex": sex}, X, y, unfairness_of="decisions", utility="accuracy", strengths=strengths
    )
    made.select(max_unfairness=limit)
    made.to_evidence(tmp_path / "evidence", reason=REASON, scores=tmp_path / "scores.csv")
    assert facts_in(tmp_path / "evidence").allowance > 0
    found = verify(tmp_path / "evidence", scores=tmp_path / "scores.csv")
    assert found.agrees is True, str(found)


@pytest.mark.parametrize(
    ("values", "few", "least"),
    [
        (["1", "2"], None, 1),  # as the folds and the labels are, but text
        (["True", "False"], None, 1),
        ([7, 8], 9, 10),  # a number that only a comparison names
    ],
)
def test_values_are_those_of_their_own_column(
    values: list[Any], few: Any, least: int, tmp_path: Path
) -> None:
    X, y, sex = people(700, seed=1)
    race = np.where(sex == "f", *values)
    if few is not None:
        race[:30] = few
    made = search({"race": race}, X, y == 1)
    made.select(max_unfairness=0.9)
    made.to_evidence(
        tmp_path / "evidence", reason=REASON, scores=tmp_path / "scores.csv", min_cell=least
    )
    found = verify(tmp_path / "evidence", scores=tmp_path / "scores.csv")
    assert found.agrees is True, str(found)


def test_strata_keep_their_names_and_their_order(tmp_path: Path) -> None:
    X, y, sex = people(900, seed=1)
    size = np.random.default_rng(2).choice([2, 10], 900)
    made = search(
        {"sex": sex}, X, y, control_features={"size": size}, criterion="statistical_parity"
    )
    made.select(max_unfairness=0.9)
    made.to_evidence(tmp_path / "evidence", reason=REASON, scores=tmp_path / "scores.csv")
    named = [item.within for item in facts_in(tmp_path / "evidence").comparisons]
    assert named == ["size=2", "size=10"]
    found = verify(tmp_path / "evidence", scores=tmp_path / "scores.csv")
    assert found.agrees is True, str(found)


def test_a_least_accuracy_and_several_attributes(tmp_path: Path) -> None:
    X, y, sex = people(1200, seed=5)
    region = np.random.default_rng(1).choice(["n", "s"], 1200)
    made = search({"sex": sex, "region": region}, X, y)
    made.select(min_accuracy=0.6)
    made.to_evidence(tmp_path / "evidence", reason=REASON, scores=tmp_path / "scores.csv")
    found = verify(tmp_path / "evidence", scores=tmp_path / "scores.csv")
    assert found.agrees is True, str(found)
    assert (tmp_path / "evidence" / "counts" / "1-2.state").exists()
    for figures, point in zip(
        figures_in(tmp_path / "evidence").configurations, made.points, strict=True
    ):
        assert is_inside(point.unfairness, figures.unfairness)
        assert figures.accuracy is not None
        assert is_inside(point.accuracy, figures.accuracy)


def numbers(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all numbers in JSON content."""
    if isinstance(node, bool) or node is None or isinstance(node, str):
        return []
    if isinstance(node, int | float):
        return [path]
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    return [place for key, value in pairs for place in numbers(value, (*path, key))]


def changed(content: Any, place: tuple[Any, ...], rng: np.random.Generator) -> Any:
    """The content with another number at a place."""
    content = json.loads(json.dumps(content))
    node = content
    for step in place[:-1]:
        node = node[step]
    value = node[place[-1]]
    if isinstance(value, int):
        node[place[-1]] = value + int(rng.integers(1, 4))
    else:
        node[place[-1]] = value + float(rng.choice([0.01, -0.01])) * max(abs(value), 0.1)
    return content


def test_every_changed_number_of_200_is_noticed(tmp_path: Path) -> None:
    """The manifest lists the hash of the changed file: only its meaning can show the change."""
    X, y, sex = people(600)
    small = search({"sex": sex}, X, y)
    small.select(max_unfairness=0.3, confidence=0.6, best_effort=True)
    small.to_evidence(tmp_path / "evidence", reason=REASON, min_cell=3)
    files = read_files(tmp_path / "evidence")
    rng = np.random.default_rng(0)
    places = [
        (name, place)
        for name in ("search.json", "figures.json", "MANIFEST.json")
        for place in numbers(json.loads(files[name]))
        if place != ("version",)
    ]
    assert len(places) > 300
    chosen = rng.choice(len(places), 160, replace=False)
    missed = []
    for name, place in [places[at] for at in chosen]:
        content = changed(json.loads(files[name]), place, rng)
        forged = sealed(files | {name: json.dumps(content).encode()})
        target = tmp_path / "forged.zip"
        write_files(target, forged)
        if verify(target).agrees is not False:
            missed.append((name, place))
    for at in range(40):
        forged = sealed(with_another_count(files, rng, at))
        write_files(target, forged)
        if verify(target).agrees is not False:
            missed.append(("counts", at))
    assert missed == []


def with_another_count(
    files: dict[str, bytes], rng: np.random.Generator, at: int
) -> dict[str, bytes]:
    """The files with one row moved from one count to another, or added."""
    names = sorted(name for name in files if name.startswith("counts/"))
    name = names[at % len(names)]
    parts = read_parts(from_bytes(files[name]))
    assert parts.counts is not None
    rows = parts.counts.rows
    rows.setflags(write=True)
    same_cell = parts.counts.cell[:-1] == parts.counts.cell[1:]
    place = int(rng.choice(np.flatnonzero(same_cell & (rows[:-1] > 1))))
    rows[place + 1] += 1
    if at % 2:
        rows[place] -= 1
    return files | {name: to_bytes(state_content(parts))}


def with_pages(files: dict[str, bytes], content: dict[str, Any]) -> dict[str, bytes]:
    """The files of other facts, with figures and pages that follow from them."""
    facts: SearchFacts = decoded(json.dumps(content).encode(), SearchFacts)
    manifest: SearchManifest = decoded(files["MANIFEST.json"], SearchManifest)
    scorings = read_scorings(files, facts, manifest)
    figures = search_figures(facts, scorings)
    forged = files | {"search.json": record_bytes(facts), "figures.json": record_bytes(figures)}
    return forged | derived_search_files(facts, figures, manifest, scorings)


def excluding(content: dict[str, Any], kept: set[int], why: str) -> dict[str, Any]:
    """Facts by which all other configurations could not be chosen."""
    configurations = [
        item if item["number"] in kept else item | {"excluded": why}
        for item in content["configurations"]
    ]
    return content | {"configurations": configurations, "chosen": min(kept)}


def test_facts_that_contradict_each_other_are_noticed(folder: Path, tmp_path: Path) -> None:
    """A folder alone shows them, though all pages and figures follow from the facts."""
    files = read_files(folder / "evidence")
    content = json.loads(files["search.json"])
    count = len(content["configurations"])
    uneven = [[0.0] * count for _ in range(count)]
    uneven[0][1] = 1.0
    forgeries = {
        "configurations[0].excluded": excluding(content, {5}, "needs_group"),
        "configurations[1].excluded": excluding(content, {1, 5}, "no_utility"),
        "larger_is_better": content | {"larger_is_better": False, "chosen": 5},
        "folds": content | {"folds": 50},
        "met": content | {"met": False, "chosen": 5, "allowance": 0.0},
        "errors_of_differences": content | {"errors_of_differences": uneven},
        "allowance": content | {"met": False, "chosen": 5},
        "configurations[4].scores": content
        | {
            "configurations": [
                *content["configurations"][:4],
                content["configurations"][4] | {"scores": "decisions"},
            ]
        },
    }
    for number, (place, forgery) in enumerate(forgeries.items()):
        target = tmp_path / f"{number}.zip"
        write_files(target, sealed(with_pages(files, forgery)))
        found = verify(target)
        (check,) = (item for item in found.checks if item.kind == "search_facts")
        assert check.outcome == "differs"
        assert place in check.facts["contradictory"]
        assert found.agrees is False


def test_configurations_that_were_passed_over_are_stated(folder: Path, tmp_path: Path) -> None:
    """That a model of all rows is unlike those of the folds cannot be recomputed."""
    files = read_files(folder / "evidence")
    content = excluding(json.loads(files["search.json"]), {5}, "unlike_folds")
    target = tmp_path / "passed.zip"
    forged = with_pages(files, content)
    write_files(target, sealed(forged))
    assert "4 configurations passed over" in " ".join(forged["README.txt"].decode().split())
    text = " ".join(str(verify(target)).split())
    assert "unlike those of the folds (4)" in text


def test_a_utility_that_scores_determine_excludes_nothing(folder: Path, tmp_path: Path) -> None:
    files = read_files(folder / "evidence")
    content = excluding(json.loads(files["search.json"]), {5}, "no_utility")
    target = tmp_path / "excluded.zip"
    write_files(target, sealed(with_pages(files, content)))
    (check,) = (
        item
        for item in verify(target, scores=folder / "scores.csv").checks
        if item.kind == "scores_facts"
    )
    assert "configurations[3].excluded" in check.facts["places"]


def test_another_limit_choice_and_hash_are_noticed_even_if_all_pages_follow(
    folder: Path, tmp_path: Path
) -> None:
    """A forger who writes every page again cannot let the rule choose another configuration."""
    files = read_files(folder / "evidence")
    content = json.loads(files["search.json"])
    forgeries = {
        "limit": content | {"goal": content["goal"] | {"max_unfairness": 0.9}},
        "choice": content | {"chosen": 1},
    }
    for name, forgery in forgeries.items():
        forged = with_pages(files, forgery)
        target = tmp_path / f"{name}.zip"
        write_files(target, sealed(forged))
        text = " ".join(forged["README.txt"].decode().split())
        assert "The counts and the standard errors exclude this choice." in text
        found = verify(target)
        assert [check.kind for check in found.checks if check.outcome == "differs"] == ["choice"]
        again = verify(target, scores=folder / "scores.csv")
        assert "scores_facts" in {
            check.kind for check in again.checks if check.outcome == "differs"
        }


def test_other_scores_are_noticed(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "scores.csv").read_text().splitlines()
    cells = lines[1].split(",")
    cells[-2] = "0.123456"
    other = tmp_path / "other.csv"
    other.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    found = verify(folder / "evidence", scores=other)
    assert found.agrees is False
    (tmp_path / "short.csv").write_text("row\n1\n")
    with pytest.raises(DataError, match="has no column"):
        verify(folder / "evidence", scores=tmp_path / "short.csv")


def test_the_delivered_model_file_is_compared(front: Frontier, tmp_path: Path) -> None:
    model = tmp_path / "model.metrifair"
    front.save(model)
    front.to_evidence(tmp_path / "evidence", reason=REASON, model=model, again=True)
    assert verify(tmp_path / "evidence", model=model).agrees is True
    model.write_bytes(model.read_bytes() + b" ")
    assert verify(tmp_path / "evidence", model=model).agrees is False


def test_small_groups_are_withheld_everywhere(tmp_path: Path) -> None:
    X, y, sex = people(1500, seed=7)
    sex[:60] = "x"
    made = search({"sex": sex}, X, y)
    made.select(max_unfairness=0.5, best_effort=True)
    made.to_evidence(
        tmp_path / "evidence", reason=REASON, min_cell=10, scores=tmp_path / "scores.csv"
    )
    found = verify(tmp_path / "evidence", scores=tmp_path / "scores.csv")
    assert found.agrees is True, str(found)
    manifest = json.loads((tmp_path / "evidence" / "MANIFEST.json").read_text())
    assert manifest["suppressed"]["sex, fold"] == [f"x, {fold}" for fold in range(5)]
    assert manifest["provenance"]["rows_read"] is None
    sizes = set()
    for path in (tmp_path / "evidence" / "counts").iterdir():
        state = AuditState.load(path)
        assert state.counts.rows.min() >= 10
        assert "x" not in {cell[0] for cell in state.cells}
        sizes.add(int(state.counts.rows.sum()))
    assert sizes == {1440}
    for figures, point in zip(
        figures_in(tmp_path / "evidence").configurations, made.points, strict=True
    ):
        assert is_inside(point.unfairness, figures.unfairness)
        assert is_inside(point.more["auc"], figures.utility)


def test_no_figure_of_chance_shows_the_size_of_a_withheld_group(tmp_path: Path) -> None:
    """The noise follows from the counts: with a withheld group, from those of the others."""
    noise = {}
    for size in (0, 7, 13):
        X, y, sex = people(800, seed=7)
        X, y, sex = (np.append(part[:size], part, axis=0) for part in (X, y, sex))
        sex[:size] = "x"
        made = search({"sex": sex}, X, y, strengths=[0, 1])
        made.select(max_unfairness=0.9)
        folder = tmp_path / str(size)
        made.to_evidence(folder, reason=REASON, min_cell=10)
        noise[size] = figures_in(folder).noise
        assert "noise" not in json.loads((folder / "search.json").read_text())
        text = " ".join((folder / "README.txt").read_text().split())
        assert ("are computed with the withheld rows" in text) == (size > 0)
        if not size:
            chooser = source_of(made).chooser(made._trade_off.utility)
            assert noise[0] == pytest.approx(chooser.gaps.noise)
    assert noise[0] == noise[7] == noise[13]


def counts_in(folder: Path) -> dict[Any, list[tuple[float, int]]]:
    """Score and rows of each count of the first configuration, by cell."""
    state = AuditState.load(folder / "counts" / "1.state")
    found = defaultdict(list)
    counts = state.counts
    for cell, score, rows in zip(counts.cell, counts.low, counts.rows, strict=True):
        found[state.cells[cell]].append((float(score), int(rows)))
    return found


def test_the_rule_is_that_of_the_choice_that_was_made(front: Frontier, tmp_path: Path) -> None:
    """Where no configuration meets the limit, none of them is "within the limit"."""
    texts = []
    for number, goal in enumerate(({"max_unfairness": 0.3}, {"min_accuracy": 0.999})):
        front.select(**goal, best_effort=True)
        front.to_evidence(tmp_path / str(number), reason=REASON, again=True)
        texts.append(" ".join((tmp_path / str(number) / "README.txt").read_text().split()))
    front.select(max_unfairness=0.3)
    assert "Rule: of the configurations within the limit, those whose AUC is within" in texts[0]
    assert "No configuration meets it" in texts[1]
    assert "Rule: of the least unfair configurations" in texts[1]
    assert "those whose AUC is within" in texts[1]
    assert "configurations within the limit" not in texts[1]


def test_two_minima_give_no_small_count(front: Frontier, tmp_path: Path) -> None:
    """The attack on two releases: differences of sums up to the same score."""
    for least in (10, 11):
        front.to_evidence(tmp_path / str(least), reason=REASON, min_cell=least, again=True)
    cells = [counts_in(tmp_path / str(least)) for least in (10, 11)]
    assert cells[0].keys() == cells[1].keys()
    few = 0
    for cell in cells[0]:
        upto = [set(np.cumsum([rows for _, rows in found[cell]]).tolist()) for found in cells]
        known = sorted(upto[0] | upto[1])
        few += sum(0 < later - earlier < 10 for earlier, later in pairwise(known))
    assert few == 0


def test_a_second_release_with_other_parameters_is_refused(
    front: Frontier, tmp_path: Path, refused: Refusals
) -> None:
    front.to_evidence(tmp_path / "a", reason=REASON, min_cell=10)
    with refused(DataError):
        front.to_evidence(tmp_path / "b", reason=REASON, min_cell=12)
    front.to_evidence(tmp_path / "c", reason=REASON, min_cell=10)


def test_what_counts_cannot_show_is_refused(
    front: Frontier, tmp_path: Path, refused: Refusals
) -> None:
    X, y, sex = people(400)
    path = tmp_path / "evidence"
    weighted = search(sex, X, y, sample_weight=np.linspace(1, 2, 400))
    weighted.select(max_unfairness=0.9)
    with refused(DataError):
        weighted.to_evidence(path, reason=REASON)
    tested = search(sex, X, y, test=0.3)
    tested.select(max_unfairness=0.9)
    with refused(DataError):
        tested.to_evidence(path, reason=REASON)
    plain = search(sex, X, y)
    with pytest.raises(DataError, match="call select first"):
        plain.to_evidence(path, reason=REASON)
    with refused(DataError):
        front.to_evidence(path, reason=" ")
    with pytest.raises(DataError, match="leaves too few groups"):
        front.to_evidence(path, reason=REASON, min_cell=400)
    front.save(tmp_path / "front.metrifair")
    with refused(DataError):
        load(tmp_path / "front.metrifair").to_evidence(path, reason=REASON)
    assert not path.exists()


def test_options_of_a_search_do_not_apply_to_an_audit(tmp_path: Path, refused: Refusals) -> None:
    audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=list("aabb"), random_state=0).to_evidence(
        tmp_path / "evidence", pdf=False
    )
    with refused(DataError):
        verify(tmp_path / "evidence", scores=tmp_path / "scores.csv")


def test_damaged_folders_are_refused_or_differ(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = folder / "evidence"
    names = sorted(
        path.relative_to(whole).as_posix() for path in whole.rglob("*") if path.is_file()
    )
    for number, name in enumerate(names):
        target = tmp_path / str(number)
        shutil.copytree(whole, target)
        content = bytearray((target / name).read_bytes())
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(7))
        (target / name).write_bytes(bytes(content))
        try:
            found = verify(target)
        except DataError:
            continue
        assert found.agrees is False
