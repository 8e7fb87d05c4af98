"""The scraper of the gallery: takes the pictures, films and pages that a script writes, as its block names them."""

import re
import shutil
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

NAMED = re.compile(r"""["']([\w-]+)\.(png|gif)["']""")


def files_of_script(block, block_vars, gallery_conf):
    """Move what a block has written into the gallery, and return the text that shows it."""
    title = re.search(r'"""\s*(.+?)\n', Path(block_vars["src_file"]).read_text(encoding="utf-8"))
    made = []
    for stem, suffix in dict.fromkeys(NAMED.findall(block[1])):
        source = Path(f"{stem}.{suffix}")
        if source.exists():
            target = Path(next(block_vars["image_path_iterator"])).with_suffix(f".{suffix}")
            shutil.move(source, target)
            made.append(str(target))
    return figure_rst(made, gallery_conf["src_dir"], title[1] if title else "") if made else ""
