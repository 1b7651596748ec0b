"""Where scores come from: memory, files, tables, databases and states; and their counts."""
