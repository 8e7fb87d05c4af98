"""The page ``summary.html`` of an output folder: the worst results with pictures, all failures, and a table.

The page needs no network: it contains its pictures, and a few lines of script to filter and sort the rows.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from synovia.batch.inputs import escaped
from synovia.batch.ledger import PAGE, Row, csv_bytes
from synovia.batch.work import DONE, GONE, Picture
from synovia.errors import FileError, MissingExtraError, SynoviaError
from synovia.io.base import write_bytes
from synovia.io.load import formats

_PICTURES: Final = 12  # number of results with a picture; these are the worst results
_MOST: Final = 2000  # largest number of rows in each table of the page; the ledger has all rows
_LEAST: Final = 1e-4  # smaller figures are rounding errors; the table shows them as "< 0.0001"
_FIGURES: Final = 7  # largest number of columns with numbers, so that the table fits on a screen
_VERDICTS: Final = ("failed", "look", "good")
_MEANINGS: Final = {
    "not done": "There is no result",
    "failed": "Verdict of the clip check: do not use this clip",
    "look": "Verdict of the clip check: look at this clip before you use it",
    "good": "The clip check found no problems",
}
_UNJUDGED: Final = "done"  # shown in place of a verdict for results that are not judged


class _Figure(NamedTuple):
    """Title and explanation of a ledger figure on the page.

    Args:
        title: Short name with the unit.
        text: Explanation.
    """

    title: str
    text: str


# figures with names, in the order of the table's columns
_NAMED: Final = {
    "frames": _Figure("frames", "Frames of the result; rows of a table"),
    "bad_frames": _Figure("bad frames", "Number of frames with a finding that lowers the verdict"),
    "missed": _Figure("missed", "Frames or rows whose goals are missed"),
    "worst": _Figure("worst miss", "Largest distance from a target, length units of the model"),
    "limb_deg": _Figure("limbs off, °", "Mean angle between limb and source limb, for the worst limb"),
    "foot_slide": _Figure("feet slide, legs/s", "Sliding speed of a standing foot, in leg lengths per second"),
    "foot_depth": _Figure("feet sink, legs", "Largest depth of a foot below the ground, in leg lengths"),
    "median_error": _Figure("median error", "Median distance between points and body, length units"),
    "p99_error": _Figure("99 % error", "99th percentile of the distance between points and body, length units"),
    "slide_before": _Figure("slide before", "Slide of the feet in the input, length units"),
    "slide": _Figure("slide", "Slide of the feet in the result, length units"),
    "jumps": _Figure("jumps", "Number of frames whose pose jumps from the previous frame"),
}

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #5c6670; --line: #dfe3e7; --back: #fff; --card: #f6f8f9;
  --failed: #b3261e; --look: #8a5300; --good: #1a6e45; --done: #5c6670; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #9aa4ad; --line: #343b42; --back: #15191d;
  --card: #1c2126; --failed: #ff8a80; --look: #ffb95c; --good: #6fd6a0; --done: #9aa4ad; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 1.5rem auto 4rem;
  max-width: 74rem; padding: 0 1.5rem; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; }
p { margin: .3rem 0; } a { color: inherit; } code { font-size: .92em; }
.soft { color: var(--soft); } .hidden { display: none; }
nav { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; position: sticky; top: 0; padding: .6rem 0;
  background: var(--back); border-bottom: 1px solid var(--line); z-index: 1; }
nav label { cursor: pointer; } nav input[type=radio] { position: absolute; opacity: 0; }
nav span { display: inline-block; padding: .15rem .8rem; border: 1px solid var(--line); border-radius: 1rem; }
nav input:checked + span { background: var(--ink); color: var(--back); border-color: var(--ink); }
nav input:focus-visible + span { outline: 2px solid var(--look); }
nav input[type=search] { margin-left: auto; padding: .25rem .6rem; font: inherit; width: 16rem; }
article { padding: .8rem 1rem; margin-bottom: 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 6px; } article header { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline; }
article img { max-width: 100%; display: block; margin: .5rem auto; border-radius: 4px; }
article h3 { font-size: 1rem; margin: 0; }
.name { overflow-wrap: anywhere; } .verdict { font-weight: 600; white-space: nowrap; }
.failed { color: var(--failed); } .look { color: var(--look); } .good { color: var(--good); }
.done { color: var(--done); }
dl { display: flex; flex-wrap: wrap; gap: .2rem 1.6rem; margin: .3rem 0 0; font-size: .87rem; }
dl div { display: flex; gap: .4rem; } dt { color: var(--soft); }
dd { margin: 0; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; } .scroll { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; } th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--look); }
td.name { min-width: 9rem; } .reasons td.name { min-width: 17rem; }
td.n { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
th.n { text-align: right; } td:last-child, th:last-child { padding-right: 0; } summary { cursor: pointer; }
"""

