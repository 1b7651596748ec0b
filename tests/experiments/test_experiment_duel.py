"""The duel: work that is never done twice, unless something failed, and who is said to have won."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import duel, peers
from experiments.duel import CONTESTS, Entry, Judged

N = 40
A = np.arange(N) % 2


def split(seed: int = 0) -> peers.Rows:
    draws = np.random.default_rng(seed)
    x = draws.normal(size=(N, 2)) + A[:, None]
    return peers.Rows(x, (x.sum(1) > 1).astype(float), A.astype(np.int64), np.arange(N) < N // 2)


def test_what_is_done_is_not_done_again_and_what_failed_is(tmp_path: Path) -> None:
    calls: list[str] = []

    def compete(rows: peers.Rows) -> peers.Part:
        calls.append("fine")
        return peers.Part({"set/0/method/1": rows.x[:, :2].T}, {}, {"set/0/method": 2.5})

    def fail(_: peers.Rows) -> peers.Part:
        calls.append("failed")
        return peers.Part({}, {"set/0/method": "ImportError: none"}, {"set/0/method": 0.1})

    place = tmp_path / "parts" / "set-0-method"
    assert peers.once(place, split(), "code", fail).faults
    found = [peers.once(place, split(), "code", compete) for _ in range(2)]
    assert calls == ["failed", "fine"]
    assert found[0].seconds == found[1].seconds == {"set/0/method": 2.5}
    assert (found[1].models["set/0/method/1"] == split().x.T).all()
    peers.once(place, split(1), "code", compete)
    peers.once(place, split(), "other code", compete)
    assert calls == ["failed", "fine", "fine", "fine"]
    assert {file.suffixes[-1] for file in place.parent.iterdir()} == {".npz"}
    assert not list(place.parent.glob("*.part*"))  # a half of a file would be taken for a whole one


def test_all_parts_are_one_file_in_which_entries_find_their_rows(tmp_path: Path) -> None:
    rows = {f"compas/0/{name}": part for name, part in zip(peers.Rows._fields, split(), strict=True)}
    np.savez(tmp_path / "arrays.npz", **rows, **{"compas/0/test": np.arange(N) >= 3 * N // 4})
    assert peers.read_cases(tmp_path / "arrays.npz") == ["compas/0"]
    own = peers.read_rows(tmp_path / "arrays.npz", "compas/0")
    truth = np.stack([own.y, own.y])[:, ~own.train]
    for name, method in (("ours", "ours, linear"), ("peers", "equipy")):
        part = peers.Part({f"compas/0/{method}/1": truth}, {f"compas/0/{method} 2": "absent"}, {})
        peers.write_parts(tmp_path / f"{name}.npz", [part])
    duel.write_entries(tmp_path, tmp_path / "entries.json")
    found, tried, faults = duel.read_entries(tmp_path / "entries.json")
    assert {(one.data, one.seed, one.method) for one in found} == {
        ("compas", 0, "ours, linear"),
        ("compas", 0, "equipy"),
    }
    assert {place: list(knobs) for place, knobs in tried.items()} == {
        ("compas", "ours, linear"): ["1"],
        ("compas", "equipy"): ["1"],
    }
    assert tried["compas", "equipy"]["1"][0].accuracy == 1.0
    assert faults == {"ours, linear 2 on compas": "absent", "equipy 2 on compas": "absent"}
    kept = [one for one in found if one.test.accuracy == 1.0]
    constant = [one for one in found if one.test.kolmogorov == 0.0]
    assert len(kept) + len(constant) == len(found) == 4  # the truth where it keeps the bound, else the constant


@pytest.mark.parametrize(
    ("lead", "word"), [(0.1, "ours"), (-0.1, "theirs"), (0.0, "even")], ids=["ahead", "behind", "level"]
)
def test_a_difference_counts_from_one_standard_error_on(lead: float, word: str) -> None:
    found = []
    for seed, noise in enumerate((-0.02, 0.0, 0.02)):
        for method, accuracy in (("ours, linear", 0.8 + lead + noise), ("fairlearn GridSearch", 0.8)):
            test = Judged(accuracy, 0.8, 0.01, 0.05)
            found += [Entry("drug", seed, method, contest, test, 0.1) for contest in CONTESTS]
    line, by_auc = duel.winners_table(found)[1:]
    assert by_auc[5:] == ["+0.00 ± 0.00", "even"]
    assert line[3:5] == ["ours, linear", "fairlearn GridSearch"]
    assert line[5:] == [f"{100 * lead:+.2f} ± 1.15", word]


def test_the_best_knob_keeps_to_the_bound_on_average_over_splits() -> None:
    """One split may exceed it; the knob is the same in all splits, and one that is lacking in a split is none."""
    entries = [
        Entry("drug", seed, "equipy", contest, Judged(0, 0, 0, 0), 0.1) for seed in (0, 1) for contest in CONTESTS
    ]
    reached = {"far": [(0.9, 0.3), (0.9, 0.3)], "near": [(0.8, 0.15), (0.6, 0.04)], "low": [(0.6, 0.0), (0.7, 0.0)]}
    knobs = {
        knob: {seed: Judged(worth, worth, gap, gap) for seed, (worth, gap) in enumerate(by)}
        for knob, by in reached.items()
    }
    knobs["half"] = {0: Judged(1.0, 1.0, 0.0, 0.0)}
    found = duel.best_knobs(entries, {("drug", "equipy"): knobs, ("drug", "none"): {"far": knobs["far"]}})
    assert {(one.method, one.contest.gap) for one in found} == {("equipy", "rates"), ("equipy", "kolmogorov")}
    assert [(one.seed, one.test.accuracy, one.most) for one in found[:2]] == [(0, 0.8, 0.1), (1, 0.6, 0.1)]
