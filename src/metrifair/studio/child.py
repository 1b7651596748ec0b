"""``python -m metrifair.studio.child BYTES ARGUMENT...``: a command of metrifair with a memory
limit.

Standard input is a pipe from the studio. When the studio ends, even by a kill, this process ends
too.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading


def _end_with_studio() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def _limit_memory(size: int) -> None:
    """Limit the memory that the process can write to. Windows has no such limit."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 (only Unix has it)

        # Not the address space: Polars, PyTorch and CUDA reserve far more than they use.
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Run the command line within the limit."""
    _limit_memory(int(sys.argv[1]))
    threading.Thread(target=_end_with_studio, daemon=True).start()
    sys.argv = ["metrifair", *sys.argv[2:]]
    runpy.run_module("metrifair", run_name="__main__")


if __name__ == "__main__":
    main()
