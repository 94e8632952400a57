# SPDX-License-Identifier: BSD-3-Clause
"""Aim: quoit explain prints the page of each code from an installed copy, and what a page shows is so. Method: Explain asks for
every code, for none, and for wrong ones. Examples types the commands of each page of docs/messages as they stand, in a folder
that has the page's program (wrong.c) and a program that greets (a.out); the lines of the message that the page shows and that
have its code must be in the output, but for numbers, addresses, folders and the machine's name, and so must the status be that
the page states. Where the cure has a program (right.c) the same commands with it must end well and without the message. Each page
has its parts, and an example or the reason why it has none."""
import concurrent.futures
import glob
import os
import re
import socket
import unittest

import installed

FOLDER = os.path.join(installed.SOURCE, "docs", "messages")
# Each part once, in this order; the second one is optional text.
PAGE = re.compile(r"# (?P<code>Q0\d{3}): (?P<title>[^\n]+[^\n.])\n\n(?P<more>(?:[^#].*?\n\n)?)## Cause\n\n(?P<cause>[^#].*?\n)\n"
                  r"## Example\n\n(?P<example>.+?\n)\n## Cure\n\n(?P<cure>[^#].*)", re.S)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
JOBS = 3  # examples at a time: most of them wait


def pages():
    """{code: match of PAGE, or None}"""
    found = {}
    for path in sorted(glob.glob(os.path.join(FOLDER, "Q*.md"))):
        with open(path, encoding="utf-8") as file:
            found[os.path.basename(path)[:-3]] = PAGE.fullmatch(file.read())
    return found


def blocks(page):
    return {kind: text for kind, text in BLOCK.findall(page["example"])}


def cure_of(page):
    """The program of the cure, None where it has none."""
    return next((text for kind, text in BLOCK.findall(page["cure"]) if kind == "c"), None)


def has_example(page):
    return not page["example"].startswith("None: ")


def masked(line):
    """What is the same in each run. Whether the status of a remote shell is known when its connection ends is chance."""
    for pattern, kept in ((rf"\b{re.escape(socket.gethostname())}\b", "node1"), (r"\bhost\d+", "hostN"),
                          (r"0x[0-9a-f]+|\b\d+(\.\d+)?", "N"), (r"N(,N|-N)+", "N"), (r"\bPEs N", "PE N"),
                          (", status N of the remote shell", ""), (r"(?<![\w/])(/[^\s/]+)*/(?=[^\s/]+)", "/")):
        line = re.sub(pattern, kept, line)
    return " ".join(line.split())


def needed_tools(commands):
    tools = [tool for tool in ("mpiexec.hydra", "pgrep", "ps") if re.search(rf"(?<![\w.]){re.escape(tool)} ", commands)]
    return installed.needs(*tools)


class Explain(installed.Case):
    def test_pages_have_their_parts(self):
        found = pages()
        self.assertGreater(len(found), 80)
        for code, page in found.items():
            with self.subTest(code=code):
                self.assertTrue(page, "the parts are not those of PAGE")
                self.assertEqual(page["code"], code)
                if has_example(page):
                    self.assertIn(set(blocks(page)), ({"sh", "text"}, {"c", "sh", "text"}))
                    self.assertIn(f"[{code}]", blocks(page)["text"])
                else:
                    self.assertRegex(page["example"], r"^None: [^`#]+.*\.\n$")
                    self.assertIsNone(cure_of(page))

    def test_every_code(self):
        for _ in self.prefixes():
            listed = self.command("quoit", "explain").splitlines()
            self.assertEqual(listed, [f"{code} {page['title'].replace('`', '')}" for code, page in pages().items()])
            for code, page in pages().items():
                out = self.command("quoit", "explain", code)
                self.assertTrue(out.startswith(f"{code}: "), out)
                for part in (page["cause"], page["cure"], *blocks(page).values()):
                    for line in part.replace("`", "").splitlines() if part in (page["cause"], page["cure"]) else part.splitlines():
                        self.assertIn(line, out)

    def test_forms_of_a_code(self):
        one = self.command("quoit", "explain", "Q0116")
        for form in ("q0116", "[Q0116]"):
            self.assertEqual(self.command("quoit", "explain", form), one)
        self.assertEqual(self.command("quoit", "explain", "Q0116", "Q0117"), one + "\n" + self.command("quoit", "explain", "Q0117"))

    def test_unknown_codes(self):
        done = self.run_command("quoit", "explain", "Q0199")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^quoit explain: there is no message Q0199; .*near it: (Q01\d9(, )?)+\n$")
        for wrong in ("Q01166", "R0116", "[Q011]", "Q01 6", "nobody says this"):
            done = self.run_command("quoit", "explain", wrong)
            self.assertEqual((done.returncode, done.stdout), (1, ""), wrong)
            self.assertIn(f'no message is about "{wrong}"', done.stderr)
        self.assertEqual(self.run_command("quoit", "explain", "").returncode, 2)

    def test_words(self):
        """A line for each code whose page has all of the words, each at the begin of one, whatever its case."""
        texts = {}
        for name in sorted(os.listdir(FOLDER)):
            if re.fullmatch(r"Q\d{4}\.md", name):
                with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                    texts[name[:-3]] = file.read()
        for words in (("lock",), ("LOCK",), ("shmem_barrier",), ("Q011",), ("lock", "holder"), ("heap", "Q0112")):
            expected = [text.splitlines()[0].replace("# ", "", 1).replace(":", "", 1).replace("`", "") for text in texts.values()
                        if all(re.search(rf"(?<![a-z0-9]){re.escape(word)}", text, re.I) for word in words)]
            self.assertTrue(expected, words)
            self.assertEqual(self.command("quoit", "explain", *words).splitlines(), expected, words)

    def test_words_of_people_in_trouble(self):
        for words, codes in (("deadlock", "Q0140 Q0141 Q0142 Q0206"), ("hangs", "Q0140 Q0141 Q0142 Q0206 Q0220"),
                             ("segfault", "Q0201"), ("overflow", "Q0102 Q0116"), ("out of bounds", "Q0116 Q0201"),
                             ("rank", "Q0104")):
            listed = [line.split()[0] for line in self.command("quoit", "explain", *words.split()).splitlines()]
            self.assertLessEqual(set(codes.split()), set(listed), words)
        done = self.run_command("quoit", "explain", "lock", "of", "nobody_at_all")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn('no message is about "lock of nobody_at_all"; quoit explain lists all', done.stderr)

    def test_pages_that_are_gone(self):
        """Without them the command says where they should be."""
        folder = os.path.join(self.copies.blank, "share", "quoit", "messages")
        os.rename(folder, folder + ".away")
        try:
            self.prefix = self.copies.blank
            done = self.run_command("quoit", "explain", "Q0116")
            self.assertEqual(done.returncode, 1)
            self.assertIn("messages is not where it was installed", done.stderr)
        finally:
            os.rename(folder + ".away", folder)


