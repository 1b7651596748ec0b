"""What changes between audits: differences, models on the same rows, and series."""
