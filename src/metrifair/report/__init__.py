"""Result records in, charts and one self-contained HTML file out: numbers first (`view`), then drawings of them."""
