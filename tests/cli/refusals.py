"""What every refusal looks like."""

from __future__ import annotations

import subprocess
from pathlib import Path

from click.testing import Result


def refusal(done: Result | subprocess.CompletedProcess[str]) -> str:
    """The one line in which a command says why it stopped; exit code 2, no traceback."""
    code = done.exit_code if isinstance(done, Result) else done.returncode
    assert code == 2, (code, done.stderr, getattr(done, "exc_info", None))
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert done.stderr.rstrip().endswith(line)
    return line.removeprefix("Error: ")


def left_behind(folder: Path) -> list[str]:
    """Names of all files in a folder, drafts too."""
    return sorted(path.name for path in folder.iterdir())
