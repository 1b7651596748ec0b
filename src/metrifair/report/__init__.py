"""Pages and pictures: numbers (as text), charts (what is drawn), html (what all pages share), frontier, audit."""