_SCRIPT: Final = """
const items = [...document.querySelectorAll('[data-kind]')], search = document.querySelector('nav input[type=search]');
function filter() {
  const kind = document.querySelector('nav input:checked').value, text = search.value.toLowerCase();
  for (const one of items) one.classList.toggle('hidden',
    (kind && one.dataset.kind !== kind) || !one.dataset.name.toLowerCase().includes(text));
  for (const part of document.querySelectorAll('section')) part.classList.toggle('hidden',
    !part.querySelector('[data-kind]:not(.hidden)'));
}
document.querySelector('nav').addEventListener('input', filter);
for (const button of document.querySelectorAll('th button')) button.addEventListener('click', () => {
  const head = button.parentElement, body = head.closest('table').tBodies[0], at = head.cellIndex;
  const down = head.getAttribute('aria-sort') !== 'descending';
  for (const other of head.parentElement.cells) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const value = row => row.cells[at].dataset.value ?? row.cells[at].textContent, sign = down ? -1 : 1;
  const numbers = head.classList.contains('n');
  const order = (a, b) => numbers ? (Number(a) || 0) - (Number(b) || 0) : a.localeCompare(b);
  body.append(...[...body.rows].sort((a, b) => sign * order(value(a), value(b))));
});
filter();
"""


def badness(row: Row) -> tuple[float, ...]:
    """Return a sort key for how bad a result is.

    The verdict comes first. Results with the same verdict are compared by the share of bad frames, the share of missed
    frames, the number of findings, and the largest errors.
    """
    verdict = row.figures.get("verdict", "good")
    rank = _VERDICTS.index(verdict) if verdict in _VERDICTS else len(_VERDICTS)
    findings = row.figures.get("findings", "")
    frames = max(row.figure("frames"), 1.0)
    return (
        -rank,
        row.figure("bad_frames") / frames,
        row.figure("missed") / frames,
        findings.count(";") + bool(findings),
        row.figure("limb_deg"),
        row.figure("worst"),
    )


