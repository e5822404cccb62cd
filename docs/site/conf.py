"""The documentation as a site, from the same pages that a reader of the sources sees: `make docs`."""

from trellis import __version__

project = "Trellis"
version = release = __version__
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/contributing/*.md", "docs/decisions/*.md"]
exclude_patterns = [".*", "bench", "build", "dist", "packaging", "requirements", "scripts", "src", "tests", "var"]  # not searched
extensions = ["myst_parser"]
myst_enable_extensions = ["tasklist"]
myst_heading_anchors = 4
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # Pygments does not know HAProxy
html_theme = "furo"
html_title = f"Trellis {__version__}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
templates_path = ["templates"]
html_additional_pages = {"index": "start.html"}
