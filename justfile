# Short names for what CONTRIBUTING.md describes.

_default:
    @just --list

# Everything that CI runs, or only the steps named
check *STEPS:
    .ci/run {{ STEPS }}

# The tests, with pytest's own arguments
test *ARGS:
    .venv/bin/pytest {{ ARGS }}

# Damaged files of every format, each within a second and 512 MiB: --cases 1000000 for all
fuzz *ARGS:
    .venv/bin/python benchmarks/fuzz/run.py {{ ARGS }}

# Format, and mend what ruff can mend
fix:
    .venv/bin/ruff format
    .venv/bin/ruff check --fix
