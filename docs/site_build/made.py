"""Parts of the site that the program makes when the site is built: the moving body, plots and tables of benchmarks."""

import json
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from contextlib import chdir
from multiprocessing import get_context
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

import synovia as sy
from site_build.clips import following
from site_build.options import tables as tables_of_options

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
OURS, OTHER = "#009e88", "#96a4b6"
PLAIN = {"segments": "Synovia, closed form", "synovia": "Synovia, lm"}


def result(name):
    """Return the committed figures of a benchmark."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def bars(rows, path, label, *, log=True):
    """Draw horizontal bars: (name, value, whether it is Synovia's)."""
    rows = sorted(rows, key=lambda row: -row[1])
    with plt.rc_context({"font.size": 10, "svg.fonttype": "path"}):
        figure, axes = plt.subplots(figsize=(7.2, 0.42 * len(rows) + 0.9), layout="constrained")
        axes.barh([row[0] for row in rows], [row[1] for row in rows], color=[OURS if row[2] else OTHER for row in rows])
        if log:
            axes.set_xscale("log")
            axes.set_xlim(left=1.0)
        axes.set_xlabel(label)
        axes.spines[["top", "right"]].set_visible(False)
        for place, row in enumerate(rows):
            text = f" {row[1]:,.0f}" if row[1] > 100 else f" {row[1]:.1f}"
            axes.text(row[1], place, text, va="center", fontsize=9)
        axes.set_xlim(right=max(row[1] for row in rows) * (2.2 if log else 1.15))
        figure.savefig(path, dpi=160)
        plt.close(figure)


def plots(folder):
    """Draw the plots of the page on benchmarks."""
    peers = result("peers")
    for robot in ("panda", "ur5e"):
        libraries = peers["tables"][f"{robot}, pose, 1e-6 m, 1e-6 rad"]["libraries"]
        rows = [
            (f"{PLAIN.get(name, name)} ({share:.1%})", one["median_us"], name in PLAIN)
            for name, one in libraries.items()
            if (share := one["success"]) > 0.5
        ]
        bars(rows, folder / f"peers_{robot}.png", "median of one call, µs (share of targets reached in brackets)")
    bulk = result("bulk")
    rows = [(row["way"], row["per_second"], True) for row in bulk["rows"] if row["threads"] == 2]
    bars(rows, folder / "bulk.png", "poses of a Panda solved in a second, two cores", log=False)
    chain = (RESULTS / "chain.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| 10 joints, 0\.01 +\| +([\w. -]+?) \| .*?\| +[\d.]+% \| +([\d.]+) \|", chain, re.MULTILINE)
    rows = [(name, float(value), name in sy.solvers) for name, value in found]
    bars(rows, folder / "chain.png", "median of one solve of ten balls to 1 % of the length, µs")


def tables(folder):
    """Copy the tables of all benchmarks as pages."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for source in sorted(RESULTS.glob("*.md")):
        text = source.read_text(encoding="utf-8")
        title = re.match(r"# (.*)", text)[1]
        names.append(source.stem)
        front = f"---\ndescription: {json.dumps('Measured: ' + title)}\n---\n\n"
        write(folder / source.name, front + text)
    listed = "\n".join(names)
    write(
        folder / "index.md",
        "---\ndescription: The tables of all benchmarks, with machine, versions and commands.\n---\n\n# Tables\n\n"
        "Each table names its command, the machine and the versions.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n",
    )


def write(path, text):
    """Write a page if it changes, so that a second build reads only what is new."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def page(name, folder):
    """Run the code of a page in a folder of its own, for its pictures; if the page has changed."""
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    if (folder / "made.py").exists() and (folder / "made.py").read_text(encoding="utf-8") == code:
        return
    shutil.rmtree(folder, ignore_errors=True)  # a guide does not replace its files
    folder.mkdir()
    for file in ("walk.bvh", "character.glb", "arm.urdf"):
        shutil.copy(ROOT / "examples" / file, folder)
    with chdir(folder):
        exec(compile(code, f"{name}.md", "exec"), {})
    (folder / "made.py").write_text(code, encoding="utf-8")


def pages(folder):
    """Run the code of pages with pictures, two at a time, those that take longest first."""
    names = ("tutorials/character", "guides/edit", "tutorials/robot", "tutorials/data")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(page, names, [folder / Path(name).name for name in names]))


def forget(folder):
    """Remove the pages of scripts that are no longer in the gallery."""
    scripts = {path.stem for path in (ROOT / "examples" / "gallery").glob("*.py")}
    for page in folder.glob("[0-9]*"):
        if page.name.partition(".")[0] not in scripts:
            page.unlink()


def build(app):
    """Make all parts."""
    source = Path(app.srcdir)
    forget(source / "gallery")
    made = source / "made"
    made.mkdir(exist_ok=True)
    plots(made)
    write(made / "options.md", tables_of_options())
    tables(source / "measured" / "results")
    pages(made)
    demo = Path(app.outdir) / "demo"
    demo.mkdir(parents=True, exist_ok=True)
    clip, curve = following()
    motion = sy.Motion(clip.motion.skeleton, clip.motion.q, clip.motion.fps, name="the right hand follows a curve")
    sy.formats.write_page(motion, demo / "following.html", targets=curve[:, None], force=True)


def setup(app):
    """Register."""
    app.connect("builder-inited", build, priority=100)  # before the gallery and the names are collected
    return {"parallel_read_safe": True, "parallel_write_safe": True}
