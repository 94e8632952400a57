# SPDX-License-Identifier: BSD-3-Clause
"""quoit figures --fit: the search for the constants that are fitted to the ring papers (docs/design/figures.md). From the best set
so far it moves one constant by 5 to 25 %, for as long as is set. A set is better if fewer relations that count are not reached; of as
many, if it is nearer to the public constants. The same seed tries the same sets in the same order."""
import json
import random
import sys
import time

import page
import ring
from relations import NOT_REACHED, counts, reached_text, value_cell, verdict_cell
from simulator import Book, Failed, Simulator

STEPS = (0.8, 0.9, 0.95, 1.05, 1.1, 1.25)  # the larger ones pass a set that is no better
CHEAP = ("19/8", "19/9", "19/10", "22/4a", "22/4b")  # simulated first: a set that misses more there alone is no better
COSTLY = tuple(name for name in ring.TITLES if name not in CHEAP)


def not_reached(relations):
    return counts(relations)[NOT_REACHED]


def distance(constants, model):
    """To the public values: the sum of the differences, each over the larger of both."""
    return sum(abs(value - model[name]["public"]) / max(value, model[name]["public"], 1) for name, value in constants.items())


class Search:
    def __init__(self, quoit, model, options):
        self.simulator, self.model, self.options = Simulator(quoit, is_silent=True), model, options
        self.names = [name for name, one in model.items() if one["fit"].split(":")[0] in ring.TITLES]
        self.fitted = {name: model[name]["fitted"] for name in self.names}
        self.tried = 0

    def relate(self, words, names):
        one = ring.Ring(Book(self.simulator, [*words, *self.options.model], self.options.quick))
        one.relate(names)
        self.simulator.make()
        return one.relate(names)

    def relations_of(self, constants, most=None):
        """All relations; None if more than `most` are not reached."""
        words = [f"{name}={value}" for name, value in constants.items()]
        self.tried += 1
        found = self.relate(words, CHEAP)
        if most is not None and not_reached(found) > most:
            return None
        return [*found, *self.relate(words, COSTLY)]

    def step(self, best, rng):
        """A set beside the best one."""
        name = rng.choice(self.names)
        value = best[name]
        moved = round(value * rng.choice(STEPS))
        return {**best, name: moved if moved != value else value + 1}

    def run(self, seconds):
        """The best set and its relations, and those of the fitted one."""
        end, seen, rng = time.monotonic() + seconds, set(), random.Random(self.options.seed)
        print("simulating with the fitted constants", file=sys.stderr, flush=True)
        best, first = self.fitted, self.relations_of(self.fitted)
        relations, score = first, (not_reached(first), distance(best, self.model))
        while time.monotonic() < end:
            constants = self.step(best, rng)
            key = tuple(constants.values())
            if key in seen:
                continue
            seen.add(key)
            try:
                found = self.relations_of(constants, score[0])
            except Failed:
                continue  # a value that the model refuses
            except KeyboardInterrupt:
                break
            if found and (reach := (not_reached(found), distance(constants, self.model))) < score:
                best, relations, score = constants, found, reach
            print(f"set {self.tried}: the best does not reach {score[0]}, distance {score[1]:.3f}, "
                  f"{max(end - time.monotonic(), 0):.0f} s left", file=sys.stderr, flush=True)
            self.simulator.results.clear()
        return best, relations, first


# What is said

def constants_rows(search, best):
    return [[name, search.model[name]["public"], search.fitted[name], best[name], search.model[name]["meaning"],
             search.model[name]["fit"]] for name in search.names]


def report(search, best, columns):
    return {"title": "Constants fitted to the ring papers",
            "text": [f"{search.tried} sets were tried, from the fitted one on, by seed {search.options.seed}. A set is better if fewer "
                     "relations are not reached; of as many, if it is nearer to the public constants. With found constants the "
                     "figures are a fit, not a prediction."],
            "sections": [
                {"title": "What each set reaches", "items": [
                    {"kind": "table", "columns": ["constants", "reached", "distance to the public ones"],
                     "rows": [[name, reached_text(relations), distance(constants, search.model)]
                              for name, (constants, relations) in columns.items()]}]},
                {"title": "The constants", "items": [
                    {"kind": "table", "columns": ["constant", "public", "fitted", "found", "what it is", "the fitted value was chosen by"],
                     "rows": constants_rows(search, best)}]},
                {"title": "The relations", "items": [
                    {"kind": "table", "columns": ["", "what is tested", "stated", *columns, "found constants"],
                     "rows": [[row[0].figure, row[0].what, row[0].stated(), *map(value_cell, row), verdict_cell(row[-1])]
                              for row in zip(*(relations for _, relations in columns.values()))]}]}]}


def print_found(search, best, columns):
    print(f"{'constant':<24}{'public':>10}{'fitted':>10}{'found':>10}")
    for name, public, fitted, found, *_ in constants_rows(search, best):
        print(f"{name:<24}{public:>10}{fitted:>10}{found:>10}")
    for name, (constants, relations) in columns.items():
        print(f"{name} constants: {reached_text(relations)} reached, distance {distance(constants, search.model):.3f}")
    changed = {name: value for name, value in best.items() if value != search.fitted[name]}
    print(f"{search.tried} sets; " + ("to run them: quoit figures" + "".join(f" --model {name}={value}" for name, value in
                                                                               changed.items())
                                      if changed else "none is better than the fitted one"))


def as_json(search, best, columns):
    return {"sets": search.tried, "seed": search.options.seed, "constants": {
        name: {"public": public, "fitted": fitted, "found": found}
        for name, public, fitted, found, *_ in constants_rows(search, best)}, "reached": {
            name: counts(relations) for name, (_, relations) in columns.items()}}


def main(quoit, model, options):
    search = Search(quoit, model, options)
    best, relations, first = search.run(options.budget)
    public = search.relate(["public"], tuple(ring.TITLES))
    columns = {"public": ({name: model[name]["public"] for name in search.names}, public), "fitted": (search.fitted, first),
               "found": (best, relations)}
    where = page.publish(report(search, best, columns), options.html)
    if options.json:
        print(json.dumps(as_json(search, best, columns)))
    else:
        print_found(search, best, columns)
        print(where)
    return 0
