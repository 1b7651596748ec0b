"""The internal names that tests use: one module for each room of the package.

A test imports a public name from its public module, and any other name from here. A rename or a
move in src then changes one file of tests.
"""
