"""One file, its steps and their results, which all tabs of a browser share."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from metrifair.studio import commands, scripts
from metrifair.studio.commands import Choices, Command, TableFile
from metrifair.studio.messages import page_text

MOST_BYTES = 2 * 2**30
MOST_COLUMNS = 1_000
_MOST_NAME_BYTES = 200  # of an upload; systems allow 255, and commands add endings
_SECONDS = 600.0  # of one command; training has a budget of its own
_LEAST_MEMORY = 4 * 2**30
_BETWEEN_READINGS = 0.3  # seconds, of the progress that a command reports

RESULT_FILES = {
    "audit": {"report.html": "Report, one page", "audit.json": "All figures of the audit"},
    "pdf": {"report.pdf": "Report as PDF"},
    "evidence": {"evidence.zip": "Report, tables, figures, counts and manifest"},
    "compare": {
        "changes.html": "Comparison, one page",
        "changes.json": "All figures of the comparison",
    },
    "train": {
        "frontier.html": "Trade-off, one page",
        "frontier.json": "All figures of the trade-off",
    },
    "choose": {
        "model.metrifair": "Model",
        "model.onnx": "Model as ONNX graph",
        "card.md": "Model card",
        "held-out.csv": "Predictions of rows by models trained without them",
        "held-out.html": "Audit of these predictions, one page",
        "held-out.json": "All figures of this audit",
        "frontier.html": "Trade-off with the chosen model, one page",
    },
}
"""The files of each step that may leave the studio, with their titles."""


class Refused(Exception):
    """A request that cannot be met, in one sentence for the page."""


class _TimeIsUp(Exception):
    """A command that was stopped at its time limit."""


@dataclass(frozen=True)
class Done:
    """A finished step: its folder of files, and the commands and the script that repeat it
    without the studio.
    """

    number: int  # a page that shows a result reloads it when the number changes
    folder: Path
    commands: Sequence[str]
    python: str
    notes: Sequence[str]

    def state(self, step: str) -> dict[str, Any]:
        """The result as JSON values for the page."""
        files = {
            name: title
            for name, title in RESULT_FILES.get(step, {}).items()
            if (self.folder / name).is_file()
        }
        same = {"commands": self.commands, "python": self.python, "notes": self.notes}
        return {"number": self.number, "files": files} | same


class TriedFamilies(NamedTuple):
    """The families of models that were started, with the seconds that each took; None for one
    that is not finished.
    """

    families: tuple[tuple[str, float | None], ...] = ()
    total: int = 0  # number of families to try

    @classmethod
    def read(cls, log: str) -> TriedFamilies:
        """The families that a command reports in its log, one event a line.

        >>> first = '{"progress": "Training", "item": "stack", "done": 0, "total": 6, "seconds": 0.0}'
        >>> TriedFamilies.read(first + "\\n" + first.replace("stack", "linear").replace("0.0", "4.5"))
        TriedFamilies(families=(('stack', 4.5), ('linear', None)), total=6)
        """
        lines = [
            line
            for line in log.splitlines()
            if line.startswith('{"progress": "Training"') and line[-1] == "}"
        ]
        events = [json.loads(line) for line in lines]
        ends = [*(event["seconds"] for event in events[1:]), None]
        pairs = [(event, end) for event, end in zip(events, ends, strict=False) if event["item"]]
        families = tuple(
            (row["item"], None if end is None else round(end - row["seconds"], 1))
            for row, end in pairs
        )
        return cls(families, events[0]["total"] if events else 0)

    @property
    def finished(self) -> list[str]:
        """The families that are finished."""
        return [name for name, seconds in self.families if seconds is not None]


def _file_name(table: TableFile | None) -> str | None:
    return None if table is None else Path(table.name).name


@dataclass
class Session:
    """The state that the page shows, and the steps that change it. One step runs at a time."""

    folder: Path  # private, and removed at the end
    ledger: Path  # finished models; it outlives the session
    table: TableFile | None = None
    second: TableFile | None = None
    choices: dict[str, Choices] = field(default_factory=dict)  # by step, as last confirmed
    columns: dict[str, Any] | None = None
    done: dict[str, Done] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    progress: TriedFamilies = field(default_factory=TriedFamilies)  # of training
    running: str | None = None
    part: dict[str, Any] | None = None  # of the step: its current command, by its place of all
    closing: bool = False
    version: int = 0
    _at_work: set[Path] = field(default_factory=set)  # folders that an upload or a step writes now
    _results: set[Path] = field(default_factory=set)  # folders of results
    _task: asyncio.Task[None] | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def state(self) -> dict[str, Any]:
        """The state as JSON values for the page."""
        return {
            "version": self.version,
            "file": _file_name(self.table),
            "second": _file_name(self.second),
            "columns": self.columns,
            "choices": self.choices,
            "running": self.running,
            "part": self.part,
            "failed": self.failed,
            "progress": self.progress._asdict(),
            "done": {step: done.state(step) for step, done in self.done.items()},
            "has_ledger": self.ledger.exists(),
        }

    def _change(self) -> None:
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def versions(self) -> AsyncIterator[int]:
        """The number of the state, now and after each change."""
        while True:
            changed = self._changed
            yield self.version
            await changed.wait()

    async def receive(self, content: AsyncIterator[bytes], name: str, *, second: bool) -> None:
        """Store an uploaded file, and inspect it. If the upload breaks off, nothing of it stays."""
        self._check_idle()
        shown = stored_name(name)
        with self._work_folder("upload") as folder:
            await _store(content, folder / shown)
            # a step may have started meanwhile, with the file that this one replaces
            self._check_idle()
            table = TableFile(folder / shown, shown)
            if second:
                self.second = table
                self._forget("compare")
                self._change()
            else:
                self.inspect(table, {})

    def close_file(self) -> None:
        """Delete the uploaded files, and all results."""
        self._check_idle()
        self.table = None
        self.columns = None
        self.second = None
        self.progress = TriedFamilies()
        self.choices = {}
        self._forget(*self.done, *self.failed)
        self._change()

    def inspect(self, table: TableFile | None, reading: Choices) -> None:
        """Read a file, or the current one with other options, and remove all earlier results."""
        self._check_idle()
        if table is None:
            raise Refused("Choose a file first.")
        self.table = table
        self.columns = None
        self.second = None
        self.progress = TriedFamilies()
        self.choices = {"reading": reading}
        self._forget(*self.done, *self.failed)
        self._start("inspect", self._inspect(table, reading))

    async def _inspect(self, table: TableFile, reading: Choices) -> None:
        with self._work_folder("inspect") as folder:
            await self._run(commands.columns_command(table, reading), folder, _SECONDS)
            columns = json.loads((folder / "columns.json").read_text(encoding="utf-8"))
        if (count := len(columns["columns"])) > MOST_COLUMNS:
            raise Refused(
                f"The file has {count:,} columns; the studio accepts up to {MOST_COLUMNS:,}."
            )
        columns["notes"] = [page_text(note) for note in columns["notes"]]
        self.columns = columns

    def confirm(self, roles: Choices) -> None:
        """Store the roles that the user confirms, and remove results of other roles."""
        self._check_idle()
        if self.columns is None:
            raise Refused("Choose a file first.")
        if not roles.get("group"):
            raise Refused("Choose at least one group column.")
        if not roles.get("score") and not roles.get("label"):
            raise Refused("Choose a score column to audit, or a label column to train.")
        self.choices = {"reading": self.choices["reading"], "roles": roles}
        self.progress = TriedFamilies()
        self._forget(*self.done, *self.failed)
        self._change()

    def start(self, step: str, choices: Choices) -> None:
        """Run a step after ``inspect`` with the confirmed roles."""
        self._check_idle()
        work: dict[str, Callable[[TableFile, Choices], Coroutine[Any, Any, None]]] = {
            "audit": self._audit,
            "pdf": self._pdf,
            "evidence": self._evidence,
            "compare": self._compare,
            "train": self._train,
            "choose": self._choose,
        }
        if self.table is None or "roles" not in self.choices:
            raise Refused("Confirm the roles of the columns first.")
        if step not in ("pdf", "evidence", "compare"):  # these repeat the choices of the audit
            self.choices[step] = choices
        merged = {**self.choices["reading"], **self.choices["roles"], **choices}
        self._start(step, work[step](self.table, merged))

    async def _audit(self, table: TableFile, choices: Choices) -> None:
        if not choices.get("score"):
            raise Refused("An audit needs a score column. Choose one in Inspect, or train a model.")
        if choices.get("threshold"):
            _number(choices["threshold"], "The threshold", above=-1e6)
        command = commands.audit_command(table, choices, "--html=report.html", "--json=audit.json")
        self._forget("pdf", "evidence", "compare")
        await self._finish("audit", [command], scripts.audit_python(table, choices))

    async def _pdf(self, table: TableFile, choices: Choices) -> None:
        audited = {**choices, **self._audited()}
        command = commands.audit_command(table, audited, "--pdf=report.pdf")
        await self._finish("pdf", [command], scripts.pdf_python(table, audited))

    async def _evidence(self, table: TableFile, choices: Choices) -> None:
        audited = {**choices, **self._audited()}
        command = commands.evidence_command(table, audited)
        await self._finish("evidence", [command], scripts.evidence_python(table, audited))

    async def _compare(self, table: TableFile, choices: Choices) -> None:
        if self.second is None:
            raise Refused("Choose a second file to compare.")
        audited = {**choices, **self._audited()}
        python = scripts.comparison_python(table, self.second, audited)
        await self._finish(
            "compare", commands.comparison_commands(table, self.second, audited), python
        )

    def _audited(self) -> Choices:
        """The choices of the audit that is shown."""
        if "audit" not in self.done:
            raise Refused("Audit the file first.")
        return self.choices["audit"]

    async def _train(self, table: TableFile, choices: Choices) -> None:
        """Train families of models within the time; if it is stopped, the finished families are
        the result.
        """
        self._check_label(choices)
        _number(choices.get("max_unfairness"), "The unfairness limit")
        seconds = 60 * _number(choices.get("minutes"), "The time budget")
        self.ledger.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.progress = TriedFamilies()
        self._forget("train", "choose")
        command = commands.training_command(
            table, {**choices, "budget": f"{seconds:g}"}, self.ledger
        )
        notes = []
        try:
            folder, _ = await self._work("train", [command], seconds=seconds, follow=True)
        except (_TimeIsUp, asyncio.CancelledError) as stop:
            finished = self.progress.finished
            if self.closing or not finished:
                raise
            reason = "Canceled." if isinstance(stop, asyncio.CancelledError) else "The time is up."
            notes = [
                f"{reason} The result has the families that were finished: {', '.join(finished)}."
            ]
            command = commands.training_command(
                table, {**choices, **self._tried_families()}, self.ledger
            )
            folder, _ = await self._work("train", [command])
        trained = {**choices, **self._tried_families()}
        repeat = commands.training_command(table, trained, self.ledger)
        self._keep(
            "train", folder, [repeat], scripts.training_python(table, trained, self._columns), notes
        )

    def _tried_families(self) -> Choices:
        """The names of the families in the result: the same ones on any machine."""
        finished = self.progress.finished
        if finished:
            return {"families": ",".join(["auto", *finished])}
        return {"families": self.choices["train"]["families"]}

    async def _choose(self, table: TableFile, choices: Choices) -> None:
        if "train" not in self.done:
            raise Refused("Train models first.")
        _number(choices.get("max_unfairness"), "The unfairness limit")
        merged = {
            **choices,
            **self.choices["train"],
            **self.choices["choose"],
            **self._tried_families(),
        }
        score = "prediction" if self._predicts_number(choices) else "probability"
        steps = commands.choice_commands(table, merged, self.ledger, score=score)
        await self._finish(
            "choose", steps, scripts.choice_python(table, merged, self._columns, score=score)
        )

    def _check_label(self, choices: Choices) -> None:
        label = self._column(choices.get("label"))
        if label is None:
            raise Refused(
                "Training needs a label column, which the model predicts. Choose one in Inspect."
            )
        if label["distinct"] != 2 and not self._predicts_number(choices):
            raise Refused(
                f"The label has {label['distinct']:,} values. The studio trains models for labels "
                "with two values, and "
                "for numbers that are no classes."
            )

    def _predicts_number(self, choices: Choices) -> bool:
        label = self._column(choices.get("label"))
        return label is not None and label["target"] == "number"

    def _column(self, name: object) -> dict[str, Any] | None:
        return next((column for column in self._columns if column["name"] == name), None)

    @property
    def _columns(self) -> list[dict[str, Any]]:
        """The facts of ``metrifair columns``, column by column."""
        columns: list[dict[str, Any]] = [] if self.columns is None else self.columns["columns"]
        return columns

    def forget_models(self) -> None:
        """Delete the finished models in the ledger."""
        self._check_idle()
        # SQLite writes further files beside it
        for path in self.ledger.parent.glob(f"{self.ledger.name}*"):
            path.unlink()
        self._change()

    def cancel(self) -> None:
        """Stop the step that runs; finished results stay."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop the step that runs, and wait for its end."""
        self.closing = True
        self.cancel()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def file(self, step: str, name: str) -> Path | None:
        """A file that may leave the studio; None for all others."""
        done = self.done.get(step)
        if done is None or name not in RESULT_FILES[step] or not (done.folder / name).is_file():
            return None
        return done.folder / name

    def _check_idle(self) -> None:
        if self.running is not None:
            raise Refused("Another step is running. Wait for it, or cancel it.")

    def _start(self, step: str, work: Coroutine[Any, Any, None]) -> None:
        self.running = step
        self.failed.pop(step, None)
        self._task = asyncio.create_task(self._run_step(step, work))
        self._change()

    async def _run_step(self, step: str, work: Coroutine[Any, Any, None]) -> None:
        """Run a step; every error becomes a sentence on the page."""
        try:
            await work
        except Refused as refusal:
            self.failed[step] = str(refusal)
        except _TimeIsUp:
            limit = f"The step took longer than its limit of {_SECONDS / 60:.0f} minutes."
            self.failed[step] = _NOT_IN_TIME if step == "train" else limit
        except asyncio.CancelledError:
            self.failed[step] = (
                "Canceled. Finished models are stored." if step == "train" else "Canceled."
            )
        except Exception:
            self.failed[step] = _FAULT
        finally:
            self.running = None
            self.part = None
            self._change()

    async def _finish(self, step: str, to_run: Sequence[Command], python: str) -> None:
        """Run the commands of a step; their files become its result."""
        folder, notes = await self._work(step, to_run)
        self._keep(step, folder, to_run, python, notes)

    async def _work(
        self,
        step: str,
        to_run: Sequence[Command],
        *,
        seconds: float = _SECONDS,
        follow: bool = False,
    ) -> tuple[Path, list[str]]:
        """Run commands in a new folder; return it, with notes on optional commands that were
        refused.

        ``follow`` shows their progress.
        """
        notes = list[str]()
        with self._work_folder(step) as folder:
            for place, command in enumerate(to_run, 1):
                name = command.words[0]
                self.part = {"command": name, "place": place, "total": len(to_run)}
                self._change()
                try:
                    await self._run(command, folder, seconds, follow=follow)
                except Refused as refusal:
                    if not command.is_optional:
                        raise
                    notes.append(str(refusal))
            self._results.add(folder)
        return folder, notes

    def _keep(
        self, step: str, folder: Path, shown: Sequence[Command], python: str, notes: Sequence[str]
    ) -> None:
        """Make the files of a folder the result of a step, with the commands and the script
        that repeat it.
        """
        self._forget(step)
        self.done[step] = Done(
            self.version, folder, [command.text for command in shown], python, notes
        )
        self._change()

    def _forget(self, *steps: str) -> None:
        """Remove outdated results with their files."""
        for step in set(steps):
            self.failed.pop(step, None)
            done = self.done.pop(step, None)
            if done is not None:
                self._results.discard(done.folder)
        self._remove_unused()

    @contextlib.contextmanager
    def _work_folder(self, step: str) -> Iterator[Path]:
        """A new folder, which stays if it then contains a result or a file of the user's."""
        self.version += 1
        folder = self.folder / f"{step}-{self.version}"
        folder.mkdir()
        self._at_work.add(folder)
        try:
            yield folder
        finally:
            self._at_work.discard(folder)
            self._remove_unused()

    def _remove_unused(self) -> None:
        """Delete all folders of files that were replaced, broken off or closed, and of steps
        without a result.
        """
        tables = {table.path.parent for table in (self.table, self.second) if table is not None}
        used = tables | self._at_work | self._results
        for folder in self.folder.iterdir():
            if folder.is_dir() and folder not in used:
                shutil.rmtree(folder, ignore_errors=True)

    async def _run(
        self, command: Command, folder: Path, seconds: float, *, follow: bool = False
    ) -> None:
        """Run one command in a process of its own, within its limits; a refusal for every exit
        code but 0.
        """
        log = folder / "log.txt"
        limit = memory_limit()
        # -P: nothing in the folder can be imported.
        words = [
            sys.executable,
            "-P",
            "-m",
            "metrifair.studio.child",
            str(limit),
            *command.arguments,
        ]
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *words,
                cwd=folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=output,
                start_new_session=True,
                env=os.environ | {"METRIFAIR_PROGRESS": "json"},
            )
        following = asyncio.create_task(self._follow(log)) if follow else None
        try:
            async with asyncio.timeout(seconds):
                code = await process.wait()
        except TimeoutError:
            raise _TimeIsUp from None
        finally:
            await _end(process)
            if following is not None:
                following.cancel()
                self._read_progress(log)
        if code != 0:
            refusal = _sentence(code, _read_log(log), limit)
            raise Refused(page_text(refusal, self._private_places(folder)))

    def _private_places(self, folder: Path) -> list[Path]:
        """The folders that no message names."""
        tables = [table.path.parent for table in (self.table, self.second) if table is not None]
        return [folder, self.folder, self.ledger.parent, *tables]

    async def _follow(self, log: Path) -> None:
        """Show the progress of a command while it runs."""
        while True:
            self._read_progress(log)
            await asyncio.sleep(_BETWEEN_READINGS)

    def _read_progress(self, log: Path) -> None:
        progress = TriedFamilies.read(_read_log(log))
        if progress != self.progress:
            self.progress = progress
            self._change()


