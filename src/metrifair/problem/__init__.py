"""User input -> one validated record -> cells and comparisons: the only place that interprets
input.
"""
