# Short names for what CONTRIBUTING.md describes.

_default:
    @just --list

# Everything that CI runs, or only the steps named
check *STEPS:
    .ci/run {{ STEPS }}

# The tests, with pytest's own arguments
test *ARGS:
    .venv/bin/pytest {{ ARGS }}

# Format, and mend what ruff can mend
fix:
    .venv/bin/ruff format
    .venv/bin/ruff check --fix