_NOT_IN_TIME = (
    "No family was finished in time. Finished models are stored. Train again with a larger budget."
)
_FAULT = "This step failed because of an error in metrifair. The other steps still work."


def _sentence(code: int, log: str, limit: int) -> str:
    """The reason why a command ended: the library's error message, or a general sentence.

    >>> _sentence(2, "Usage: ...\\n\\nError: there is no file x.csv\\n", 0)
    'There is no file x.csv'
    """
    _, error, sentence = log.rpartition("Error: ")
    if code == 2 and error:
        text = " ".join(sentence.split())
        return f"{text[0].upper()}{text[1:]}"
    if code < 0 or "MemoryError" in log or "memory allocation" in log:
        return f"This step needs more memory than its limit of {limit / 2**30:.0f} GB."
    return _FAULT


def stored_name(name: str) -> str:
    """The name of an upload on the disk: without folders and unusual characters, and short enough
    for its system.

    >>> stored_name("../../--help"), stored_name("C:\\\\loans (1).csv"), len(stored_name("数" * 95 + ".csv").encode())
    ('help', 'loans _1_.csv', 199)
    """
    shown = re.sub(r"[^\w.\- ]", "_", Path(name.replace("\\", "/")).name)
    end = shown.encode("utf-8", errors="replace")[-_MOST_NAME_BYTES:].decode(
        "utf-8", errors="ignore"
    )
    return end.lstrip(".- ") or "file"


async def _store(content: AsyncIterator[bytes], path: Path) -> None:
    """Write an upload to a file, up to the largest size."""
    size = 0
    with path.open("wb") as file:
        async for part in content:
            size += len(part)
            if size > MOST_BYTES:
                raise Refused(
                    f"The file is larger than {MOST_BYTES / 2**20:,.0f} MB. To open a larger one, "
                    "name it when you "
                    "start metrifair studio."
                )
            file.write(part)


def _read_log(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process and those that it started, if it still runs."""
    if process.returncode is None:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.stdin is not None:
        process.stdin.close()


def memory_limit() -> int:
    """The bytes that a command may use: half of the machine's memory, and not less than 4 GB."""
    if sys.platform == "win32":
        return _LEAST_MEMORY
    return max(_LEAST_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)


def _number(value: object, name: str, above: float = 0.0) -> float:
    """A number that the user typed."""
    try:
        number = float(str(value))
    except ValueError:
        number = above
    if not above < number < 1e6:
        raise Refused(f"{name} must be a number above {above:g}.")
    return number
