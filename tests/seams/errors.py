"""Internal names of `metrifair.errors` that tests use."""

from metrifair.errors import remedy_text
