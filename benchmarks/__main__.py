"""`python -m benchmarks [NAME ...]`: all benchmarks, or those named; `--help` lists them."""

import argparse
import importlib

NAMES = ("core", "stack", "tradeoff", "peers", "defaults", "auditing", "files", "reproduction", "boosting", "cells")

parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Ratios against peers, measured in one run.")
parser.add_argument("names", metavar="NAME", nargs="*", help=f"{', '.join(NAMES)}; all of them where none is named")
asked = parser.parse_args().names
unknown = [name for name in asked if name not in NAMES]
if unknown:
    parser.error(f"there is no benchmark {', '.join(unknown)}; choose from {', '.join(NAMES)}")
for name in asked or NAMES:
    importlib.import_module(f"benchmarks.{name}").main()
