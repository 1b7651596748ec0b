"""Records turned into sentences: one template for each kind of fact."""
