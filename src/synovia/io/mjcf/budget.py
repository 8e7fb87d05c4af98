"""Limit the size of a compiled MuJoCo model before the compiler runs.

A short model file can ask for any number of bodies, vertices, cells or simulated steps, and the compile time grows with
their squares. A model within these limits compiles in about half a second.
"""

from __future__ import annotations

import math
import re
from typing import Final

from synovia.io.xmltree import Element

MOST_BODIES: Final = 2500
MOST_ELEMENTS: Final = 15_000
MOST_POINTS: Final = 1000  # largest number of points of deformable objects; each becomes a body
MOST_CELLS: Final = 2**24  # largest number of cells of textures and height fields
MOST_CORNERS: Final = 50_000  # largest number of vertices of built-in meshes; each mesh counts as at least 1000
MOST_STEPS: Final = 10_000  # largest number of steps of a simulation that finds the length ranges of actuators
_MUSCLES: Final = ("muscle", "general")  # actuators that may be muscles
MOST_COPIED: Final = 500_000  # largest number of elements times number of <replicate>s, as each copies the whole model
MOST_EXTRA: Final = 10_000  # largest number of values of a sensor, of a custom field, or in <size>
MOST_USER: Final = 100  # largest number of user values of each element
# Limits for the memory of a simulation, in <size>: user values of each state, and attributes of old files.
MEMORY: Final = {"nuserdata": 10**7, "nstack": 10**8, "njmax": 10**6, "nconmax": 10**6}


class Budget:
    """Counts the objects that all files of a model create, and raises an error if there are too many."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.ranges: list[Element] = []  # <lengthrange> elements, which set how MuJoCo finds length ranges
        self.actuators: list[Element] = []

    def spend(self, element: Element, what: str, amount: float, most: float) -> None:
        """Add to the count of one kind of object; raise an error above the limit."""
        total = self.spent[what] = self.spent.get(what, 0.0) + amount
        if not total <= most:  # also true for NaN
            raise element.error(
                f"<{element.tag}> creates too many {what}",
                value=total,
                expected=f"at most {most:g} in total, with copies",
            )

    def count(self, root: Element) -> None:
        """Count all elements of a file; elements in a <replicate> count once for each copy."""
        waiting = [(root, 1.0)]
        while waiting:
            element, times = waiting.pop()
            self.add(element, times)
            if element.tag == "actuator":
                self.actuators += element.children
            if element.tag == "replicate":
                self.spend(element, "replicates", 1.0, MOST_ELEMENTS)
                times *= max(1.0, *numbers(element, "count"))
            waiting += [(child, times) for child in element.children]
        self.add_steps()
        replicates, elements = self.spent.get("replicates", 0.0), self.spent["elements"]
        if replicates * elements > MOST_COPIED:
            most = int(MOST_COPIED // elements)
            raise root.error(
                "has too many <replicate>s for its size", value=int(replicates), expected=f"at most {most}"
            )

    def add(self, element: Element, times: float) -> None:
        """Count one element that occurs ``times`` times."""
        tag = element.tag
        if tag == "body":
            self.spend(element, "bodies", times, MOST_BODIES)
        elif tag in ("composite", "flexcomp"):
            points = math.prod(max(1.0, number) for number in numbers(element, "count"))
            points += len(element.attributes.get("point", "").split()) / 3.0
            self.spend(element, "points", times * points, MOST_POINTS)
        elif tag in ("texture", "hfield"):
            sides = 6.0 if tag == "texture" and element.attributes.get("type") in (None, "cube", "skybox") else 1.0
            for pair in (("width", "height"), ("nrow", "ncol")):
                cells = math.prod(max(1.0, *numbers(element, name)) for name in pair)
                self.spend(element, "cells", sides * cells, MOST_CELLS)
        elif tag == "mesh" and "builtin" in element.attributes:
            finest = max(0.0, *numbers(element, "params"))
            self.spend(element, "vertices", max(1000.0, finest * finest), MOST_CORNERS)
        elif tag == "size":
            for name in element.attributes:
                if name.startswith("n"):
                    most = MOST_USER if name.startswith("nuser_") else MEMORY.get(name, MOST_EXTRA)
                    self.at_most(element, name, most)
        elif tag == "lengthrange":
            self.ranges.append(element)
        self.spend(element, "elements", times, MOST_ELEMENTS)
        for name in ("dim", "num"):
            self.at_most(element, name, MOST_EXTRA)
        if tag == "numeric":
            self.at_most(element, "size", MOST_EXTRA)

    def add_steps(self) -> None:
        """Count the steps that MuJoCo simulates to find length ranges, once for each <lengthrange>."""
        for element in [*self.ranges]:
            if any(_lacks_range(actuator, element) for actuator in self.actuators):
                self.ranges.remove(element)
                steps = max(10.0, *numbers(element, "inttotal"))
                steps /= min([step for step in numbers(element, "timestep") if step > 0.0], default=0.01)
                self.spend(element, "steps", steps, MOST_STEPS)

    def at_most(self, element: Element, name: str, most: float) -> None:
        """Raise an error for an attribute with a value above a limit."""
        if not max(0.0, *numbers(element, name)) <= most:
            value = element.attributes[name]
            raise element.error(f"{name} of <{element.tag}> is too large", value=value, expected=f"at most {most:g}")


def _lacks_range(actuator: Element, how: Element) -> bool:
    """Return whether MuJoCo may simulate to find the length range of an actuator, ignoring default classes.

    Args:
        actuator: The actuator.
        how: The <lengthrange> of the model.
    """
    mode = how.attributes.get("mode", "muscle").strip()
    if mode == "none" or (mode == "muscle" and actuator.tag not in _MUSCLES):
        return False
    low, high = numbers(actuator, "lengthrange")[-2:]
    return how.attributes.get("useexisting", "true").strip() != "true" or not low < high


def numbers(element: Element, name: str) -> list[float]:
    """Return the numbers of an attribute after two zeros, so that the list has at least two entries."""
    found = [0.0, 0.0]
    for word in element.attributes.get(name, "").split():
        try:
            found.append(float(word))
        except ValueError:  # MuJoCo reads the digits up to the first other character: "9x" may be 9
            found += [float(digits) for digits in re.findall(r"[0-9]{1,300}", word)]
    return found
