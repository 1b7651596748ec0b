"""How files write missing values and numbers.

No NumPy here: ``metrifair --help`` needs these words.
"""

# in lower case: not a number, label or target
MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "?")
# A leading zero makes text a code, such as 02139; a plus, or an underscore, which Python ignores,
# makes it a name.
NUMBER = r"-?(?!0\d)(?:\d{1,301}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
CODE = r"^[+-]?0\d"
COMMA = r"^\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*$"  # a number with a decimal comma
UNKNOWN_NAMES = (
    *MISSING_WORDS,
    "-",
    "NIL",
    "Unknown",
    "Missing",
    "Undefined",
    "Not available",
    "Not known",
    "Not stated",
    "Not specified",
    "Unspecified",
    "Not disclosed",
    "Undisclosed",
    "Not provided",
    "Not reported",
    "No answer",
    "No response",
    "Decline to state",
    "Decline to answer",
    "Declined to state",
    "Declined to answer",
    "Prefer not to say",
    "Prefer not to answer",
    "Prefer not to disclose",
    "I prefer not to say",
    "I prefer not to answer",
    "I prefer not to disclose",
    "Choose not to disclose",
    "I choose not to disclose",
    "I do not wish to answer",
)
"""Names of groups of people whose group is not known. Case, spaces and punctuation do not count."""
