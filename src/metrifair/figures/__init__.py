"""Statistics of scores and decisions: values in, values out."""
