"""`python -m metrifair` and the command `metrifair`."""

import io
import sys


def main() -> None:
    """Run the command line, or name the extra that it needs."""
    try:
        from metrifair.cli import main as run
    except ModuleNotFoundError as error:
        from metrifair.support.lazy import missing_extra

        missing = missing_extra(error, "the command line")
        if missing is None:
            raise
        sys.stderr.write(f"{missing}\n")
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal that cannot show a sign shows another one
            stream.reconfigure(errors="replace")
    try:
        run(prog_name="metrifair")
    except Exception:
        import traceback

        traceback.print_exc()
        sys.exit(3)  # a fault of ours; Python's own 1 would read as "unfair"


if __name__ == "__main__":
    main()
