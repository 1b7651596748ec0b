"""`python -m metrifair` and the command `metrifair`."""

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    try:
        from metrifair.cli import main as run
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit(f'the command line needs {error.name}: pip install "metrifair[cli]"')
    run(prog_name="metrifair")


if __name__ == "__main__":
    main()
