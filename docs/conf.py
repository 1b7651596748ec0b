"""How the site is made of the pages in this folder, the docstrings and the examples: ``make
docs``.
"""

import os
import sys
import tomllib
from pathlib import Path

import metrifair

sys.path.insert(0, str(Path(__file__).parent))


def repository() -> str:
    """Address of the repository: from pyproject.toml, or from the GitHub workflow that builds
    the site; else empty.
    """
    written = tomllib.loads(
        (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    )
    address: str = written["project"].get("urls", {}).get("Repository", "")
    here = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}"
    return address or (here.format_map(os.environ) if "GITHUB_REPOSITORY" in os.environ else "")


project = "metrifair"
author = "The metrifair developers"
project_copyright = "the metrifair developers, MIT license"
release = version = metrifair.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "extension",
    "picture",
    "reading_list",
    "search_terms",
]
exclude_patterns = [
    "_build",
    "results/raw",
    "gallery/**.ipynb",
    "gallery/sg_execution_times.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
root_doc = "index"
nitpicky = False
default_role = "code"
highlight_language = "python"
smartquotes = False

# Pages
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline", "attrs_block"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# Reference
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
add_module_names = False
toc_object_entries = False
python_display_short_literal_types = True

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("metrifair",),
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("extension.drawing_style",),
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "plot_gallery": True,
    "abort_on_example_error": False,
    "capture_repr": (),
    "parallel": 2,
    "thumbnail_size": (480, 320),
    "write_computation_times": False,
    "min_reported_time": 5,
}

# Appearance
html_theme = "pydata_sphinx_theme"
html_title = "metrifair"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("copy.js", {"defer": "defer"})]
html_favicon = "_static/favicon.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
html_sidebars = {"index": [], "**": ["sidebar-nav-bs"]}
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_context = {"default_mode": "auto", "repository": repository()}
html_theme_options = {
    "logo": {
        "image_light": "_static/logo-light.svg",
        "image_dark": "_static/logo-dark.svg",
        "alt_text": "metrifair",
    },
    "navbar_align": "left",
    "navbar_start": ["navbar-logo", "version"],
    "navbar_end": ["repository", "theme-switcher"],
    "show_nav_level": 0,  # captions of a section are groups to open
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "primary_sidebar_end": [],
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "search_bar_text": "Search",
    "back_to_top_button": True,
}
