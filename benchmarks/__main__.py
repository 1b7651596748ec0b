"""`python -m benchmarks [NAME ...]`: all benchmarks, or those named."""

import importlib
import sys

NAMES = ("core", "stack", "tradeoff", "peers", "defaults", "auditing", "files", "reproduction", "boosting", "cells")

for name in sys.argv[1:] or NAMES:
    importlib.import_module(f"benchmarks.{name}").main()
