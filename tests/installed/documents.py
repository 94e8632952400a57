# SPDX-License-Identifier: BSD-3-Clause
"""Aim: what README.md and the pages of docs/ tell a user to type works, typed as it stands into an installed copy. Method: the
commands are taken from the documents: every line of a block marked sh, and inline commands that build an example. Each
document is typed from its first command to its last in a fresh folder that has what its text takes for granted: its blocks that
begin with a comment that is the name of a file, hello.c of README.md, a.out built from it, the examples, a list of machines. The
pages of docs/messages, whose programs are wrong, are typed by installed.messages. NOT_TYPED lists what cannot be typed here and
why; what it lists must stand in a document, so that no entry outlives its command. Of other inline commands the subcommand and
each option must exist. Lesson has docs/learn.md alone, which compiles most.

Numbers that a command prints are marked, and compared with what it prints: a block marked console, or in a page of the manual an
example below a comment, has a line "$ COMMAND" and its whole output; a comment <!-- COMMAND | REGEX --> stands behind a number
within a text, which is the group of REGEX in the output."""
import glob
import os
import re
import shutil
import subprocess
import unittest

import installed

HARDWARE = "needs bridges and their modules"
MACHINES = "needs other machines"
TREE = "builds the source tree, which is hidden here; scripts/test and CI do it"
ROOT = "asks for a password"
NOT_TYPED = {
    ("README.md", "scripts/demo"): TREE,
    ("README.md", "scripts/test"): TREE,
    ("README.md", "scripts/build release"): TREE,
    ("README.md", "cmake --install build/release --prefix $HOME/quoit"): TREE,
    ("README.md", "scripts/build release && export PATH=$PWD/build/release/bin:$PATH"): TREE,
    ("README.md", "oshrun --host alpha,beta -n 8 ./hello"): MACHINES,
    ("README.md", "quoit top"): "ends at a key, on a terminal; installed.commands has it with --once",
    ("README.md", 'oshrun -n 4 --debugger "gdb --args" ./hello'): "waits for the user's commands to gdb",
    ("docs/debug.md", 'oshrun -n 4 --debugger "gdb --args" ./a.out'): "waits for the user's commands to gdb",
    ("docs/debug.md", "oshrun -n 4 --debugger 'all:gdbserver --once localhost:$((2000 + QUOIT_PE))' ./a.out"): "waits for gdb",
    ("docs/debug.md", 'oshrun -n 4 --debugger "all:quoit panes gdb --args" ./a.out'): "waits for the user's commands to gdb",
    ("docs/debug.md", "gdb -ex 'target remote localhost:2001' ./a.out"): "waits for the user's commands to gdb",
    ("docs/find-the-time.md", "quoit top"): "ends at a key, on a terminal; installed.commands has it with --once",
    ("docs/build-a-ring.md", "lspci | grep -iE 'non-transparent|bridge: .*(ntb|148b)'"): HARDWARE,
    ("docs/build-a-ring.md", "sudo modprobe ntb_hw_amd"): HARDWARE,
    ("docs/build-a-ring.md", "make -C /lib/modules/$(uname -r)/build M=$PWD/kernel modules && "
                             "(cd kernel && sudo insmod quoit_ntb.ko)"): HARDWARE,
    ("docs/build-a-ring.md", "ls -l /dev/ntb0 /dev/ntb1; dmesg | grep -i ntb"): HARDWARE,
    ("docs/build-a-ring.md", "sudo build/dev/bin/vm_port_pair /dev/ntb1 a"): HARDWARE,
    ("docs/build-a-ring.md", "cat /etc/quoit/ring.conf"): HARDWARE,
    ("docs/build-a-ring.md", "sudo systemctl enable --now quoit-ring"): HARDWARE,
    ("docs/build-a-ring.md", "sudo quoit ring doctor"): HARDWARE,
    ("docs/build-a-ring.md", "ping -c 3 10.77.0.2"): HARDWARE,
    ("docs/build-a-ring.md", "export SHMEM_SYMMETRIC_SIZE=64M"): HARDWARE,
    ("docs/build-a-ring.md", "oshrun --driver linux --host a:2,b:2,c:2 ./a.out"): HARDWARE,
    ("docs/build-a-ring.md", "sudo quoit ring join"): HARDWARE,
    ("docs/build-a-ring.md", "ssh 10.77.0.2 hostname"): HARDWARE,
    ("docs/build-a-ring.md", "oshrun --ring root:ring -n 6 ./a.out"): HARDWARE,
    ("docs/cluster.md", "oshrun --host node1,node2 -n 16 ./a.out"): MACHINES,
    ("docs/cluster.md", "oshrun --host node1:12,node2:4 ./a.out"): MACHINES,
    ("docs/python.md", "jupyter lab examples/python/notebooks"): "a server; python.notebooks runs them",
    ("docs/ring.md", "quoit top --ring lab"): "ends at a key, on a terminal",
    ("docs/ring.md", "sudo quoit ring list"): ROOT,
    ("docs/write-a-port.md", "cmake --preset dev && cmake --build --preset dev && "
                             "ctest --preset dev -R 'unit.port|sim.port'"): TREE,
}
NOT_TYPED.update({("docs/install.md", command): "tests/package makes these packages and installs them" for command in (
    "scripts/package wheel", "python3 -m venv env && . env/bin/activate", "pip install build/package/quoit-*.whl",
    'oshrun --version && python -c "import quoit"', "scripts/package deb",
    "sudo apt install ./build/package/{libshmem1,libqdsm1,libshmem-dev,quoit,quoit-networks,python3-quoit,quoit-doc}_*.deb",
    "scripts/package tar",
    "tar xf quoit-*-linux-x86_64.tar.gz -C $HOME && mv $HOME/quoit-*-linux-x86_64 $HOME/quoit",
    "export PATH=$HOME/quoit/bin:$PATH MANPATH=$HOME/quoit/share/man:",
    "spack repo create quoit-repo && cp -r build/package/recipes/spack/quoit quoit-repo/packages/",
    "spack repo add quoit-repo && spack install quoit", "scripts/build release",
    "cmake --install build/release --prefix $HOME/quoit")})
