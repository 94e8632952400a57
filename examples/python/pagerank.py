# SPDX-License-Identifier: BSD-3-Clause
"""PageRank of Debian's packages: which ones are needed most? Each PE ranks a block of them. Ends with a table of ten.

    python -m quoit.run -n 4 pagerank.py [FILE]

FILE is a status file of dpkg, a Packages file of an archive, or a list of edges, "a b" on each line; unless given, it is
/var/lib/dpkg/status or, where there is none, a small graph of this program. A package gives its rank in equal parts to those that
it depends on. PE 0 computes the same alone and compares: the result does not depend on the number of PEs."""
import collections
import itertools
import os
import re
import sys

import numpy as np

import quoit

STATUS = "/var/lib/dpkg/status"
DAMPING, CHANGE_END = 0.85, 1e-10
SMALL = """apt libc6\napt gpgv\napt dpkg\nbash libc6\nbash dpkg\ndpkg tar\ndpkg libc6\ngpgv libc6\ngrep libc6\ngzip dpkg
libc6 libgcc-s1\nlibgcc-s1 gcc-base\nlibgcc-s1 libc6\nperl libc6\npython3 libc6\npython3 perl\nsed libc6\ntar libc6\ntar perl"""


def packages(text):
    """Names, and an edge from each installed package to each that it depends on: the first installed one of alternatives, and
    all that provide a virtual one."""
    number, depends, providers = {}, [], collections.defaultdict(list)
    for paragraph in text.split("\n\n"):
        field = dict(re.findall(r"^([\w-]+): *(.*(?:\n[ \t].*)*)", paragraph, re.M))
        name = field.get("Package")
        if name and name not in number and " installed" in field.get("Status", " installed"):
            number[name] = len(number)
            depends.append(field.get("Depends", "") + "," + field.get("Pre-Depends", ""))
            for virtual in re.findall(r"(?:^|,)\s*([^\s,(:]+)", field.get("Provides", "")):
                providers[virtual].append(number[name])
    edges = set()
    for package, alternatives in enumerate(depends):
        for dependency in alternatives.split(","):
            for name in re.findall(r"(?:^|\|)\s*([^\s|(:\[<]+)", dependency):
                found = [number[name]] if name in number else providers[name]
                edges.update((package, to) for to in found)
                if found:
                    break
    return list(number), edges


def read(arguments):
    """What it is, names, and edges as pairs of numbers, sorted. PE 0 ends the job if there is no graph."""
    path = arguments[0] if arguments else STATUS
    try:
        if len(arguments) > 1:
            raise ValueError(f"takes one file\n\n{__doc__}")
        if not arguments and not os.path.exists(STATUS):
            path, text = "a small graph", SMALL
        else:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        if text.startswith("Package:"):
            names, edges = packages(text)
        else:
            pairs = [line.split("#")[0].split() for line in text.splitlines()]
            if wrong := [line for line, pair in enumerate(pairs, 1) if len(pair) not in (0, 2)]:
                raise ValueError(f"{path}:{wrong[0]}: an edge is two names")
            number = {name: at for at, name in enumerate(dict.fromkeys(itertools.chain(*pairs)))}
            names, edges = list(number), {(number[a], number[b]) for a, b in filter(None, pairs)}
        if not names:
            raise ValueError(f"{path}: there is no package in it")
        return path, names, np.array(sorted(edges), np.int64).reshape(-1, 2)
    except (OSError, ValueError) as error:
        print(f"pagerank.py: {error}", file=sys.stderr)
        quoit.global_exit(2)


def next_ranks(ranks, edges, out, first, last):
    """Of packages first..last-1, whose edges in are given. out: number of edges out of each package."""
    given = DAMPING * ranks / np.maximum(out, 1)
    kept = (1 - DAMPING + DAMPING * ranks[out == 0].sum()) / len(ranks)
    return kept + np.bincount(edges[:, 1] - first, given[edges[:, 0]], last - first)


def alone(edges, out):
    new, old = np.full(len(out), 1 / len(out)), np.zeros(len(out))
    while abs(new - old).sum() >= CHANGE_END:
        new, old = next_ranks(new, edges, out, 0, len(out)), new
    return new


def main():
    me, pes = quoit.my_pe(), quoit.n_pes()
    what, names, edges = read(sys.argv[1:]) if me == 0 else ("", [], np.empty((0, 2), np.int64))
    edges, n = quoit.concatenate(edges), quoit.sum(len(names))
    out = np.bincount(edges[:, 0], minlength=n)
    first, last = (n * pe // pes for pe in (me, me + 1))
    mine = edges[(edges[:, 1] >= first) & (edges[:, 1] < last)]
    with quoit.full((2, n), 1 / n) as ranks:  # of this round and the next
        for rounds in itertools.count(1):
            old, new = ranks[(rounds + 1) % 2].copy(), ranks[rounds % 2]
            new[first:last] = next_ranks(old, mine, out, first, last)
            for pe in range(me + 1, me + pes):
                new.on(pe % pes)[first:last] = new[first:last]
            quoit.barrier()
            if abs(new - old).sum() < CHANGE_END:
                break
        found = new.copy()
    if me == 0:
        print(f"{what}: {n} packages, {len(edges)} dependencies, {rounds} rounds on {pes} PEs")
        for place, package in enumerate(np.argsort(-found, kind="stable")[:10], 1):
            print(f"{place:3d}  {names[package]:32} {found[package]:.6f}  {'#' * round(50 * found[package] / found.max())}")
        print("verified" if (found == alone(edges, out)).all() else "WRONG: differs from one PE alone")


if __name__ == "__main__":
    main()
