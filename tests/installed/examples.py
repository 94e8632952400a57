# SPDX-License-Identifier: BSD-3-Clause
"""Aim: every example that is installed is built by the installed wrapper and runs right on two hosts and on three. Method:
each example's own verification; where it has none, a checksum that does not depend on the number of PEs, or the lines that
its source promises."""
import os
import re

import installed

VERIFIED = r"\bverified\b|verification PASSED"
CHECKSUM = r"^checksum (\S+)$"
# Name: arguments, and what its output holds: a pattern with a group gives the same for two PEs and for three.
EXAMPLES = {
    "hello": ([], r"hello from PE 0 of (?:2, greeted by PE 1|3, greeted by PE 2)"),
    "ring_put": (["1", "5"], VERIFIED),
    "ring_get": (["1", "5"], VERIFIED),
    "ring_barrier": (["5"], VERIFIED),
    "heat2d": (["60", "10"], VERIFIED),
    "isort": (["5000"], VERIFIED),
    "gups": (["8", "500"], VERIFIED),
    "graph500": (["--scale", "8", "--roots", "2"], VERIFIED),
    "pkggraph": (["edges"], VERIFIED),
    "dsm_barnes": (["128", "1"], VERIFIED),
    "dsm_fft": (["S"], VERIFIED),
    "dsm_is": (["S"], VERIFIED),
    "dsm_jacobi": (["64", "5"], CHECKSUM),
    "dsm_lu": (["64", "16"], VERIFIED),
    "dsm_page": (["16"], r"16 pages, [23] PEs: \S+ us a page"),
    "dsm_sor": (["64", "5"], CHECKSUM),
    "dsm_tsp": (["8"], VERIFIED),
    "dsm_words": (["20"], CHECKSUM),
}


class Examples(installed.Case):
    def sources(self, name):
        """Those of one example, as README.md has it: NAME.c or NAME.cpp, or all of a folder."""
        folder = os.path.join(self.prefix, "share", "quoit", "examples")
        for one in (os.path.join(folder, name + ending) for ending in (".c", ".cpp")):
            if os.path.exists(one):
                return [one]
        return sorted(os.path.join(folder, name, file) for file in os.listdir(os.path.join(folder, name)) if file.endswith(".c"))

    def test_every_example(self):
        folder = os.path.join(self.prefix, "share", "quoit", "examples")
        self.assertEqual({re.sub("[.]c(pp)?$", "", name) for name in os.listdir(folder)} - {"python", "vscode"}, set(EXAMPLES))
        self.write("edges", "a b\nb c\nc a\nd a\n")
        for number, (name, (arguments, pattern)) in enumerate(EXAMPLES.items()):
            self.prefix = (self.copies.blank, self.copies.moved)[number % 2]
            with self.subTest(example=name):
                shared = ["-lqdsm"] if name.startswith("dsm_") else []
                sources = self.sources(name)
                self.command("oshc++" if sources[0].endswith(".cpp") else "oshcc", "-O2", *sources, "-o", name, *shared)
                found = []
                for hosts in (2, 3):
                    out = self.command("oshrun", "--hosts", hosts, "-n", hosts, "--timeout", 280, f"./{name}", *arguments)
                    match = re.search(pattern, out, re.M)
                    self.assertIsNotNone(match, out)
                    found.append(match.groups())
                self.assertEqual(*found, f"{name}: two PEs and three differ")


if __name__ == "__main__":
    installed.main()
