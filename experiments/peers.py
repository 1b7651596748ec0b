"""Other libraries' methods on arrays, in an environment of their own: this module imports nothing of ours.

``python experiments/peers.py ARRAYS.npz FOUND.npz [JOBS]`` is what ``experiments.duel`` calls there. What a
package cannot do, or that it is not installed, is noted and does not stop the others. What is done is kept beside
FOUND.npz and not done again.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

Floats = NDArray[np.float64]
BOUNDS = (0.1, 0.05, 0.02, 0.01)  # of reductions
TOLERANCES = (0.2, 0.1, 0.05, 0.02, 0.0)  # of thresholds
SHARES = (0.75, 0.5, 0.25, 0.1, 0.0)  # of the way back from parity
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # of penalties


class Rows(NamedTuple):
    """A split: features in units of the training rows, labels, groups, and which rows are for training."""

    x: Floats
    y: Floats
    a: NDArray[np.int64]
    train: NDArray[np.bool_]


class Said(NamedTuple):
    """What a model says of the rows that it was not trained on."""

    knob: float
    score: Floats  # the chance of a yes
    decision: Floats


def reduction(rows: Rows, _: str) -> Iterator[Said]:
    """fairlearn's exponentiated gradient around a logistic regression."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient  # noqa: PLC0415

    for bound in BOUNDS:
        parity = DemographicParity(difference_bound=bound)
        model = ExponentiatedGradient(LogisticRegression(max_iter=1_000), parity)
        model.fit(rows.x[rows.train], rows.y[rows.train], sensitive_features=rows.a[rows.train])
        unseen = rows.x[~rows.train]
        yield Said(bound, model._pmf_predict(unseen)[:, 1], model.predict(unseen, random_state=0))


def grid(rows: Rows, _: str) -> Iterator[Said]:
    """fairlearn's grid search around a logistic regression: each of its models is one point."""
    from fairlearn.reductions import DemographicParity, GridSearch  # noqa: PLC0415

    model = GridSearch(LogisticRegression(max_iter=1_000), DemographicParity(), grid_size=21)
    model.fit(rows.x[rows.train], rows.y[rows.train], sensitive_features=rows.a[rows.train])
    for place, one in enumerate(model.predictors_):
        score = one.predict_proba(rows.x[~rows.train])[:, -1]
        yield Said(float(place), score, one.predict(rows.x[~rows.train]))


def thresholds(rows: Rows, _: str) -> Iterator[Said]:
    """fairlearn's threshold optimizer, which asks for the group."""
    from fairlearn.postprocessing import ThresholdOptimizer  # noqa: PLC0415

    model = ThresholdOptimizer(
        estimator=_logistic(rows), constraints="demographic_parity", prefit=True, predict_method="predict_proba"
    )
    model.fit(rows.x[rows.train], rows.y[rows.train], sensitive_features=rows.a[rows.train])
    unseen, groups = rows.x[~rows.train], rows.a[~rows.train]
    chance = model._pmf_predict(unseen, sensitive_features=groups)[:, 1]
    yield Said(0.0, chance, model.predict(unseen, sensitive_features=groups, random_state=0))


def relaxed(rows: Rows, _: str) -> Iterator[Said]:
    """error-parity's relaxed thresholds, which ask for the group."""
    from error_parity import RelaxedThresholdOptimizer  # noqa: PLC0415

    base = _logistic(rows)
    for tolerance in TOLERANCES:
        model = RelaxedThresholdOptimizer(
            predictor=lambda x: base.predict_proba(x)[:, 1],
            constraint="demographic_parity",
            tolerance=tolerance,
            seed=0,
        )
        model.fit(X=rows.x[rows.train], y=rows.y[rows.train].astype(int), group=rows.a[rows.train])
        decision = np.asarray(model(rows.x[~rows.train], group=rows.a[~rows.train]), dtype=float)
        yield Said(tolerance, decision, decision)


