# SPDX-License-Identifier: BSD-3-Clause
"""Aim: every byte that PEs print arrives, in order, in whole lines, whatever reads it; and standard input reaches PE 0.
Method: writers whose output can be recomputed, readers that are slow or leave, a pseudo terminal."""
import hashlib
import os
import pty
import select
import signal
import subprocess
import tempfile
import time

import scenario

# Writes lines "PE-number line-number payload" in pieces that do not end at line ends.
WRITER = r"""
import os, random, sys
me, lines = sys.argv[1], int(sys.argv[2])
rng = random.Random(me)
data = b"".join(b"%s %d %s\n" % (me.encode(), i, b"x" * rng.randrange(200)) for i in range(lines))
at = 0
while at < len(data):
    n = rng.randrange(1, 5000)
    at += os.write(1, data[at:at + n])
"""


def writer_output(me, lines):
    import random
    rng = random.Random(me)
    return b"".join(b"%s %d %s\n" % (me.encode(), i, b"x" * rng.randrange(200)) for i in range(lines))


class Output(scenario.Case):
    def writers(self, count, lines, *options):
        arguments = list(options)
        for i in range(count):
            arguments += [":"] if i else []
            arguments += ["-n", 1, "python3", "-c", WRITER, str(i), lines]
        return arguments

    def test_lines_are_whole_and_in_order(self):
        count, lines = 4, 2000
        job = self.start(*self.writers(count, lines))
        out, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual((job.returncode, err), (0, b""))
        for i in range(count):
            mine = b"".join(line for line in out.splitlines(True) if line.startswith(b"%d " % i))
            self.assertEqual(hashlib.sha1(mine).hexdigest(), hashlib.sha1(writer_output(str(i), lines)).hexdigest())
        self.assertEqual(len(out), sum(len(writer_output(str(i), lines)) for i in range(count)))

    def test_tags(self):
        result = self.run_job("--tag", "--hosts", 2, "-n", 4, "sh", "-c", "echo a; echo b >&2; printf c")
        expected = sorted(f"[PE {pe} host{pe // 2}] {c}" for pe in range(4) for c in "ac")
        self.assertEqual(sorted(result.out.splitlines()), expected)
        self.assertEqual(sorted(result.err.splitlines()), [f"[PE {pe} host{pe // 2}] b" for pe in range(4)])

    def test_slow_reader(self):
        """More than every buffer on the way holds; the PEs must wait, and nothing may be lost."""
        count, lines = 2, 40000
        job = self.start(*self.writers(count, lines))
        time.sleep(1.0)
        out = b""
        for _ in range(20):
            out += os.read(job.stdout.fileno(), 65536)
            time.sleep(0.02)
        rest, err = job.communicate(timeout=scenario.LIMIT_S)
        out += rest
        self.assertEqual((job.returncode, err), (0, b""))
        self.assertEqual(len(out), sum(len(writer_output(str(i), lines)) for i in range(count)))

    def test_reader_that_pauses_after_the_end(self):
        job = self.start("sh", "-c", "seq 30000")
        time.sleep(1.5)
        out, _ = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(out, b"".join(b"%d\n" % i for i in range(1, 30001)))

    def test_reader_that_leaves(self):
        job = self.start("-n", 2, "sh", "-c", "while echo y; do :; done")
        self.assertEqual(os.read(job.stdout.fileno(), 2), b"y\n")
        job.stdout.close()
        self.assertEqual(job.wait(timeout=scenario.LATE_S), 128 + signal.SIGPIPE)
        self.assertEqual(job.stderr.read(), b"")
        job.stderr.close()

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "wb") as full:
            job = self.start("-n", 2, "sh", "-c", "echo y; exec sleep 100", stdout=full)
            _, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 1)
        self.assertIn(b"No space left", err)

    def test_binary_and_long_lines(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(os.urandom(300000).replace(b"\n", b"n") + b"\n" + os.urandom(100000))
            file.flush()
            job = self.start("cat", file.name)
            out, _ = job.communicate(timeout=scenario.LIMIT_S)
            file.seek(0)
            self.assertEqual(hashlib.sha1(out).hexdigest(), hashlib.sha1(file.read()).hexdigest())

    def test_long_lines_of_several(self):
        """Each is larger than pipe and buffer, and written in parts while the others write."""
        count, lines, size = 3, 4, 1 << 20
        program = "import os, sys\nline = sys.argv[1].encode() * %d + b'\\n'\nfor _ in range(%d):\n    at = 0\n" \
                  "    while at < len(line):\n        at += os.write(1, line[at:at + 7001])\n" % (size, lines)
        arguments = []
        for pe in range(count):
            arguments += [":"] * bool(pe) + ["python3", "-c", program, pe]
        result = self.run_job(*arguments)
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertTrue(sorted(result.out.splitlines()) == [str(pe) * size for pe in range(count) for _ in range(lines)],
                        sorted({(line[:1], len(line)) for line in result.out.splitlines()}))

    def test_a_line_that_is_too_long(self):
        """Another PE's line comes between, once what oshrun holds is full: marked, and nothing is lost."""
        size, rest = 20 << 20, 1000
        with tempfile.TemporaryDirectory() as folder:
            wait = "while [ ! -e %s/%s ]; do sleep 0.02; done"
            long = f"head -c {size} /dev/zero | tr '\\0' a; touch {folder}/full; {wait % (folder, 'said')}; " \
                   f"head -c {rest} /dev/zero | tr '\\0' a; echo"
            result = self.run_job("sh", "-c", long, ":", "sh", "-c", f"{wait % (folder, 'full')}; echo b; touch {folder}/said")
        self.assertEqual((result.status, result.err), (0, ""))
        lines = result.out.splitlines()
        self.assertEqual([line for line in lines if "a" not in line], ["b"])
        parts = [line for line in lines if "a" in line]
        self.assertEqual(len(parts), 2)
        self.assertTrue(parts[0].endswith("a[...]") and parts[1].startswith("[...]a"))
        self.assertEqual("".join(parts).replace("[...]", "").count("a"), size + rest)
        self.assertEqual(len("".join(parts)), size + rest + 2 * len("[...]"))

    def test_prompt_without_newline_appears(self):
        job = self.start("sh", "-c", "printf 'name? '; sleep 30")
        ready, _, _ = select.select([job.stdout], [], [], scenario.LATE_S)
        self.assertTrue(ready)
        self.assertEqual(os.read(job.stdout.fileno(), 100), b"name? ")
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=scenario.LIMIT_S)

    def test_closed_outputs(self):
        self.assertEqual(self.run_job("-n", 2, "sh", "-c", "exec >&- 2>&-; sleep 0.2").status, 0)
        job = subprocess.run(["sh", "-c", f"exec '{scenario.OSHRUN}' -n 2 true >&- 2>&- <&-"],
                             env=scenario.environment(self.mark), timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 0)

    def test_output_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_job("--output", folder + "/new", "-n", 3, "sh", "-c", "echo a; echo b >&2; echo c")
            self.assertEqual((result.status, result.out, result.err), (0, "", ""))
            self.assertEqual(sorted(os.listdir(folder + "/new")), ["pe0.out", "pe1.out", "pe2.out"])
            for pe in range(3):
                with open(f"{folder}/new/pe{pe}.out") as file:
                    self.assertEqual(file.read(), "a\nb\nc\n")
            result = self.run_job("--output", "/proc/nowhere", "true")
            self.assertEqual(result.status, 1)
            self.assertIn("Q0213", result.err)

    def test_output_folder_of_somebody_else(self):
        """Links and pipes that lie where pe<i>.out belongs are not written through."""
        with tempfile.TemporaryDirectory() as folder:
            victim = os.path.join(folder, "victim")
            for make in (os.symlink, os.link, lambda _, name: os.mkfifo(name)):
                with open(victim, "w") as file:
                    file.write("mine")
                make(victim, os.path.join(folder, "pe1.out"))
                result = self.run_job("--output", folder, "-n", 2, "echo", "x")
                self.assertEqual(result.status, 1, result)
                self.assertRegex(result.err, r"cannot write .*pe1.out: it is .* \[Q0213\]")
                with open(victim) as file:
                    self.assertEqual(file.read(), "mine")
                os.unlink(os.path.join(folder, "pe1.out"))

    def test_what_cannot_be_written_is_a_failure(self):
        for option in ("--trace", "--stats-json"):
            result = self.run_job(option, "/dev/full", "-n", 1, "true")
            self.assertEqual(result.status, 1, result)
            self.assertIn("cannot write /dev/full", result.err)

    def test_both_outputs_in_one_file(self):
        with tempfile.TemporaryFile() as file:
            job = self.start("-n", 4, "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo out$i; echo err$i >&2; done",
                             stdout=file, stderr=file)
            self.assertEqual(job.wait(timeout=scenario.LIMIT_S), 0)
            file.seek(0)
            lines = file.read().decode().splitlines()
        expected = [f"{which}{i}" for which in ("out", "err") for i in range(1, 10)] * 4
        self.assertEqual(sorted(lines), sorted(expected))