class Examples(installed.Case):
    def prepare(self, code, page):
        folder = os.path.join(self.work, code)
        os.mkdir(folder)
        for name, program in (("wrong.c", blocks(page).get("c")), ("right.c", cure_of(page))):
            if program:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(program)
        os.symlink(os.path.join(self.work, "a.out"), os.path.join(folder, "a.out"))
        return folder

    def fault_of(self, code, page):
        """What is wrong with an example; "": nothing is."""
        commands, shown = blocks(page)["sh"], blocks(page)["text"]
        folder = self.prepare(code, page)
        done = self.run_command("sh", "-c", f"cd '{folder}'\n{commands}", env={"HOME": folder})
        out = [masked(line) for line in (done.stdout + done.stderr).splitlines()]
        missing = [line for line in shown.splitlines() if f"[{code}]" in line and masked(line) not in out]
        stated = re.search(r"\bStatus (\d+)\.", page["more"])
        is_other = stated and commands.splitlines()[-1].startswith("oshrun") and done.returncode != int(stated[1])
        if missing or is_other:
            return f"{code}: status {done.returncode}, missing {missing}, in:\n{done.stdout}{done.stderr}"
        if cure_of(page):
            done = self.run_command("sh", "-c", f"cd '{folder}'\n{commands.replace('wrong', 'right')}", env={"HOME": folder})
            if done.returncode != 0 or code in done.stdout + done.stderr:
                return f"{code}: the cure does not help: status {done.returncode}, in:\n{done.stdout}{done.stderr}"
        return ""

    def judge(self, codes, at_once):
        found, left_out = pages(), []
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            begun = []
            for code in codes:
                problem = needed_tools(blocks(found[code])["sh"])
                if problem:
                    left_out.append(f"{code}: {problem}")
                else:
                    begun.append(pool.submit(self.fault_of, code, found[code]))
            faults = [one.result() for one in begun]
        self.assertEqual([fault for fault in faults if fault], [], "\n\n".join(faults))
        if left_out:
            self.skipTest(f"{len(begun)} examples are right; left out were {'; '.join(left_out)}")

    def setUp(self):
        super().setUp()
        self.bring(installed.GREET)
        self.command("oshcc", "greet.c", "-o", "a.out")

    @staticmethod
    def codes(on_rings):
        return [code for code, page in pages().items()
                if has_example(page) and ("quoit ring up" in blocks(page)["sh"]) == on_rings]

    def test_examples(self):
        codes = self.codes(False)
        self.assertGreater(len(codes), 60)
        self.judge(codes, JOBS)

    def test_examples_on_rings(self):
        """One after another, since the rings have one name."""
        problem = self.ring_problem()
        if problem:
            self.skipTest(problem)
        self.judge(self.codes(True), 1)


if __name__ == "__main__":
    installed.main()
