"""The report on an audit: charts, sections, and the page."""
