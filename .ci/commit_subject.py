"""Refuses a commit whose subject is not an imperative sentence of at most 72 characters; a
commit-msg hook.
"""

import re
import sys
from pathlib import Path

LONGEST = 72
NOT_IMPERATIVE = re.compile(
    r"(?i)^(added|adds|adding|fixed|fixes|fixing|changed|changes|changing|removed|removes|updated|updates|made|makes)\b"
)
WRITTEN_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")


def fault(subject: str) -> str | None:
    """What is wrong with a subject; None: nothing."""
    if subject.startswith(WRITTEN_BY_GIT):
        return None
    if len(subject) > LONGEST:
        return f"has {len(subject)} characters; use at most {LONGEST}"
    if not subject[:1].isupper():
        return "must start with a capital letter, as in 'Match named columns by class'"
    if NOT_IMPERATIVE.match(subject):
        return "must be an imperative, as in 'Add a metric' or 'Fix the threshold'"
    if subject.endswith("."):
        return "ends with a period; leave it out"
    return None


if __name__ == "__main__":
    lines = [
        line
        for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    problem = fault(lines[0]) if lines and lines[0] else "is empty"
    if problem:
        sys.exit(f"The subject of the commit {problem}.")
