"""The ways in which metrifair refuses to go on, or goes on with a word of warning; each says what to do."""


class DataError(ValueError):
    """An argument or a file that cannot be used as it is.

    >>> issubclass(DataError, ValueError)
    True
    """


class TooFewSamples(DataError):
    """A quantity that needs more samples than it was given."""


class Diverged(DataError):
    """Training whose parameters grew beyond all bounds."""


class ModelFileError(DataError):
    """A model file that is damaged, hostile, or written by a later version."""


class MissingModelFile(ModelFileError, FileNotFoundError):
    """A model file that is not there."""


class MissingExtra(ImportError):
    """A function that needs an optional dependency which is not installed."""


class MetrifairWarning(UserWarning):
    """Something that was asked for and could not be had as it was; the work goes on without it."""
