# SPDX-License-Identifier: BSD-3-Clause
"""Aim: each program of examples/python/ runs right in several forms of jobs, also on more PEs than it has work for, ends with its
picture or table, and refuses wrong arguments with one message. Method: the programs compare with a computation of one process and
print "verified"; what they print must not depend on the form, and is compared with models here and with the C program pkggraph."""
import collections
import os
import random
import re
import tempfile

import package
import scenario
from package import EXAMPLES

FORMS = (["-n", 1], ["--hosts", 2, "-n", 3], ["--network", "tcp", "--hosts", 2, "-n", 2])
STATUS = "/var/lib/dpkg/status"
SEED = 33


def mean_temperature(rows, steps):
    """Of heat.py, in plain Python."""
    plate = [[100.0] * (rows + 2)] + [[0.0] * (rows + 2) for _ in range(rows + 1)]
    for _ in range(steps):
        inner = [[(plate[y - 1][x] + plate[y + 1][x] + plate[y][x - 1] + plate[y][x + 1]) / 4 for x in range(1, rows + 1)]
                 for y in range(1, rows + 1)]
        plate[1:-1] = [[0.0, *line, 0.0] for line in inner]
    return sum(map(sum, plate[1:-1])) / rows ** 2


def ranks(depends):
    """PageRank of {name: set of names}."""
    rank = dict.fromkeys(depends, 1 / len(depends))
    for _ in range(200):
        lost = sum(rank[name] for name, targets in depends.items() if not targets)
        after = dict.fromkeys(depends, (0.15 + 0.85 * lost) / len(depends))
        for name, targets in depends.items():
            for target in targets:
                after[target] += 0.85 * rank[name] / len(targets)
        rank = after
    return rank


def status_file(depends):
    """As dpkg writes it, with what a reader must see through: versions, architectures, alternatives, virtual packages, packages
    that were removed, and a second architecture."""
    lines = []
    for number, (name, targets) in enumerate(depends.items()):
        lines += [f"Package: {name}", "Status: install ok installed", f"Provides: virtual-{name}, other (= 1)"]
        forms = ("{}", "{} (>= 1.0~a)", "gone | {}", "virtual-{}:any | libz", "{}:any | other")
        field = ", ".join(forms[(number + at) % len(forms)].format(target) for at, target in enumerate(sorted(targets)))
        lines += [f"{'Pre-' if number % 3 == 0 else ''}Depends: {field}"] if targets else []
        lines += ["Description: a package", " Depends: on nothing", ""]
    name = next(iter(depends))
    return "\n".join([*lines, "Package: gone", "Status: deinstall ok config-files", f"Depends: {name}", "", f"Package: {name}",
                      "Status: install ok installed", "Architecture: other", "Depends: nothing", ""])


def mandelbrot_iterations(rows, limit):
    total = 0
    for at in range(rows):
        for column in range(80):
            c = complex(-2.2 + 3 * column / 79, 2.4 * (at + 0.5) / rows - 1.2)
            z, count = c, 1
            while count < limit and abs(z) <= 2:
                z, count = z * z + c, count + 1
            total += count
    return total


