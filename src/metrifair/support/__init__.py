"""The ground floor: errors, checks, files, processes, progress and provenance."""