if not shutil.which("gdb"):
    NOT_TYPED["docs/debug.md", """oshrun -n 2 --tag --debugger "all:gdb -batch -ex 'break shmem_finalize' -ex run -ex bt -ex continue --args" ./a.out"""] = "no gdb"
# Those that end with another status than 0, and mean it.
STATUS = {
    ("docs/ring.md", "quoit ring doctor --ring lab"): 1,  # after a cut: there is something wrong
}
LESSON = "docs/learn.md"
RINGS = r"quoit ring |--ring |--on "
# Options that exist for Quoit's own processes, which a document explains.
INTERNAL = {"--agent", "--host-agent", "--proxy"}

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
PROGRAMS = ("oshrun", "oshcc", "oshc++", "quoit")


def texts(*patterns):
    """{name: text}, read where this test runs: the commands do not see them."""
    found = {}
    for path in (path for pattern in patterns for path in sorted(glob.glob(os.path.join(installed.SOURCE, pattern)))):
        with open(path, encoding="utf-8") as file:
            found[os.path.relpath(path, installed.SOURCE)] = file.read()
    return found


def documents():
    return texts("README.md", "docs/*.md", "docs/messages/*.md")


def block_commands(text):
    """The lines of the blocks marked sh, without comments."""
    lines = [line.strip() for _, language, body in BLOCK.findall(text) if language == "sh" for line in body.splitlines()]
    stripped = [re.sub(r"\s{2,}#.*$|\s#\s.*$|^#.*$", "", line) for line in lines]
    return [line for line in stripped if line]


def named_files(text):
    """{name: text} of the blocks that begin with the name of their file in a comment."""
    found = {}
    for _, _, body in BLOCK.findall(text):
        name = re.match(r"(?:/\* |// |# )([\w-]+\.(?:c|cpp|py))\b", body)
        if name:
            found[name[1]] = body
    return found


def inline_spans(text):
    """Inline code outside blocks that begins with one of our programs."""
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", BLOCK.sub("", text))]
    return [span for span in spans if span.split()[0] in PROGRAMS]


