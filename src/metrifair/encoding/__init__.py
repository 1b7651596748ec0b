"""Raw tables -> numbers: the encoding of columns is learned once, and applies to every later
table.
"""
