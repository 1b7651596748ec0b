"""Internal names of `metrifair.datasets` that tests use."""

from metrifair.datasets import fetch
from metrifair.datasets.fetch import RAW_FILES, RawFile, read
