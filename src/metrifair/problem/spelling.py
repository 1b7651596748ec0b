"""How files write missing values and numbers. No NumPy here: ``metrifair --help`` needs these words."""

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in lower case: not a number, label or target
COMMA = r"^\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*$"  # a number with a decimal comma
