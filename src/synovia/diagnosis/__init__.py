"""Why a goal was missed: reasons that were tried by solving again, and sentences for people."""

from synovia.diagnosis.explain import explain, unit_hint
from synovia.diagnosis.reasons import find_reasons, reasons_as_json

__all__ = ["explain", "find_reasons", "reasons_as_json", "unit_hint"]
