# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the package quoit works in jobs of each form. Method: suite.py FORM runs the tests of pes/ on every PE of some jobs; each
PE must pass each test, and the job end by itself."""
import os
import re
import sys

import package

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pes")
FORMS = {
    "OneHost": [["-n", 3]],
    "Ring": [["--hosts", 3, "-n", 3]],
    "Network": [["--network", "tcp", "--hosts", 2, "-n", 3]],
    "OtherForms": [["-n", 1], ["-n", 2], ["-n", 4], ["-n", 5], ["-n", 6], ["--hosts", 3, "-n", 6],
                   ["--hosts", 5, "-n", 5, "--check"], ["--network", "tcp", "--hosts", 3, "-n", 6]],
}


class Form(package.Case):
    def run_tests(self, form):
        pes = form[form.index("-n") + 1]
        result = self.run_job(*form, "--timeout", 600, package.PYTHON, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                              FOLDER, env=package.ENVIRONMENT, limit=700)
        self.assertEqual(result.status, 0, result)
        passed = re.findall(r"^(\d+) passed", result.out, re.M)
        self.assertEqual(len(passed), pes, result)
        self.assertGreater(int(passed[0]), 50)
        self.assertEqual(set(passed), {passed[0]})
        self.assertEqual(result.err.strip(), "", "nothing is reported, so nothing was left allocated")


def add(name, forms):
    def test(self):
        for form in forms:
            with self.subTest(form=form):
                self.run_tests(form)
    setattr(Form, f"test_{name}", test)


for each, jobs in FORMS.items():
    add(each, jobs)

if __name__ == "__main__":
    package.main(needs=("numpy", "pytest"), arguments=[f"Form.test_{name}" for name in sys.argv[1:]])