class Examples(package.Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="quoit-python-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_program(self, form, name, *arguments):
        return self.run_python("-m", "quoit.run", *form, os.path.join(EXAMPLES, name), *arguments)

    def check(self, ended, pattern, count):
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertRegex(ended.stdout, r"(?m)\bverified$")
        self.assertEqual(len(re.findall(pattern, ended.stdout, re.M)), count, ended.stdout)
        return ended.stdout

    def run_forms(self, name, arguments, pattern, count, few=None, many=3):
        """Returns what each form of job printed. few: arguments that give too little work for `many` PEs."""
        printed = []
        for form in FORMS:
            with self.subTest(program=name, form=form):
                printed.append(self.check(self.run_program(form, name, *arguments), pattern, count))
        if few:
            with self.subTest(program=name, few=few):
                self.check(self.run_program(["-n", many], name, *few), "verified", 1)
        return printed

    def assert_same(self, printed):
        """But for the number of PEs and the lines about each."""
        texts = {re.sub(r"\b\d+ PEs|^PE \d.*\n", "", text, flags=re.M) for text in printed}
        self.assertEqual(len(texts), 1, "\n".join(texts))

    def test_heat(self):
        printed = self.run_forms("heat.py", [33, 80], r"^[ .:\-=+*#%@]{64}$", 16, few=[3, 9], many=7)
        self.assert_same(printed)
        self.assertIn(f"mean {mean_temperature(33, 80):.3f} degrees", printed[0])

    def test_histogram(self):
        for form, text in zip(FORMS, self.run_forms("histogram.py", [3000], r"^ \d\d +\d+ #*$", 23)):
            self.assertIn(f"{3000 * form[form.index('-n') + 1]} samples", text)
            counts = {int(value): int(times) for value, times in re.findall(r"^ (\d\d) +(\d+)", text, re.M)}
            self.assertAlmostEqual(sum(value * times for value, times in counts.items()) / sum(counts.values()), 42, delta=0.6)

    def check_ranks(self, text, expected):
        """expected: [(name, rank)], highest first."""
        found = [(name, float(rank)) for name, rank in re.findall(r"^ *\d+  (\S+) +(0\.\d{6})  #*$", text, re.M)]
        self.assertEqual(len(found), min(10, len(expected)), text)
        for (name, rank), (_, right) in zip(found, expected):
            self.assertAlmostEqual(rank, right, delta=2e-6)
            self.assertAlmostEqual(dict(expected)[name], rank, delta=2e-6)

    def test_pagerank(self):
        draw = random.Random(SEED)
        names = [f"lib{number}-{draw.randrange(100)}+x.y" for number in range(60)]
        depends = {name: set(draw.sample(names[:at // 2 + 1], min(at // 2, draw.randrange(6)))) for at, name in enumerate(names)}
        self.assertGreater(sum(map(len, depends.values())), 100)
        printed = self.run_forms("pagerank.py", [self.file("status", status_file(depends))], r"^ *\d+  \S+ +0\.\d{6}  #*$", 10,
                                 few=[self.file("edges", "# no names\nb a  # two\n\n")])
        self.assert_same(printed)
        self.assertIn(f"60 packages, {sum(map(len, depends.values()))} dependencies", printed[0])
        self.check_ranks(printed[0], sorted(ranks(depends).items(), key=lambda item: -item[1]))

    def test_pagerank_of_this_machine(self):
        """Without a file: as the C program ranks its packages; or the small graph of the program."""
        text = self.check(self.run_program(["-n", 2], "pagerank.py"), r"^ *\d+  \S+ +0\.\d{6}  #*$", 10)
        if not os.path.exists(STATUS):
            self.assertRegex(text, "^a small graph: ")
            return
        c = self.run_job("-n", 1, os.path.join(scenario.BIN, "examples", "pkggraph"))
        expected = [(name, float(rank)) for name, rank in re.findall(r"^ *\d+  (\S+) +(0\.\d{6})$", c.out, re.M)]
        self.assertEqual(len(expected), 10, c)
        self.check_ranks(text, expected)
        self.assertEqual(re.search(r"\d+ packages, \d+ dependencies", text)[0],
                         re.search(r"\d+ packages, \d+ dependencies", c.out)[0])

    def test_nbody(self):
        printed = self.run_forms("nbody.py", [20, 150], r"^ *[1-5.*][1-5.* ]*$", 23, few=[2, 30])
        self.assert_same(printed)
        before, after = map(float, re.search(r"energy (\S+), then (\S+)$", printed[0], re.M).groups())
        self.assertLess(before, 0)
        self.assertAlmostEqual(after / before, 1, delta=1e-3)

    def test_wordcount(self):
        draw = random.Random(SEED)
        known = ["".join(draw.choices("abcdefghéöж", k=draw.randint(1, 12))) for _ in range(60)]
        words = [draw.choice(known[:draw.randint(1, 60)]) for _ in range(5000)]
        lines = [" ".join(words[at:at + 9]).title() + draw.choice([".", " 12", ", -", "_"]) for at in range(0, 5000, 9)]
        files = [self.file("one", "\n".join(lines[:300])), self.file("two", "\n".join(lines[300:]))]
        printed = self.run_forms("wordcount.py", files, r"^ *[^\W\d_]+ +\d+  #*$", 15, few=[self.file("three", "One word\n")])
        self.assert_same(printed)
        expected = sorted(collections.Counter(words).items(), key=lambda item: (-item[1], item[0].encode()))[:15]
        found = [(word, int(times)) for word, times in re.findall(r"^ *([^\W\d_]+) +(\d+)  #*$", printed[0], re.M)]
        self.assertEqual(found, expected)
        for text in printed:
            shares = re.findall(r"^PE \d added up (\d+) times of (\d+) words$", text, re.M)
            self.assertEqual([sum(map(int, column)) for column in zip(*shares)], [5000, len(set(words))], text)

    def test_workqueue(self):
        printed = self.run_forms("workqueue.py", [14, 60], r"^[ .:\-=+*#%@]{80}$", 14, few=[2, 30])
        self.assert_same(printed)
        expected = mandelbrot_iterations(14, 60)
        for text in printed:
            shares = re.findall(r"^PE \d +(\d+) rows +(\d+) iterations", text, re.M)
            rows, iterations = (sum(map(int, column)) for column in zip(*shares))
            self.assertEqual(rows, 14, text)
            # At the edge of the set the last bit of a product, which compilers choose, decides when a point leaves.
            self.assertAlmostEqual(iterations / expected, 1, delta=0.01)

    def test_pi(self):
        self.check(self.run_python(os.path.join(EXAMPLES, "pi.py"), 20000), r"^ +[124 3] +[13] +\d+ +3\.\d+ ", 4)

    def test_wrong_arguments(self):
        bad = self.file("bad", "a b\na b c\n")
        for name, arguments, status, text in (("heat.py", ["²"], 2, "numbers of at least 1"),
                                              ("histogram.py", [0], 2, "one number of at least 1"),
                                              ("nbody.py", [4, 4, 4], 2, "numbers of at least 1"),
                                              ("workqueue.py", [-1], 2, "numbers of at least 1"),
                                              ("pagerank.py", [bad], 2, f"{bad}:2: an edge is two names"),
                                              ("pagerank.py", [bad, bad], 2, "takes one file"),
                                              ("wordcount.py", ["none"], 2, "No such file or directory: 'none'")):
            with self.subTest(program=name, arguments=arguments):
                ended = self.run_program(["-n", 2], name, *arguments)
                self.assertEqual((ended.returncode, ended.stdout), (status, ""), ended.stderr)
                self.assertEqual(ended.stderr.count(text), 1, ended.stderr)
                self.assertNotIn("Traceback", ended.stderr)
                self.assertNotIn("[Q", ended.stderr)
        ended = self.run_python(os.path.join(EXAMPLES, "pi.py"), "x")
        self.assertEqual((ended.returncode, ended.stdout), (1, ""))
        self.assertIn("one number of at least 1", ended.stderr)

    def test_every_program_is_run(self):
        tested = [f"{name[5:]}.py" for name in dir(self) if name.startswith("test_")]
        for name in os.listdir(EXAMPLES):
            if name.endswith(".py"):
                self.assertIn(name, tested)


if __name__ == "__main__":
    package.main()