def worst_first(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of results, the worst first; equal rows keep their order."""
    return sorted((row for row in rows if row.status in (DONE, GONE)), key=badness, reverse=True)


def write_summary(
    folder: Path,
    rows: Sequence[Row],
    settings: Mapping[str, Any],
    picture: Callable[[Path, Path | None], Picture | None],
    sources: Mapping[str, Path],
) -> Path:
    """Write the page, unless it already shows these rows and settings.

    Args:
        folder: The output folder.
        rows: The rows of the ledger.
        settings: Settings of the last run.
        picture: Returns a picture of an output, next to its input if the input is given.
        sources: Known inputs by output.

    Raises:
        FileError: If the page cannot be written.
    """
    path = folder / PAGE
    shown = hashlib.sha256(csv_bytes(rows) + repr(sorted(settings.items())).encode()).hexdigest()[:16]
    mark = f"<!-- ledger {shown} -->"
    if path.exists() and mark in path.read_text(encoding="utf-8", errors="replace")[:400]:
        return path
    worst, failures = worst_first(rows), [row for row in rows if row.status not in (DONE, GONE)]
    title = f"{settings.get('command', 'batch')}: {len(worst)} done, {len(failures)} failed"
    parts = [
        f"<!doctype html>{mark}<html lang='en'><meta charset='utf-8'><title>{escape(title)}</title>",
        "<meta name='viewport' content='width=device-width'>",
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>",
        "<p class='soft'>All rows: <a href='ledger.csv'>ledger.csv</a>. Times and stacks: ledger.log.</p>",
        _filters(worst, failures),
        _gallery(folder, worst[:_PICTURES], picture, sources),
        _failures(failures),
        _table(worst),
        _settings(settings),
        f"<script>{_SCRIPT}</script></html>\n",
    ]
    text = "\n".join(filter(None, parts))
    write_bytes(path, text.encode("utf-8", "backslashreplace"), force=True)  # settings may hold lone surrogates
    return path


def _kind(row: Row) -> str:
    """Return the verdict of a result; ``"not done"`` for a failure."""
    return row.figures.get("verdict", _UNJUDGED) if row.status in (DONE, GONE) else "not done"


def _name(row: Row) -> str:
    """Return the name of an input, escaped for HTML text and attributes."""
    return escape(escaped(row.input), quote=True)


def _tagged(tag: str, row: Row) -> str:
    """Return the start tag of an element that the filters show or hide."""
    return f"<{tag} data-kind='{escape(_kind(row))}' data-name='{_name(row)}'>"


def _filters(worst: Sequence[Row], failures: Sequence[Row]) -> str:
    """Return HTML with a button for each verdict, and a search field for names."""
    counts = Counter(map(_kind, (*worst, *failures)))
    kinds = [kind for kind in ("not done", *_VERDICTS, _UNJUDGED) if counts[kind]]
    buttons = [("", "all", counts.total()), *((kind, kind, counts[kind]) for kind in kinds)]
    chips = "".join(
        f"<label title='{_MEANINGS.get(kind, '')}'>"
        f"<input type='radio' name='kind' value='{kind}'{'' if kind else ' checked'}>"
        f"<span>{text} {count}</span></label>"
        for kind, text, count in buttons
    )
    return f"<nav>{chips}<input type='search' placeholder='filter by name' aria-label='filter by name'></nav>"


def _gallery(
    folder: Path,
    rows: Sequence[Row],
    picture: Callable[[Path, Path | None], Picture | None],
    sources: Mapping[str, Path],
) -> str:
    """Return HTML with the pictures of the worst results."""
    cards: list[str] = []
    paired = False
    for row in rows:
        try:
            drawn = _drawn(folder / row.output, sources.get(row.output), picture)
        except MissingExtraError as error:
            return f"<p class='soft'>No pictures: {escape(str(error))}</p>"
        if drawn is None:
            continue
        paired = paired or drawn.paired
        source = f"data:image/png;base64,{base64.b64encode(drawn.png).decode()}"
        image = f"<img alt='{_name(row)}, stills' src='{source}'>"
        cards.append(f"{_tagged('article', row)}<header>{_heading(row)}</header>{image}{_details(row)}</article>")
    how = "by verdict, then by the share of frames with problems"
    pairs = " Each still shows the source on the left and the result on the right." if paired else ""
    head = f"<h2>The worst first</h2><p class='soft'>Ordered {how}.{pairs}{_how_to_view(rows[0]) if rows else ''}</p>"
    return f"<section>{head}{''.join(cards)}</section>" if cards else ""


def _how_to_view(row: Row) -> str:
    """Return a sentence with the command that plays a result; "" if its file needs a model or holds no motion."""
    known = {ending: fmt.read_onto is None for fmt in formats() if fmt.holds_motions for ending in fmt.extensions}
    fitting = [ending for ending in known if row.output.lower().endswith(ending)]
    if not fitting or not known[max(fitting, key=len)]:  # the longest ending decides
        return ""
    command = escape(escaped(f"synovia view {shlex.quote(row.output)}", backslash=False))
    return f" To play the first one, run <code>{command}</code> in this folder."


def _drawn(output: Path, source: Path | None, picture: Callable[[Path, Path | None], Picture | None]) -> Picture | None:
    """Return a picture of an output; None if it cannot be drawn.

    Raises:
        FileError: If the disk is full.
        MissingExtraError: If Pillow is not installed.
    """
    for shown in (source, None):  # draw without the input if the input is no longer readable
        try:
            return picture(output, shown)
        except MissingExtraError:
            raise
        except FileError:
            if shown is None and output.exists():  # if the disk is full; a later run then draws the picture
                raise
        except (SynoviaError, ValueError):  # if another program changed the file
            continue
    return None


def _heading(row: Row) -> str:
    """Return HTML with the name, verdict and findings of a result."""
    verdict = _kind(row)
    name = f"<h3 class='name'><a href='{quote(os.fsencode(row.output))}'>{_name(row)}</a></h3>"
    gone = " <span class='soft'>(the input was deleted)</span>" if row.status == GONE else ""
    findings = escape(row.figures.get("findings", ""))
    return f"{name}<span class='verdict {escape(verdict)}'>{escape(verdict)}</span>{gone}<span>{findings}</span>"


def _details(row: Row) -> str:
    """Return HTML with the notes and figures of a result."""
    names = [name for name in dict.fromkeys((*_NAMED, *sorted(row.figures))) if name in row.figures]
    figures = "".join(
        f"<div title='{escape(_figure(name).text, quote=True)}'><dt>{escape(_figure(name).title)}"
        f"<dd>{escape(_short(row.figures[name]))}</div>"
        for name in names
        if name not in ("verdict", "findings", "notes")
    )
    notes = escape(row.figures.get("notes", ""))
    return (f"<p class='soft'>{notes}</p>" if notes else "") + f"<dl>{figures}</dl>"


def _figure(name: str) -> _Figure:
    """Return the title and explanation of a figure on the page."""
    return _NAMED.get(name, _Figure(name.replace("_", " "), ""))


def _short(text: str) -> str:
    """Return a figure with three significant digits; whole numbers and texts in full."""
    try:
        value = float(text)
    except ValueError:
        return text
    if 0.0 < abs(value) < _LEAST:
        return f"< {_LEAST:g}"
    return f"{value:.3g}" if value % 1.0 else f"{value:.0f}"


def _failures(rows: Sequence[Row]) -> str:
    """Return an HTML table of the failures."""
    if not rows:
        return ""
    cells = "".join(
        f"{_tagged('tr', row)}<td class='name'>{_name(row)}<td class='failed'>{escape(_reason(row))}"
        for row in rows[:_MOST]
    )
    head = "<thead><tr><th>input<th>reason</thead>"
    table = f"<table class='reasons'>{head}<tbody>{cells}</tbody></table>"
    return f"<section><h2>Not done</h2><div class='scroll'>{table}</div>{_more(rows)}</section>"


def _reason(row: Row) -> str:
    """Return the error of a failure without the name of its input, which has its own column."""
    text = row.error.removeprefix(escaped(row.input))
    return text.lstrip(",: ") if text[:1] in (",", ":") else row.error


def _more(rows: Sequence[Row]) -> str:
    """Return a line with the number of rows that only the ledger shows."""
    return f"<p class='soft'>and {len(rows) - _MOST} more in the ledger</p>" if len(rows) > _MOST else ""


def _table(rows: Sequence[Row]) -> str:
    """Return an HTML table of the results."""
    if not rows:
        return ""
    there = sorted({name for row in rows for name in row.figures})
    texts = [name for name in ("verdict", "findings", "notes") if name in there]
    numbers = [name for name in dict.fromkeys((*_NAMED, *there)) if name in there and name not in texts][:_FIGURES]
    head = "".join(f"<th><button>{escape(name)}</button>" for name in ("input", *texts))
    head += "".join(
        f"<th class='n' title='{escape(_figure(name).text, quote=True)}'><button>{escape(_figure(name).title)}</button>"
        for name in numbers
    )
    lines: list[str] = []
    for row in rows[:_MOST]:
        verdict = row.figures.get("verdict", "")
        mark = " <span class='soft'>(deleted)</span>" if row.status == GONE else ""
        cells = f"<td class='name'><a href='{quote(os.fsencode(row.output))}'>{_name(row)}</a>{mark}"
        for name in texts:
            style = f" class='verdict {escape(verdict)}'" if name == "verdict" else ""
            cells += f"<td{style}>{escape(row.figures.get(name, ''))}"
        for name in numbers:
            value = row.figures.get(name, "")
            cells += f"<td class='n' data-value='{escape(value, quote=True)}'>{escape(_short(value))}"
        lines.append(_tagged("tr", row) + cells)
    table = f"<table><thead><tr>{head}</thead><tbody>{''.join(lines)}</tbody></table>"
    return f"<section><h2>Results</h2><div class='scroll'>{table}</div>{_more(rows)}</section>"


def _settings(settings: Mapping[str, Any]) -> str:
    """Return an HTML table of the settings."""
    cells = "".join(f"<tr><td>{escape(name)}<td>{escape(str(value))}" for name, value in sorted(settings.items()))
    return f"<details><summary>Settings of the last run</summary><table>{cells}</table></details>"
