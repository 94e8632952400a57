# SPDX-License-Identifier: BSD-3-Clause
"""Aim: each named limit that a user can meet is reached without harm, and one more is refused with the limit in the
message. Method: the bounds of every numeric option, read from the table of options itself, so that new options are
included; then a table of the other limits, whose values are read from the headers that define them."""
import os
import re
import tempfile
import unittest

import scenario

SOURCE = os.environ["SCENARIO_SOURCE"]
LIMITS = scenario.program("scenario_limits")
# Other options that an option needs at its upper bound.
BESIDE = {"hosts": ["-n", 1024], "n": ["--hosts", 65]}
NEEDS_A_RING = {"weight"}  # only values outside the bounds say something without one


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def number(path, name):
    """The value of a #define that is a plain number."""
    return int(re.search(rf"#define {name}\s+(\d+)u?\b", read(path)).group(1))


def evaluate(text):
    names = {"QUOIT_OPTION_CHUNK_BYTES_MAX": 1 << 20}
    text = re.sub(r"(?<=\d)u?ll\b", "", text.strip())
    return names[text] if text in names else eval(text, {"__builtins__": {}})


def numeric_options():
    """(name, type, smallest, largest) of each option that has a name and a bound."""
    table = read("src/base/options.h").replace("\\\n", " ")
    row = re.compile(r'X\(\w+, "([\w-]+)", (?:NULL|"\w+"), (UINT|BYTES|DURATION), "[^"]*", "[^"]*", ([^,"]+), ([^,"]+), ')
    for name, kind, smallest, largest in row.findall(table):
        yield name, kind, evaluate(smallest), evaluate(largest)


class Limits(scenario.Case):
    def plan(self, *arguments):
        return self.run_job("--dry-run", *arguments, "true")

    def with_option(self, name, kind, value):
        text = f"{value}ns" if kind == "DURATION" else str(value)
        beside = BESIDE.get(name, []) if value > 1 else []
        return self.plan(*beside, "-n" if name == "n" else "--" + name, text)

    def test_bounds_of_options(self):
        options = list(numeric_options())
        self.assertGreater(len(options), 12)
        # Bounds that the layers below enforce too.
        bounds = {name: largest for name, _, _, largest in options}
        self.assertEqual(bounds["n"], number("cmd/oshrun/plan.h", "PLAN_PE_COUNT_MAX"))
        self.assertEqual(bounds["hosts"], number("src/ring/ring.h", "QUOIT_RING_HOSTS_MAX"))
        self.assertEqual(bounds["lanes"], number("src/host/job_config.h", "QUOIT_LANES_MAX"))
        for name, kind, smallest, largest in options:
            with self.subTest(option=name):
                ends = [] if name in NEEDS_A_RING else [smallest] + ([largest] if largest else [])
                outside = ([smallest - 1] if smallest else []) + ([largest + 1] if largest else [])
                for value in ends:
                    self.assertEqual(self.with_option(name, kind, value).status, 0, (name, value))
                for value in outside:
                    result = self.with_option(name, kind, value)
                    self.assertEqual((result.status, len(result.err.splitlines())), (2, 1), (name, value, str(result)))
                    self.assertRegex(result.err, r"must be .*(\.\.|or more).*\[Q0210\]")
                if kind == "UINT":
                    self.assertIn("must be", self.with_option(name, kind, 1 << 70).err)

    def test_names_of_files_that_were_left_out(self):
        """The next option, or the program, is not taken for the file, nor written over."""
        for option, word in (("--profile", "FILE"), ("--trace", "FILE"), ("--stats-json", "FILE"), ("--output", "DIR"),
                             ("--hostfile", "FILE"), ("--wdir", "DIR")):
            result = self.plan(option, "-n", 2)
            self.assertEqual(result.status, 2, str(result))
            self.assertIn(f"{option} needs a value: {option} {word}, but -n follows [Q0210]", result.err)
        with tempfile.TemporaryDirectory() as folder:
            program, kept = os.path.join(folder, "script"), "#!/bin/sh\n"
            for option, mode, status in (("--profile", 0o755, 2), ("--trace", 0o755, 2), ("--stats-json", 0o755, 2),
                                         ("--profile", 0o644, 0)):
                with open(program, "w") as file:
                    file.write(kept)
                os.chmod(program, mode)
                result = self.plan(option, program)
                self.assertEqual(result.status, status, str(result))
                if status:
                    self.assertIn(f"{option} needs a value: {option} FILE, but {program} is a program [Q0210]", result.err)
                with open(program) as file:
                    self.assertEqual(file.read(), kept)

    def test_more_pes_than_machines_take(self):
        """They are filled in order, then again."""
        for count in (1, 3, 4, 5, 7, 8, 12):
            taken = [line.split()[2] for line in self.plan("--host", "a:2,b:1", "-n", count).out.splitlines()]
            self.assertEqual(taken, sorted("aab"[pe % 3] for pe in range(count)))

    def test_options_of_other_launchers(self):
        for option, words in (("-c", "-n N"), ("--oversubscribe", "no option"), ("-ppn", "--host NAME:N"), ("-genv", "-x VAR=value"),
                              ("--mca", "--network")):
            result = self.plan(option, 2)
            self.assertEqual(result.status, 2, str(result))
            self.assertIn(f"unknown option {option} of other launchers; here: {words}", result.err)
        self.assertIn("did you mean --lanes?", self.plan("--lane", 2).err)

    def test_pes(self):
        most, of_host = number("cmd/oshrun/plan.h", "PLAN_PE_COUNT_MAX"), number("src/host/job_config.h", "QUOIT_LOCAL_PES_MAX")
        for arguments, words in (
            (("-n", of_host), None),
            (("-n", of_host + 1), f"a host takes {of_host} at most"),
            (("--hosts", 65, "-n", most), None),
            (("--hosts", 65, "-n", most, "true", ":", "-n", 1), f"more than a job can have ({most})"),
            (("--hosts", 64, "-n", most), f"a host takes {of_host} at most"),
        ):
            result = self.plan(*arguments)
            self.assertEqual(result.status, 2 if words else 0, result)
            self.assertIn(words or "", result.err)

    @unittest.skipUnless(os.path.exists(LIMITS), "the library was not built")
    def test_handles(self):
        """Contexts and teams: the last possible one works, one more is an invalid handle, and a destroyed one can be
        created again."""
        for what, most in (("contexts", number("src/shmem/job.h", "QUOIT_CONTEXTS_MAX")),
                           ("teams", number("src/coll/coll.h", "QUOIT_TEAM_PIECES"))):
            for shape in (("-n", 1), ("--hosts", 2, "-n", 2)):
                result = self.run_job(*shape, LIMITS, what)
                self.assertEqual(result.status, 0, result)
                counts = {int(line) for line in result.out.split()}
                # WORLD and SHARED, or the default context, may occupy entries of the same table. The table of teams is
                # never exhausted first: their workspace is.
                self.assertGreater(number("src/shmem/handle.h", "QUOIT_TEAMS_MAX"), number("src/coll/coll.h", "QUOIT_TEAM_PIECES"))
                self.assertTrue(all(most - 2 <= count <= most for count in counts), (what, most, counts))

    @unittest.skipUnless(os.path.exists(LIMITS), "the library was not built")
    def test_long_words(self):
        """Longer than a message holds: truncated, not dropped."""
        long = "x" * 3000
        result = self.run_job("--fault", long, "--hosts", 2, "-n", 2, "true")
        self.assertEqual((result.status, len(result.err.splitlines())), (2, 1), result)


if __name__ == "__main__":
    scenario.main()
