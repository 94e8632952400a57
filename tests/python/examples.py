# SPDX-License-Identifier: BSD-3-Clause
"""Aim: each program of examples/python/ runs right in several forms of jobs and ends with its picture or table. Method: the
programs compare with a computation of one process and print "verified"; the picture's lines are counted."""
import os
import re

import package
from package import EXAMPLES

FORMS = (["-n", 1], ["-n", 4], ["--hosts", 3, "-n", 5])
# Arguments, and lines of the picture.
PROGRAMS = {"heat.py": (["33", "80"], r"^[ .:\-=+*#%@]{64}$", 16), "histogram.py": (["3000"], r"^ \d\d +\d+ #*$", 23)}


class Examples(package.Case):
    def check(self, ended, pattern, count):
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertRegex(ended.stdout, r"(?m)\bverified$")
        self.assertEqual(len(re.findall(pattern, ended.stdout, re.M)), count, ended.stdout)

    def test_programs(self):
        for name, (arguments, pattern, count) in PROGRAMS.items():
            for form in FORMS:
                with self.subTest(program=name, form=form):
                    ended = self.run_python("-m", "quoit.run", *form, os.path.join(EXAMPLES, name), *arguments)
                    self.check(ended, pattern, count)

    def test_pi(self):
        self.check(self.run_python(os.path.join(EXAMPLES, "pi.py"), 20000), r"^ +[124 3] +[13] +\d+ +3\.\d+ ", 4)

    def test_every_program_is_run(self):
        self.assertEqual(sorted(os.listdir(EXAMPLES)), sorted([*PROGRAMS, "pi.py"]))


if __name__ == "__main__":
    package.main()
