"""The tables of the options of jobs, from their fields."""

import synovia as sy
from synovia.jobs.options import options_of, table_of


def tables():
    """Return the tables as Markdown."""
    parts = []
    for command in sy.jobs.verb_names():
        parts.append(f"## synovia {command}")
        for job in sy.jobs.verb(command).jobs:
            first_line = job.__doc__.partition("\n")[0]
            parts.append(f"### {job.__name__}\n\n{first_line} In Python: `sy.jobs.{job.__name__}`.")
            parts.append("\n".join(table_of(options_of(job))))
    parts.append("## How a job runs\n\nEach of these commands has these options, too.")
    parts.append("\n".join(table_of(options_of(sy.jobs.Running))))
    return "\n\n".join(parts) + "\n"
