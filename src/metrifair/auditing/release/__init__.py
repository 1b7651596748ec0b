"""What is released of an audit: counts without small cells, evidence, a list of releases."""
