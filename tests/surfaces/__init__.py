"""The surfaces of ``tests/approvals.py``: functions that render what people read."""
