"""The API reference: public names where docstrings and signatures name the modules that define them."""

import inspect
import math
import re
import sys

from docutils import nodes
from sphinx.util.inspect import stringify_signature

import synovia
from synovia import lazy

PUBLIC = lazy.public_names(synovia)
OTHERS = ("batch.", "jobs.", "streams.")  # not in the reference
SHORT = {name.rpartition(".")[2]: f"synovia.{name}" for name in PUBLIC if not name.startswith(OTHERS)}
NAMES = {f"{module}.{name}": f"synovia.{name}" for name, module in synovia._homes.items()} | {
    f"{thing.__module__}.{thing.__qualname__}": f"synovia.{name}"
    for name, thing in PUBLIC.items()
    if inspect.isclass(thing) or inspect.isfunction(thing)
}
NUMBERS = {repr(math.pi): "pi", repr(math.pi / 4): "pi / 4", repr(sys.float_info.max): "inf"}  # as signatures show them


def resolve(app, env, node, contnode):
    """Link a type of a signature to the page of its public name; leave other names as text."""
    target = node.get("reftarget", "")
    short = target.rpartition(".")[2]
    public = NAMES.get(target) or SHORT.get(short)
    if public is None or node.get("refdomain") != "py":
        return None
    for domain_type in ("class", "func", "data", "exc"):
        made = env.domains["py"].resolve_xref(
            env, node["refdoc"], app.builder, domain_type, public, node, nodes.literal("", short)
        )
        if made is not None:
            return made
    return None


def plain_signature(app, what, name, thing, options, signature, returned):
    """Show the arguments of a class that checks them itself; shorten types: `synovia.ik.Status` reads `Status`."""
    del app, name, options
    if what == "class" and signature is not None and signature.startswith("(*args"):
        arguments = inspect.signature(thing.__init__)
        arguments = arguments.replace(
            parameters=list(arguments.parameters.values())[1:], return_annotation=inspect.Signature.empty
        )
        signature = stringify_signature(arguments, unqualified_typehints=True)

    def short(text):
        for number, name in NUMBERS.items():
            text = text and text.replace(number, name)
        return text and re.sub(r"\b(?:synovia|numpy|collections|scipy|typing|PIL)(?:\.\w+)*\.(?=\w)", "", text)

    return short(signature), short(returned)


def norms(app, what, name, thing, options, lines):
    """Keep the bars of |a x b|: they mark no substitution. Those in literals are kept by these."""
    del app, what, name, thing, options
    for k, line in enumerate(lines):
        parts = line.split("``")  # every second one is a literal
        lines[k] = "``".join(part if i % 2 else part.replace("|", r"\|") for i, part in enumerate(parts))


def _alias(thing):
    """Whether it is a field of a named tuple, whose class describes it already."""
    return (inspect.getdoc(thing) or "").startswith("Alias for field number")


def skip(app, what, name, thing, skip, options):
    """Leave out what goals and solvers have for the other parts of the library, which users do not call."""
    del app, what, options
    if name in ("diagnosis", "trusted", "quick", "ready") or _alias(thing):
        return True
    if inspect.isfunction(thing) and thing.__module__.startswith(("synovia.goals", "synovia.solver")):
        public = {"residual", "jacobian", "from_bank"}
        return name not in public or skip
    return skip


def setup(app):
    """Register."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-process-docstring", norms)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
