"""The report on an audit: what it says (words, glossary), what it draws (charts), and the page (content, page)."""
