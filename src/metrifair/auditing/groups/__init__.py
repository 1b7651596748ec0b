"""The search for groups that a model treats worse: conditions, counts, claims, and their record."""
