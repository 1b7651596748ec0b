"""What users hand over -> one checked record -> cells and comparisons: the only place that interprets input."""