class Input(scenario.Case):
    def test_pe_0_reads_the_others_find_the_end(self):
        text = "".join(f"line {i}\n" for i in range(20000))
        result = self.run_job("--tag", "-n", 3, "wc", "-l", text_in=text)
        self.assertEqual(sorted(result.out.splitlines()),
                         ["[PE 0 host0] 20000", "[PE 1 host0] 0", "[PE 2 host0] 0"])

    def test_input_that_is_not_read_stays(self):
        """A loop that reads a list and runs a job for each line must not lose lines to the jobs."""
        script = f"while read x; do '{scenario.OSHRUN}' -n 2 echo $x; done"
        done = subprocess.run(["sh", "-c", script], input="a\nb\nc\n", text=True, capture_output=True,
                              env=scenario.environment(self.mark), timeout=scenario.LIMIT_S)
        self.assertEqual(done.stdout, "a\na\nb\nb\nc\nc\n")

    def test_terminal(self):
        """On a terminal: PE 0 reads what is typed, end of file included, and tags are coloured."""
        for no_colour in ("", "1"):
            try:
                leader, follower = pty.openpty()
            except OSError as problem:
                self.skipTest(f"no pseudo terminal: {problem}")
            script = "echo ready; while read x; do echo got $x; done"
            environment = scenario.environment(self.mark, NO_COLOR=no_colour)
            job = subprocess.Popen([scenario.OSHRUN, "--tag", "sh", "-c", script], stdin=follower, stdout=follower,
                                   stderr=follower, env=environment, start_new_session=True)
            os.close(follower)
            seen = self.read_until(leader, b"ready")
            os.write(leader, b"hello\n")
            seen += self.read_until(leader, b"got hello")
            os.write(leader, b"\x04")
            self.assertEqual(job.wait(timeout=scenario.LIMIT_S), 0)
            os.close(leader)
            self.assertEqual(b"\x1b[" in seen, no_colour == "", seen)

    def read_until(self, fd, words):
        seen = b""
        end = time.monotonic() + scenario.LIMIT_S
        while words not in seen:
            ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
            self.assertTrue(ready, seen)
            seen += os.read(fd, 4096)
        return seen


if __name__ == "__main__":
    scenario.main()
