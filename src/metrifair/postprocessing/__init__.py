"""Post-processing of any fitted model."""
