"""Pages and pictures: charts (their content), html (common parts of pages), pdf, frontier, audit.

The names in the stub are imported when they are first used: an audit that writes no page imports
nothing from here.
"""

from metrifair.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
