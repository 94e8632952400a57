# SPDX-License-Identifier: BSD-3-Clause
"""Aim: the manual and the completions of an installed copy are found, can be read, and name every command and option. Method:
man, mandoc and the shells themselves, and the help of the programs."""
import os
import re
import subprocess
import unittest

import installed


class Manual(installed.Case):
    @unittest.skipIf(installed.needs("mandoc"), "no mandoc")
    def test_pages_parse(self):
        """None has an error; a page that only leads to another (.so) names it from the folder of the manual."""
        done = self.run_command("sh", "-c", 'cd "$1/share/man" && echo man*/* | wc -w && mandoc -Tlint -Werror man*/*', "sh",
                                self.prefix)
        count, _, problems = done.stdout.partition("\n")
        self.assertGreater(int(count), 100)
        self.assertEqual((done.returncode, problems[:2000], done.stderr), (0, "", ""))

    @unittest.skipIf(installed.needs("man"), "no man")
    def test_man(self):
        """Pages are found by MANPATH of the copy, and by PATH alone where man looks beside bin."""
        for prefix in self.prefixes():
            env = {"MANPATH": f"{prefix}/share/man", "MANWIDTH": "80"}
            for page, words in (("oshrun", "oshrun"), ("shmem_put", "shmem_put"), ("quoit-ring", "quoit-ring"),
                                ("shmem_long_put", "shmem_put"), ("libqdsm", "libqdsm")):
                self.assertIn(words, self.command("man", page, env=env))
        done = self.run_command("man", "--warnings", "oshrun", env={"MANPATH": f"{self.prefix}/share/man"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.command("man", "-w", "oshrun").strip(), f"{self.prefix}/share/man/man1/oshrun.1")

    def complete(self, shell, script, *words):
        """The shell's completions of the last word."""
        return self.command(shell, "-c", script, shell, *words).splitlines()

    @unittest.skipIf(installed.needs("bash"), "no bash")
    def test_bash_completion(self):
        file = os.path.join(self.prefix, "share", "bash-completion", "completions", "oshrun")
        script = f'. "{file}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _oshrun; printf "%s\\n" "${{COMPREPLY[@]}}"'
        self.assertEqual(self.complete("bash", script, "oshrun", "--ho"), ["--hosts", "--host", "--hostfile"])
        self.assertEqual(self.complete("bash", script, "oshrun", "-n", "2", "--bind-to", "n"), ["none"])
        self.assertEqual(self.complete("bash", script, "oshrun", "-n", "2", "ls", ":", "--slo"), ["--slots"])

    def commands_of_quoit(self):
        lines = self.command("quoit", "--help").splitlines()
        return [line.split()[0] for line in lines if line.startswith("  ")]

    def options_of(self, name):
        shown = self.command("quoit", name, "--help")
        return re.findall("^  (--[a-z-]+)", shown, re.M)

    @unittest.skipIf(installed.needs("bash"), "no bash")
    def test_bash_completion_of_quoit(self):
        file = os.path.join(self.prefix, "share", "bash-completion", "completions", "quoit")
        script = f'. "{file}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _quoit; printf "%s\\n" "${{COMPREPLY[@]}}"'

        def offered(*words):
            return self.complete("bash", script, "quoit", *words)
        self.assertEqual(offered(""), self.commands_of_quoit())
        for name in self.commands_of_quoit():
            options = offered(name, "--")
            self.assertLessEqual(set(self.options_of(name)), set(options), name)
            self.assertEqual("--network-limit" in options, name in ("info", "perf", "tune"), name)  # oshrun's
        self.assertEqual(offered("sim", "--workload", "hot"), ["hotspot"])
        self.assertEqual(offered("sim", "--canary", "credit"), ["credit"])
        self.assertEqual(offered("figures", "22/4"), ["22/4a", "22/4b"])
        self.assertEqual(offered("info", "p"), ["paths"])
        self.assertEqual(offered("predict", "--model", "papers"), ["papers-2022"])
        os.mkdir(os.path.join(self.work, "drawn"))
        self.assertEqual(offered("figures", "--html", "dra"), ["drawn"])

    def test_manual_of_quoit(self):
        """A page for each command, which documents each of its options and no other, and is listed on the first
        page."""
        folder = os.path.join(self.prefix, "share", "man", "man1")
        pages = {name for name in os.listdir(folder) if name.startswith("quoit-")}
        self.assertEqual(pages, {f"quoit-{name}.1" for name in self.commands_of_quoit()})
        with open(os.path.join(folder, "quoit.1")) as file:
            first = file.read()
        for name in self.commands_of_quoit():
            self.assertIn(f".BR quoit\\-{name} (1)", first)
            with open(os.path.join(folder, f"quoit-{name}.1")) as file:
                told = set(re.findall(r'^\.BI? "?(\\-\\-[a-z\\-]+)', file.read(), re.M))
            told = {option.replace("\\-", "-") for option in told}
            self.assertEqual(told | {"--help"}, set(self.options_of(name)) | {"--help"}, name)

    @unittest.skipIf(installed.needs("zsh"), "no zsh")
    def test_zsh_completion(self):
        file = os.path.join(self.prefix, "share", "zsh", "site-functions", "_oshrun")
        script = 'setopt extendedglob; _call_program() { shift; eval "$*" }; _arguments() { print -rl -- "$@" }; ' \
                 f'words=("$@"); CURRENT=$#; . "{file}"; print -r -- "now $CURRENT $words"'
        offered = self.complete("zsh", script, "oshrun", "-n", "2", "ls", ":", "--slo")
        self.assertIn("*--hosts[number of hosts, emulated on this machine and joined into a ring]:H: ", offered)
        self.assertIn("*--lanes[lanes of each link\\: 1, 2, 4 or 8]:N: ", offered)
        self.assertIn("*--bind-to[bind each PE to one core, or to none]:value:(core none)", offered)
        self.assertIn("*--tag[prefix each line of output with its PE and host]", offered)
        self.assertEqual(offered[-1], "now 2 oshrun --slo")

    def test_manual(self):
        names = [line.split()[0] for line in self.command("oshrun", "--options").splitlines()[1:]]
        with open(os.path.join(self.prefix, "share", "man", "man1", "oshrun.1")) as file:
            manual = file.read()
        for name in names:
            self.assertIn(name.replace("-", "\\-"), manual)
        self.assertNotIn("@", manual)
        for page in ("oshcc.1", "oshc++.1"):
            self.assertTrue(os.path.exists(os.path.join(self.prefix, "share", "man", "man1", page)))


if __name__ == "__main__":
    installed.main()