def barycenter(rows: Rows, _: str) -> Iterator[Said]:
    """equipy's Wasserstein barycenter, which asks for the group."""
    from equipy.fairness import FairWasserstein  # noqa: PLC0415

    score, groups = _logistic(rows).predict_proba(rows.x)[:, 1], rows.a[:, None]
    for share in SHARES:
        model = FairWasserstein()
        model.fit(score[rows.train], groups[rows.train])
        moved = np.asarray(model.transform(score[~rows.train], groups[~rows.train], epsilon=share)).ravel()
        yield Said(share, moved, (moved >= 0.5).astype(float))


def fairret_norm(rows: Rows, base: str) -> Iterator[Said]:
    """fairret's norm of the gaps between positive rates, as a penalty."""
    from fairret.loss import NormLoss  # noqa: PLC0415
    from fairret.statistic import PositiveRate  # noqa: PLC0415

    norm = NormLoss(PositiveRate())
    yield from _penalized(rows, base, lambda output, a: norm(output.unsqueeze(-1), torch.eye(2)[a]))


def diff_dp(rows: Rows, base: str) -> Iterator[Said]:
    """FFB's DiffDP: the gap between the groups' mean predictions."""

    def gap(output: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        chance = torch.sigmoid(output)
        return (chance[a == 0].mean() - chance[a == 1].mean()).abs()

    yield from _penalized(rows, base, gap)


def hsic(rows: Rows, base: str) -> Iterator[Said]:
    """FFB's HSIC of predictions and groups: Gaussian kernels exp(-d^2), biased, over (m - 1)^2."""

    def dependence(output: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        of_scores, of_groups = (
            torch.exp(-((value[:, None] - value) ** 2)) for value in (torch.sigmoid(output), a.to(output))
        )
        centered = of_groups - of_groups.mean(0) - of_groups.mean(1, keepdim=True) + of_groups.mean()
        return (of_scores * centered).sum() / (len(a) - 1) ** 2

    # Its values are small, so that strengths go further; and it looks at all pairs, so that batches do not.
    yield from _penalized(rows, base, dependence, factor=30.0, largest=512)


def _logistic(rows: Rows) -> LogisticRegression:
    return LogisticRegression(max_iter=1_000).fit(rows.x[rows.train], rows.y[rows.train])


def _penalized(
    rows: Rows,
    base: str,
    penalty: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    *,
    factor: float = 1.0,
    largest: int = 2_048,
) -> Iterator[Said]:
    """A PyTorch loop with as many steps, as large batches and as fast an Adam as our own training has."""
    x, y, a = (torch.as_tensor(part) for part in (rows.x, rows.y, rows.a))
    x, y, own = x.float(), y.float(), torch.as_tensor(np.flatnonzero(rows.train))
    size = min(largest, len(own) if len(own) <= 1_000 else int(np.clip(len(own) // 8, 256, 2_048)))
    per_epoch = max(1, len(own) // size)
    steps = 1_000 if base == "linear" else int(np.clip(60 * per_epoch, 150, 1_000))
    for strength in (0.0, *STRENGTHS):
        torch.manual_seed(0)
        hidden = [] if base == "linear" else [torch.nn.Linear(x.shape[1], 16), torch.nn.ReLU()]
        model = torch.nn.Sequential(*hidden, torch.nn.Linear(16 if hidden else x.shape[1], 1))
        adam = torch.optim.Adam(model.parameters(), lr=0.005)
        fall = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: min(1.0, 2 * (1 - step / steps)))
        taken = 0
        while taken < steps:
            for batch in torch.randperm(len(own))[: per_epoch * size].split(size):
                part = own[batch]
                output = model(x[part]).squeeze(-1)
                loss = torch.nn.functional.binary_cross_entropy_with_logits(output, y[part])
                if strength:
                    loss = loss + factor * strength * penalty(output, a[part])
                adam.zero_grad()
                loss.backward()
                adam.step()
                fall.step()
                taken += 1
                if taken == steps:
                    break
        with torch.no_grad():
            score = torch.sigmoid(model(x[~torch.as_tensor(rows.train)]).squeeze(-1)).double().numpy()
        yield Said(factor * strength, score, (score >= 0.5).astype(float))


METHODS: dict[str, tuple[str, Callable[[Rows, str], Iterator[Said]]]] = {
    "fairlearn ExponentiatedGradient": ("linear", reduction),
    "fairlearn GridSearch": ("linear", grid),
    "fairlearn ThresholdOptimizer": ("linear", thresholds),
    "error-parity": ("linear", relaxed),
    "equipy": ("linear", barycenter),
    "fairret, linear": ("linear", fairret_norm),
    "fairret, network": ("network", fairret_norm),
    "DiffDP, network": ("network", diff_dp),
    "HSIC, network": ("network", hsic),
}
"""By name: on which base model, and how."""


class Part(NamedTuple):
    """One split's models of one method or more, by name; why there are none, and how long they took."""

    models: dict[str, Any]
    faults: dict[str, str]
    seconds: dict[str, float]


def once(place: Path, rows: Rows, code: str, work: Callable[[Rows], Part]) -> Part:
    """Work on a split; what it finds is kept in a file named after all that it depends on, unless something failed."""
    text = hashlib.sha256(code.encode())
    for part in rows:
        text.update(np.ascontiguousarray(part).tobytes())
    file = place.with_name(f"{place.name}-{text.hexdigest()[:16]}.npz")
    if not file.exists():
        done = work(rows)
        if done.faults:
            return done
        file.parent.mkdir(parents=True, exist_ok=True)
        begun = file.with_suffix(".part.npz")
        np.savez_compressed(begun, seconds=np.array(json.dumps(done.seconds)), **done.models)
        begun.replace(file)  # whoever is stopped leaves no half of a file under its name
    with np.load(file) as kept:
        models = {key: kept[key] for key in kept.files if key != "seconds"}
        return Part(models, {}, json.loads(str(kept["seconds"])))


def write_parts(found: str | Path, parts: Iterable[Part]) -> None:
    """All models in one file, with notes of what failed and of how long each took."""
    models: dict[str, Any] = {}
    notes: dict[str, dict[str, Any]] = {"faults": {}, "seconds": {}}
    for part in parts:
        models |= part.models
        notes["faults"] |= part.faults
        notes["seconds"] |= part.seconds
    np.savez_compressed(found, notes=np.array(json.dumps(notes)), **models)
    took = sum(notes["seconds"].values())
    sys.stderr.write(f"{found}: {len(models)} models, {len(notes['faults'])} faults, {took:.0f} s of work\n")


def read_rows(path: str | Path, case: str) -> Rows:
    """One split of a file of many."""
    with np.load(path) as kept:
        x, *others = (kept[f"{case}/{name}"] for name in Rows._fields)
    return Rows(x.astype(np.float64), *others)


def read_cases(path: str | Path) -> list[str]:
    """The names of the splits in a file, those of the largest sets first."""
    with np.load(path) as kept:
        sizes = {key.rsplit("/", 1)[0]: kept[key].size for key in kept.files if key.endswith("/train")}
    return sorted(sizes, key=lambda case: (-sizes[case], case.split("/")[1]))


def work(path: str, folder: Path, task: tuple[str, str]) -> Part:
    """One method on one split."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    case, method = task

    def compete(rows: Rows) -> Part:
        base, way = METHODS[method]
        name, start = f"{case}/{method}", time.perf_counter()
        try:
            models = {f"{name}/{one.knob:g}": np.stack([one.score, one.decision]) for one in way(rows, base)}
        except Exception as error:
            fault = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
            return Part({}, {name: fault}, {name: time.perf_counter() - start})
        return Part(models, {}, {name: time.perf_counter() - start})

    return once(
        folder / f"{case}-{method}".replace("/", "-"), read_rows(path, case), Path(__file__).read_text(), compete
    )


def main(arrays: str, found: str, jobs: int = 1) -> None:
    """Every method on every split, the largest first."""
    folder = Path(found).with_suffix("")
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [
            pool.submit(work, arrays, folder, (case, method)) for case in read_cases(arrays) for method in METHODS
        ]
        write_parts(found, (done.result() for done in as_completed(waiting)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *(int(value) for value in sys.argv[3:4]))
