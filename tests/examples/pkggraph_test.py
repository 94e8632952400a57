#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The package graph against an independent model.

Aim: pkggraph prints correct results, not merely the same on one PE and on many. Method: small graphs, written here or
drawn from a seed, are ranked and searched by plain Python and compared with every number printed; invalid files must
end the job with a message that names the line.

Use: pkggraph_test.py OSHRUN PKGGRAPH [SEED]"""
import os
import random
import re
import subprocess
import sys
import tempfile

OSHRUN, PKGGRAPH = sys.argv[1:3]
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
SHAPES = [(1, 1), (1, 5), (5, 5), (3, 7)]


def run(shape, *arguments):
    command = [OSHRUN, "--hosts", str(shape[0]), "-n", str(shape[1]), "--timeout", "60", PKGGRAPH, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def numbered(edges):
    names = []
    for edge in edges:
        for name in edge:
            if name not in names:
                names.append(name)
    return names


def pagerank(names, edges):
    out = {name: {b for a, b in edges if a == name} for name in names}
    rank = {name: 1 / len(names) for name in names}
    while True:
        lost = sum(rank[name] for name in names if not out[name])
        new = {name: (0.15 + 0.85 * lost) / len(names) for name in names}
        for name in names:
            for target in out[name]:
                new[target] += 0.85 * rank[name] / len(out[name])
        change = sum(abs(new[name] - rank[name]) for name in names)
        rank = new
        if change < 1e-12:
            return rank


def depths(edges, root):
    depth, level, frontier = {root: 0}, 0, [root]
    while frontier:
        level += 1
        frontier = {b for a, b in edges if a in frontier and b not in depth}
        depth.update({name: level for name in frontier})
    return depth


def fail(what, result):
    sys.exit(f"pkggraph_test: seed {SEED}: {what}\n--- stdout\n{result.stdout}--- stderr\n{result.stderr}")


def compare(result, edges, root, is_backward):
    """Compares everything printed with the model."""
    names = numbered(edges)
    if result.returncode != 0 or not result.stdout.rstrip().endswith("verified"):
        fail(f"status {result.returncode}", result)
    counts = re.search(r": (\d+) \w+, (\d+) \w+, on", result.stdout)
    if [int(n) for n in counts.groups()] != [len(names), len(set(edges))]:
        fail(f"{counts.group(0)}: should be {len(names)} and {len(set(edges))}", result)
    rank = pagerank(names, edges)
    printed = re.findall(r"^ *\d+  (\S+) +(\d\.\d{6})$", result.stdout, re.M)
    if len(printed) != min(10, len(names)):
        fail(f"{len(printed)} ranks printed", result)
    highest = sorted(rank.values(), reverse=True)
    for place, (name, value) in enumerate(printed):
        if abs(float(value) - rank[name]) > 1e-6 or abs(float(value) - highest[place]) > 1e-6:
            fail(f"rank of {name} is {value}, should be {rank[name]:.6f}", result)
    root = root or printed[0][0]
    depth = depths([(b, a) for a, b in edges] if is_backward else edges, root)
    histogram = {}
    for level in depth.values():
        histogram[level] = histogram.get(level, 0) + 1
    shown = {int(a): int(b) for a, b in re.findall(r"^ *(\d+) +(\d+)(?:  #+)?$", result.stdout, re.M)}
    unreached = int(re.search(r"not reached: (\d+)", result.stdout).group(1))
    if shown != histogram or unreached != len(names) - len(depth):
        fail(f"depths are {shown}, should be {histogram}", result)


def test_edge_lists(folder):
    chance = random.Random(SEED)
    graphs = [[("x", "x")], [("1", "2")], [("a", "b"), ("b", "c"), ("a", "b"), ("c", "a"), ("d", "d"), ("e", "c")]]
    for _ in range(3):
        n = chance.randrange(2, 60)
        graphs.append([(f"v{int(chance.random() ** 2 * n)}", f"v{chance.randrange(n)}")
                       for _ in range(chance.randrange(1, 200))])
    path = os.path.join(folder, "edges.txt")
    for edges in graphs:
        with open(path, "w") as file:
            file.write("# edges\n\n" + "".join(f"{a}\t{b}  # {i}\n" for i, (a, b) in enumerate(edges)))
        for shape in SHAPES:
            compare(run(shape, path), edges, None, False)
        root = edges[-1][1]
        compare(run(SHAPES[2], "--backward", "--root", root, path), edges, root, True)


PACKAGES = """Package: shell
Status: install ok installed
Architecture: amd64
Pre-Depends: libc (>= 2.1),
 libtinfo:any
Depends: base | other, mailer
Description: a shell
 Depends: nothing

Package: libc
Status: install ok installed
Depends: absent | libtinfo (>= 1) [amd64]

Package: libtinfo
Status: install ok installed

Package: libtinfo
Status: install ok installed
Architecture: i386
Depends: shell

Package: gone
Status: deinstall ok config-files
Depends: libc

Package: post
Status: install ok installed
Provides: mailer (= 1), other
Depends: libc, gone

Package: base
Status: install ok installed
Depends: base

Package: relay
Status: install ok installed
Provides: mailer
Depends: mailer"""

DEPENDENCIES = [("shell", "libc"), ("shell", "libtinfo"), ("shell", "base"), ("shell", "post"), ("shell", "relay"),
                ("libc", "libtinfo"), ("post", "libc"), ("base", "base"), ("relay", "post"), ("relay", "relay")]


def test_packages(folder):
    path = os.path.join(folder, "status")
    with open(path, "w") as file:
        file.write(PACKAGES)
    for shape in SHAPES:
        compare(run(shape, path), DEPENDENCIES, None, True)
    compare(run((2, 2), "--forward", "--root", "shell", path), DEPENDENCIES, "shell", False)


def test_bad_files(folder):
    path = os.path.join(folder, "bad.txt")
    for text, message in [("a b\nc\n", "bad.txt:2:"), ("# x\na b c\n", "bad.txt:2:"), ("", "no vertex"),
                          ("a b\n\0a b\n", "bad.txt:2:")]:
        with open(path, "w") as file:
            file.write(text)
        for shape in [(1, 3), (3, 3)]:
            result = run(shape, path)
            if result.returncode != 2 or message not in result.stderr:
                fail(f"{text!r}: status {result.returncode}, expected 2 and '{message}'", result)
    result = run((1, 2), os.path.join(folder, "nothing"))
    if result.returncode != 2 or "No such file" not in result.stderr:
        fail("a file that is not there", result)


with tempfile.TemporaryDirectory() as temporary:
    test_edge_lists(temporary)
    test_packages(temporary)
    test_bad_files(temporary)
print(f"pkggraph_test: right (seed {SEED})")
