"""The page ``summary.html`` of an output folder: the worst clips first with their pictures, then the failures."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from synovia.batch.ledger import Row, columns_of, csv_bytes
from synovia.batch.work import DONE
from synovia.errors import FileError, MissingExtraError, SynoviaError
from synovia.io.base import write_text

_PICTURES: Final = 12  # of the worst results
_WORST: Final = 200  # rows of results, and of failures; the ledger has all
_VERDICTS: Final = ("failed", "look", "good")
_HIDDEN: Final = ("output", "sha256", "settings", "error")

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #66707a; --line: #dfe3e7; --back: #fff; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --soft: #9aa4ad; --line: #343b42; --back: #15191d; --bad: #ff8a80; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; } .soft { color: var(--soft); }
.bad { color: var(--bad); } table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); }
td { overflow-wrap: anywhere; } td.n { font-variant-numeric: tabular-nums; white-space: nowrap; }
.worst { display: grid; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); gap: 1.2rem; }
figure { margin: 0; } figure img { width: 100%; border: 1px solid var(--line); border-radius: 4px; }
figcaption { font-size: .87rem; overflow-wrap: anywhere; } .scroll { overflow-x: auto; }
"""


def badness(row: Row) -> tuple[float, ...]:
    """Return how bad a result is, for sorting: verdict, share of missed frames, number of findings, largest error."""
    verdict = row.figures.get("verdict", "good")
    rank = _VERDICTS.index(verdict) if verdict in _VERDICTS else len(_VERDICTS)
    findings = row.figures.get("findings", "")
    share = row.figure("missed") / max(row.figure("frames"), 1.0)
    return -rank, share, findings.count(";") + bool(findings), row.figure("worst")


def worst_first(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of results, the worst first."""
    done = sorted((row for row in rows if row.status == DONE), key=lambda row: (row.input, row.output))
    return sorted(done, key=badness, reverse=True)


def write_summary(
    folder: Path, rows: Sequence[Row], settings: Mapping[str, Any], picture: Callable[[Path], bytes | None]
) -> Path:
    """Write the page, unless it shows these rows already.

    Args:
        folder: The output folder.
        rows: The rows of the ledger.
        settings: Settings of the last run.
        picture: Returns a picture of an output as PNG.

    Raises:
        FileError: If it cannot be written.
    """
    path = folder / "summary.html"
    shown = hashlib.sha256(csv_bytes(rows) + repr(sorted(settings.items())).encode()).hexdigest()[:16]
    mark = f"<!-- ledger {shown} -->"
    if path.exists() and mark in path.read_text(encoding="utf-8", errors="replace")[:400]:
        return path
    worst, failures = worst_first(rows), [row for row in rows if row.status != DONE]
    verdicts = Counter(row.figures["verdict"] for row in worst if "verdict" in row.figures)
    counted = ", ".join(f"{verdicts[name]} {name}" for name in _VERDICTS if verdicts[name])
    title = f"{settings.get('command', 'batch')}: {len(worst)} done, {len(failures)} failed"
    parts = [
        f"<!doctype html>{mark}<html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>",
        "<meta name='viewport' content='width=device-width'>",
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>",
        f"<p>{escape(counted)}</p>" if counted else "",
        "<p class='soft'>Every row is in <a href='ledger.csv'>ledger.csv</a>, times and stacks in ledger.log.</p>",
        _gallery(folder, worst[:_PICTURES], picture),
        _failures(failures),
        _table(worst),
        "<h2>Settings of the last run</h2>",
        _settings(settings),
        "</html>\n",
    ]
    write_text(path, "\n".join(part for part in parts if part), force=True)
    return path


def _gallery(folder: Path, rows: Sequence[Row], picture: Callable[[Path], bytes | None]) -> str:
    """Return the pictures of the worst results."""
    figures: list[str] = []
    for row in rows:
        try:
            drawn = picture(folder / row.output)
        except MissingExtraError as error:
            return f"<p class='soft'>No pictures: {escape(str(error))}</p>"
        except FileError:
            if (folder / row.output).exists():  # the disk is full: another run draws it
                raise
            drawn = None
        except (SynoviaError, ValueError):  # the file was changed by someone else
            drawn = None
        if drawn is None:
            continue
        told = ", ".join(f"{name} {_short(row.figures[name])}" for name in _told(row))
        source = f"data:image/png;base64,{base64.b64encode(drawn).decode()}"
        link = f"<a href='{quote(row.output)}'>{escape(row.input)}</a>"
        figures.append(
            f"<figure><img alt='' src='{source}'><figcaption>{link}<br>"
            f"<span class='soft'>{escape(told)}</span></figcaption></figure>"
        )
    return f"<h2>The worst first</h2><div class='worst'>{''.join(figures)}</div>" if figures else ""


def _told(row: Row) -> list[str]:
    """Return the figures to tell below a picture, the verdict first."""
    return sorted(row.figures, key=lambda name: (name != "verdict", name))


def _short(text: str) -> str:
    """Return a figure with four digits."""
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:.4g}" if value % 1.0 else f"{value:.0f}"


def _failures(rows: Sequence[Row]) -> str:
    """Return a table of the failures."""
    if not rows:
        return ""
    cells = "".join(f"<tr><td>{escape(row.input)}<td class='bad'>{escape(row.error)}" for row in rows[:_WORST])
    more = f"<p class='soft'>and {len(rows) - _WORST} more</p>" if len(rows) > _WORST else ""
    return f"<h2>Failures</h2><table><tr><th>input<th>reason{cells}</table>{more}"


def _table(rows: Sequence[Row]) -> str:
    """Return a table of the results."""
    if not rows:
        return ""
    names = [name for name in columns_of(rows) if name not in _HIDDEN and any(row.fields().get(name) for row in rows)]
    head = "".join(f"<th>{escape(name)}" for name in names)
    lines: list[str] = []
    for row in rows[:_WORST]:
        fields = row.fields()
        link = f"<td><a href='{quote(row.output)}'>{escape(row.input)}</a>"
        lines.append(
            "<tr>" + link + "".join(f"<td class='n'>{escape(_short(fields.get(name, '')))}" for name in names[1:])
        )
    more = f"<p class='soft'>and {len(rows) - _WORST} more</p>" if len(rows) > _WORST else ""
    return f"<h2>Results, the worst first</h2><div class='scroll'><table><tr>{head}{''.join(lines)}</table></div>{more}"


def _settings(settings: Mapping[str, Any]) -> str:
    """Return a table of the settings."""
    cells = "".join(f"<tr><td>{escape(name)}<td>{escape(str(value))}" for name, value in sorted(settings.items()))
    return f"<table>{cells}</table>"
