"""Raw tables -> numbers: what the columns of a table mean is learned once, and holds for every later table."""
