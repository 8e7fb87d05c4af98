"""The settings of the documentation site: ``sphinx-build docs OUT``. Needs no network.

Folders that the build makes and git ignores: docs/gallery, docs/api/names, docs/made, docs/measured/results.
"""

import os
import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT / "src"), str(DOCS)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])  # for the notebook
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from site_build import gallery  # noqa: E402

project = "Synovia"
author = "The Synovia developers"
project_copyright = author
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "site_build.links",
    "site_build.made",
    "site_build.moved",
    "site_build.pages",
    "site_build.reference",
]
exclude_patterns = [
    "site_build",
    "_templates",
    "made/*.md",
    "made/**/*.md",
    "gallery/*.ipynb",
    "gallery/*.py",
    "**/.ipynb_checkpoints",
]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the scraper of the gallery is a function

# --- pages ----------------------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "deflist", "attrs_block", "attrs_inline", "fieldlist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
nb_execution_mode = "force"
nb_execution_timeout = 200
nb_execution_raise_on_error = True
nb_merge_streams = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# --- reference ------------------------------------------------------------------------------------------------------

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = False  # it cannot read signatures that share their options
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "code"

# --- gallery --------------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples" / "gallery")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": (gallery.files_of_script,),
    "reset_modules": (),
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "thumbnail_size": (400, 300),
    "parallel": 2,
    "promote_jupyter_magic": False,
}

# --- looks ----------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "Synovia"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#00705f",
        "color-brand-content": "#00705f",
        "color-brand-visited": "#5b3fa0",
    },
    "dark_css_variables": {
        "color-brand-primary": "#2dd4b4",
        "color-brand-content": "#2dd4b4",
        "color-brand-visited": "#b49cf0",
    },
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