def typed_commands(text):
    """What a user is told to type: blocks, then inline commands that build an example."""
    return block_commands(text) + [span for span in inline_spans(text) if re.match(r"oshcc examples/", span)]


def anchors(text):
    """What can be linked to in a page: its headings, in the form that GitHub and the site give them."""
    headings = re.findall(r"(?m)^#+ (.*)$", BLOCK.sub("", text))
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


class Listed(installed.Case):
    """Without typing anything."""

    def test_table_is_not_stale(self):
        known = {(name, command) for name, text in documents().items() for command in typed_commands(text)}
        self.assertGreater(len(known), 40)
        self.assertEqual((set(NOT_TYPED) | set(STATUS)) - known, set(), "a table here lists commands that no document has")

    def test_links(self):
        """Links of the pages as they stand in the source tree; installed.site follows those of the site. Places on the internet
        are not asked."""
        pages = texts("*.md", "*/*.md", "docs/*/*.md")
        links = [(name, link) for name, text in pages.items() for link in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", text))]
        self.assertGreater(len(links), 100)
        for name, link in links:
            target, _, part = link.partition("#")
            if re.match(r"https?://", link):
                continue
            path = os.path.normpath(os.path.join(os.path.dirname(name), target)) if target else name
            self.assertTrue(os.path.exists(os.path.join(installed.SOURCE, path)), f"{name}: {link}")
            if part and path in pages:
                self.assertIn(part, anchors(pages[path]), f"{name}: {link}")

    def test_blocks_of_commands_are_marked(self):
        """A block of commands that is not marked sh would not be typed."""
        for name, text in documents().items():
            for _, language, body in BLOCK.findall(text):
                first = next((line for line in body.splitlines() if line.strip()), "")
                if not language:
                    self.assertNotRegex(first.strip(), r"^(\$ |#!|sudo |scripts/|cmake |(oshrun|oshcc|quoit)( |$))", name)

    def known_options(self, words):
        """The options in the help of oshrun, and of the subcommand of quoit; None: there is no such subcommand."""
        texts = [self.command("oshrun", "--help"), self.command("oshrun", "--options")]
        if words[0] == "quoit" and len(words) > 1 and not words[1].startswith("-"):
            if not re.search(f"^  {re.escape(words[1])} ", self.command("quoit", "--help"), re.M):
                return None
            has_kinds = words[1] == "figures" and words[2:3] and words[2] in ("dsm", "hybrid", "link", "summary")
            texts.append(self.command("quoit", *words[1:3 if has_kinds else 2], "--help"))
        return set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", " ".join(texts)))

    def test_options_of_inline_commands(self):
        cache = {}
        for name, text in documents().items():
            for span in inline_spans(text):
                words = span.split()
                if words[0] in ("oshcc", "oshc++"):
                    continue
                key = tuple(words[:3]) if words[0] == "quoit" else ("oshrun",)
                if key not in cache:
                    cache[key] = self.known_options(words)
                self.assertIsNotNone(cache[key], f"{name}: `{span}`: there is no such command")
                for option in re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", span):
                    self.assertIn(option, cache[key] | INTERNAL, f"{name}: `{span}`")


CONSOLE = re.compile(r"^```console\n\$ ([^\n]+)\n(.*?)^```$", re.M | re.S)
EXAMPLE = re.compile(r'^\.\\" \$ ([^\n]+)\n\.EX\n(.*?)^\.EE$', re.M | re.S)
NUMBER = re.compile(r"([0-9][0-9,.]*[0-9]|[0-9])[^0-9<]*<!-- ((?:quoit|oshrun) [^|]+?) \| (.+?) -->", re.S)


class Printed(installed.Case):
    """What documents say that a command prints."""

    def texts(self):
        for folder in ("", "docs", "docs/design", "docs/man"):
            for path in sorted(glob.glob(os.path.join(installed.SOURCE, folder, "*"))):
                if path.endswith((".md", ".1")) and not path.endswith("CHANGELOG.md"):
                    with open(path, encoding="utf-8") as file:
                        yield os.path.relpath(path, installed.SOURCE), file.read()

    def test_blocks(self):
        self.skip_without_matplotlib()
        found = [(name, command, body) for name, text in self.texts() for command, body in CONSOLE.findall(text)]
        found += [(name, command.replace("\\-", "-"), body.replace("\\-", "-"))
                  for name, text in self.texts() for command, body in EXAMPLE.findall(text)]
        self.assertEqual(len(found), 3, found)
        for name, command, body in found:
            self.assertEqual(self.command(*command.split()), body, f"{name}: $ {command}")

    def test_numbers(self):
        texts = list(self.texts())
        marks = [(name, *mark) for name, text in texts for mark in NUMBER.findall(text)]
        self.assertEqual(len(marks), sum(text.count("<!-- quoit ") + text.count("<!-- oshrun ") for _, text in texts), marks)
        self.assertGreater(len(marks), 5)
        for name, number, command, expression in marks:
            printed = re.search(expression, self.command(*command.split()), re.M)
            self.assertTrue(printed, f"{name}: {command} prints nothing like {expression}")
            self.assertEqual(number.replace(",", ""), printed[1], f"{name}: {number}, but {command} prints {printed[0]}")


class Document(installed.Case):
    """Types documents, one by one."""

    def prepare(self, name, text):
        readme = documents()["README.md"]
        self.write("hello.c", next(body for _, language, body in BLOCK.findall(readme) if language == "c"))
        self.command("oshcc", "hello.c", "-o", "a.out")
        self.write("machines", "localhost slots=2\n")
        self.write("ring.py", next(body for _, language, body in BLOCK.findall(documents()["docs/python.md"]) if language == "python"))
        os.symlink(os.path.join(self.prefix, "share", "quoit", "examples"), os.path.join(self.work, "examples"))
        for file, body in named_files(text).items():
            self.write(file, body)
        return {"PATH": installed.SYSTEM_PATH} if name == "README.md" else {}

    def type_in(self, command, env):
        """Runs it as a line of a shell whose variables last; env is changed to what they are then."""
        kept = os.path.join(self.copies.folder.name, "variables")
        done = self.run_command("sh", "-c", f"{command}\nstatus=$?\nenv -0 >'{kept}'\nexit $status", env=env)
        with open(kept, encoding="utf-8") as file:
            env.update(line.split("=", 1) for line in file.read().split("\0") if line)
        return done

    def run_document(self, name, text, left_out):
        """Returns how many commands were typed, and how many match `left_out`."""
        env, typed, missing = self.prepare(name, text), 0, 0
        try:
            for command in typed_commands(text):
                if (name, command) in NOT_TYPED:
                    continue
                if left_out and re.search(left_out, command):
                    missing += 1
                    continue
                done = self.type_in(command, env)
                self.assertEqual(done.returncode, STATUS.get((name, command), 0),
                                 f"{name}: {command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
                typed += 1
        finally:
            for ring in ("ring", "lab"):
                self.run_command("quoit", "ring", "down", "--ring", ring)
        return typed, missing

    def type_documents(self, found):
        """{name: text}; returns as run_document does."""
        total, missing, problem = 0, 0, self.ring_problem()
        for name, text in found.items():
            with self.subTest(document=name):
                self.work = os.path.join(self.copies.folder.name, name.replace("/", "-"))
                os.mkdir(self.work)
                counts = self.run_document(name, text, RINGS if problem else "")
                total, missing = total + counts[0], missing + counts[1]
        return total, missing


class Typed(Document):
    @unittest.skipIf(installed.needs("pkg-config", "ping"), installed.needs("pkg-config", "ping"))
    def test_every_document(self):
        python_problem = installed.python_problem(self.prefix)
        total, missing = self.type_documents({
            name: text for name, text in documents().items()
            if name != LESSON and not name.startswith("docs/messages/") and not (python_problem and "quoit.run" in text)})
        self.assertGreater(total + missing, 30)
        if missing:
            self.skipTest(f"{total} commands were typed; {missing} on rings that stay were not: {self.ring_problem()}")


class Lesson(Document):
    def test_lesson(self):
        problem = installed.python_problem(self.prefix)
        if problem:
            self.skipTest(problem)
        total, _ = self.type_documents({LESSON: documents()[LESSON]})
        self.assertGreater(total, 20)


if __name__ == "__main__":
    installed.main()
