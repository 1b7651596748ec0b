"""Ratios against the plain way and against peers, each pair measured in one run.

`make bench` prints them all.
"""
