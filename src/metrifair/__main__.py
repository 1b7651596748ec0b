"""`python -m metrifair` and the command `metrifair`."""

import io
import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from metrifair.cli import main as run
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.stderr.write(f'the command line needs {error.name}: pip install "metrifair[cli]"\n')
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign shows another one
    try:
        run(prog_name="metrifair")
    except Exception:
        import traceback

        traceback.print_exc()
        sys.exit(3)  # a fault of ours; Python's own 1 would read as "unfair"


if __name__ == "__main__":
    main()
