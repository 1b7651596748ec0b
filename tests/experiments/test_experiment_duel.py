"""The duel: work that is never done twice, unless something failed, and who is said to have won."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import duel, peers
from experiments.data import Splits
from experiments.duel import CONTESTS, Entry, Judged
from experiments.settings import Effort

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
    found, faults = duel.read_entries(tmp_path / "entries.json")
    assert {(one.data, one.seed, one.method) for one in found} == {
        ("compas", 0, "ours, linear"),
        ("compas", 0, "equipy"),
    }
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


def test_knobs_are_chosen_on_folds_and_tested_with_models_of_all_training_rows(tmp_path: Path) -> None:
    draws = np.random.default_rng(1)
    x, a = np.column_stack([np.arange(N), draws.normal(size=N)]), draws.permutation(A)
    orders = [draws.permutation(N) for _ in range(2)]
    train, test = (np.stack([order[part] for order in orders]) for part in (slice(30), slice(30, N)))
    y = (x[:, 1] > 0).astype(float)
    one = Splits(x, y, a, train, test)
    same = Splits(x, y, a, train[[0, 0]], test[[0, 0]])
    known = {"compas": one, "drug": same}
    duel.write_splits(tmp_path / "arrays.npz", lambda name, _: known[name], Effort((0, 1), quick=True))
    names = [f"{seed}.{part}" for seed in (0, 1) for part in (*range(4), "all")]
    assert set(peers.read_cases(tmp_path / "arrays.npz")) == {"drug/0", "drug/1", *(f"compas/{name}" for name in names)}
    models = {}
    with np.load(tmp_path / "arrays.npz") as kept:
        for seed, order in enumerate(train):
            own = {
                name: {key: kept[f"compas/{name}/{key}"] for key in ("x", "y", "a", "train", "test")} for name in names
            }
            own = {name: part for name, part in own.items() if name.startswith(f"{seed}.")}
            aside = [part["a"][~part["train"] & ~part["test"]] for part in own.values()]
            assert [len(rows) for rows in aside] == [8, 8, 7, 7, 0]
            assert sorted(np.concatenate(aside)) == sorted(a[order])
            assert [int(part["test"].sum()) for part in own.values()] == [0, 0, 0, 0, 10]
            for name, part in own.items():
                np.testing.assert_allclose(part["x"][part["train"]].mean(0), 0, atol=1e-12)
                truth = np.stack([part["y"], part["y"]])[:, ~part["train"]]
                # The first knob is right in one part and wrong in all others, the second right throughout.
                first = truth if name.endswith("0") else 1 - truth
                models |= {f"compas/{name}/whole/{knob}": said for knob, said in (("1", first), ("2", truth))}
                if not name.endswith("3"):
                    models[f"compas/{name}/in part/1"] = truth
    peers.write_parts(tmp_path / "ours.npz", [peers.Part(models, {}, {})])
    peers.write_parts(tmp_path / "peers.npz", [peers.Part({}, {"compas/0.3/in part": "absent"}, {})])
    loose = [contest._replace(bound=1.0) for contest in CONTESTS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duel, "CONTESTS", loose)
        duel.write_entries(tmp_path, tmp_path / "entries.json")
        found, faults = duel.read_entries(tmp_path / "entries.json")
    assert [(entry.data, entry.seed, entry.method) for entry in found[::2]] == [
        ("compas", 0, "whole"),
        ("compas", 1, "whole"),
    ]
    assert all(entry.test.accuracy == 1.0 for entry in found)
    assert faults == {"in part on compas": "absent"}
