"""Internal names of `metrifair.nn` that tests use."""

from metrifair.nn import on_device, penalty, samplers
from metrifair.nn.penalty import BatchRows, CellLookup, plain_sides, value_and_slopes
from metrifair.nn.samplers import BatchValues, make_scheme
