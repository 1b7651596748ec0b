"""The report on a frontier: view (its numbers), words (its sentences), page (HTML, and charts for notebooks)."""
