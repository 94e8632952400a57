# SPDX-License-Identifier: BSD-3-Clause
"""What a paper states as a number or an order of numbers, and how each is counted: one rule for all papers (docs/design/figures.md).

A relation is reached if its value is in the range that the sentence states. It cannot be judged where what the sentence speaks of is
not here, where the paper's own table contradicts it, or where rounds of a measurement disagree. It is not counted if its number is that of another relation, if no run
could miss it, or if what it is set beside does not stand for what the paper has there.
"""
import dataclasses
import math

REACHED, NOT_REACHED, UNJUDGED, UNCOUNTED = VERDICTS = ("reached", "NOT REACHED", "cannot be judged", "not counted")
MARKS = {REACHED: "good", NOT_REACHED: "bad", UNJUDGED: "note", UNCOUNTED: "note"}


@dataclasses.dataclass
class Relation:
    figure: str
    quote: str  # key of papers.json
    what: str
    reading: str
    unit: str
    low: float
    high: float
    value: float | None  # None: nothing was measured
    uncounted: str = ""  # why
    lack: str = ""  # why it cannot be judged
    table: float | None = None  # what the paper's own table has

    @property
    def is_reached(self):
        return self.value is not None and self.low <= self.value <= self.high

    @property
    def verdict(self):
        if self.uncounted:
            return UNCOUNTED
        if self.lack or self.value is None:
            return UNJUDGED
        return REACHED if self.is_reached else NOT_REACHED

    @property
    def verdict_text(self):
        """With the reason where it is neither reached nor missed."""
        why = {UNCOUNTED: self.uncounted, UNJUDGED: self.lack}.get(self.verdict, "")
        return f"{self.verdict}: {why}" if why else self.verdict

    def stated(self):
        if math.isinf(self.high):
            return f"at least {self.low:.4g}"
        return f"at most {self.high:.4g}" if math.isinf(self.low) else f"{self.low:.4g} to {self.high:.4g}"


def counts(relations):
    """How many have each verdict."""
    return {verdict: sum(one.verdict == verdict for one in relations) for verdict in VERDICTS}


def reached_text(relations):
    """Such as: 36 of 47."""
    of = counts(relations)
    return f"{of[REACHED]} of {of[REACHED] + of[NOT_REACHED]}"


def verdict_cell(one):
    return {"value": one.verdict_text, "mark": MARKS[one.verdict]}


def value_cell(one):
    return {"value": one.value, "unit": unit_of(one), "mark": MARKS[one.verdict]}


def unit_of(one):
    return "" if one.unit == "ratio" else one.unit


def cited(one, quotes):
    """The paper's sentence and where it stands."""
    where, sentence = quotes[one.quote]
    return f"{where}: \u201c{sentence}\u201d"


def box(one, quotes, values, more=()):
    """A box of a page with all of a relation: values are pairs of a name and the relation with that value."""
    facts = [["stated", f"{one.stated()} {one.unit}".strip()], *more, *([name, value_cell(each)] for name, each in values)]
    if one.reading:
        facts.append(["read as", one.reading])
    return {"title": f"{one.figure}: {one.what}", "mark": MARKS[one.verdict], "quote": cited(one, quotes),
            "facts": [*facts, ["", verdict_cell(one)]]}


def boxes(relations):
    return {"kind": "boxes", "boxes": list(relations)}
