"""Count the logical lines of the package, without docstrings, comments and blank lines: --files counts every file.

A statement counts once, however many lines it takes; ``--tree`` names another checkout to count.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

from common import table

REPO = Path(__file__).resolve().parents[1]


def logical_lines(text: str) -> int:
    """Return the number of logical lines of a source text, docstrings apart."""
    count = sum(token.type == tokenize.NEWLINE for token in tokenize.generate_tokens(io.StringIO(text).readline))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            count -= ast.get_docstring(node) is not None
    return count


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=REPO, help="a checkout (default: this one)")
    parser.add_argument("--files", action="store_true", help="count by file")
    args = parser.parse_args()
    root = args.tree / "src" / "synovia"
    counts: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        name = "/".join(parts) if args.files else "/".join(parts[:-1][:2]) or "."
        counts[name] += logical_lines(path.read_text(encoding="utf-8"))
    print(table(["where", "logical lines"], [[name, n] for name, n in sorted(counts.items())]))
    print(f"\n{counts.total()} logical lines")


if __name__ == "__main__":
    main()
