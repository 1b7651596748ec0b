"""How much code there is to read: the tokens of a source tree, and what four calls enter.

``python -m benchmarks.structure [SRC]`` reads another checkout's ``src`` than the installed one, so that two states can
be compared. It takes no time that would matter, and is no part of ``make bench``.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import metrifair

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
PREPARE = """
import numpy as np
from metrifair import FairClassifier, audit, frontier, unfairness
draw = np.random.default_rng(0)
X = draw.normal(size=(400, 3))
y = (X[:, 0] + draw.normal(size=400) > 0).astype(int)
a = (X[:, 1] > 0).astype(int)
score = 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))
"""
CALLS = {
    "unfairness": "unfairness(y, score, sensitive_features=a)",
    "audit": "audit(y, score, sensitive_features=a, threshold=0.5)",
    "fit": "FairClassifier().fit(X, y, sensitive_features=a)",
    'frontier("auto")': "frontier('auto', X[:150], y[:150], sensitive_features=a[:150])",
}
# Functions only: imports and comprehensions are not counted.
COUNT = """
import sys, threading
entered = set()
def note(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(ROOT):
        entered.add((frame.f_code.co_filename, frame.f_code.co_qualname))
run = compile(CALL, "call", "exec")
threading.setprofile(note)
sys.setprofile(note)
exec(run)
sys.setprofile(None)
functions = {one for one in entered if not one[1].endswith((">", "<module>"))}
print(len({path for path, _ in functions}), len(functions))
"""


def tokens(source: str) -> int:
    """Tokens of the code of a module, without its comments and docstrings."""
    documentation: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            text = node.body[0]
            documentation.update(range(text.lineno, (text.end_lineno or 0) + 1))
    found = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(token.type not in LAYOUT and token.start[0] not in documentation for token in found)


def entered(call: str, source: Path) -> tuple[int, int]:
    """How many of our modules and functions a call enters, in a process of its own."""
    folder = str(source / "metrifair")
    program = f"{PREPARE}\nROOT = {folder!r}\nCALL = {call!r}\n{COUNT}"
    code = f"import sys; sys.path.insert(0, {str(source)!r})\n{program}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, functions = map(int, done.stdout.split())
    return modules, functions


def main() -> None:
    source = Path(sys.argv[1] if len(sys.argv) > 1 else Path(metrifair.__file__).parents[1])
    source = source.resolve()
    texts = [path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))]
    print(f"{len(texts)} modules, {sum(text.count(chr(10)) for text in texts):,} lines")
    print(f"{sum(map(tokens, texts)):,} tokens of code")
    for name, call in CALLS.items():
        modules, functions = entered(call, source)
        print(f"{name}: enters {functions} functions of {modules} modules")


if __name__ == "__main__":
    main()
