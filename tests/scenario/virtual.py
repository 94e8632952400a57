# SPDX-License-Identifier: BSD-3-Clause
"""Aim: oshrun --virtual gives a program the time of a model's machine: the same in each run to the nanosecond, whatever this
machine does beside it, as the model says; results stay right, a deadlock is known at once, limits are of virtual time.

Method: programs whose output depends on the order of all operations (virtual.c), twice, and beside processes that compute: each
PE's file and the time must be equal to the byte. Times of a put are computed from the model's constants. Hangs are those of
hang.c, with the words that scenario.hangs expects of them after ten seconds."""
import json
import os
import re
import subprocess
import sys
import tempfile

import scenario

PROGRAM = scenario.program("scenario_virtual")
HANG = scenario.program("scenario_hang")
QUOIT = os.path.join(scenario.BIN, "quoit")
MODEL = "papers-2022"
# It computes until its input ends, which it does with this test.
BUSY = "import select, sys\nwhile not select.select([sys.stdin], [], [], 0)[0]: sum(range(10000))"


class Virtual(scenario.Case):
    def run_virtual(self, *arguments, set_to="", model=MODEL, **how):
        """A job that ends well: its virtual time in ns, and its result."""
        changes = ("--set", set_to) if set_to else ()
        result = self.run_job("--virtual", model, *changes, *arguments, **how)
        self.assertEqual(result.status, 0, result)
        found = re.search(rf"^oshrun: (\d+)\.(\d{{3}}) us of virtual time, by the model {model}$", result.err, re.M)
        self.assertTrue(found, result)
        return int(found[1] + found[2]), result

    @staticmethod
    def content_of(path):
        with open(path, "rb") as file:
            return file.read()

    def files_of(self, *arguments):
        """The time, and what each PE has printed."""
        with tempfile.TemporaryDirectory() as folder:
            time_ns, _ = self.run_virtual("--output", folder, *arguments)
            names = sorted(os.listdir(folder))
            return time_ns, [(name, self.content_of(os.path.join(folder, name))) for name in names]

    def test_runs_repeat_also_under_load(self):
        shapes = [("-n", 7, PROGRAM, "tasks"), ("-n", 5, PROGRAM, "parts"), ("--hosts", 3, "-n", 6, PROGRAM, "tasks"),
                  ("--hosts", 5, "-n", 5, PROGRAM, "parts"), ("--hosts", 2, "--lanes", 1, "-n", 2, PROGRAM, "parts")]
        quiet = [self.files_of(*shape) for shape in shapes]
        self.assertEqual([len(files) for _, files in quiet], [7, 5, 6, 5, 2])
        self.assertEqual([self.files_of(*shape) for shape in shapes], quiet)
        busy = [subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE) for _ in range(4)]
        try:
            self.assertEqual([self.files_of(*shape) for shape in shapes], quiet)
        finally:
            for process in busy:
                process.stdin.close()
                process.wait()

    def test_tasks_are_shared(self):
        """PEs that ask for tasks at the same speed get about as many."""
        _, files = self.files_of("-n", 4, PROGRAM, "tasks")
        counts = [int(re.search(rb"did (\d+) tasks", text)[1]) for _, text in files]
        self.assertEqual(sum(counts), 200)
        self.assertGreater(min(counts), 25, counts)

    def test_a_put_takes_what_the_model_says(self):
        """1 GB/s is a byte a nanosecond."""
        def time_of(size, set_to):
            return self.run_virtual("-n", 2, PROGRAM, "put", size, set_to=set_to)[0]
        base_ns = time_of(1000, "memory_rate=1e9")
        self.assertEqual(time_of(1000000, "memory_rate=1e9") - base_ns, 999000)
        self.assertEqual(time_of(1000000, "memory_rate=2e9") - time_of(1000, "memory_rate=2e9"), 999000 // 2)
        self.assertEqual(time_of(1000000, "memory_rate=1e9,memory_rate=0.5x") - time_of(1000, "memory_rate=0.5e9"), 999000 * 2)
        slow_ns, slower_ns = (time_of(1000, f"memory_rate=1e9,line_latency={ns}ns") for ns in (160, 260))
        self.assertEqual(slower_ns - slow_ns, slow_ns - base_ns) # 60, 160, 260 ns: each step the same number of lines
        self.assertGreaterEqual(slow_ns - base_ns, 300) # the put, the flag, PE 1's look

    def test_a_put_over_a_link_takes_what_the_model_says(self):
        def time_of(size, set_to, hosts=2):
            return self.run_virtual("--hosts", hosts, "-n", hosts, PROGRAM, "put", size, set_to=set_to)[0]
        base_ns = time_of(1000, "link_rate=1e9")
        self.assertEqual(time_of(1000000, "link_rate=1e9") - base_ns, 999000)
        self.assertEqual(time_of(1000000, "link_rate=2e9") - time_of(1000, "link_rate=2e9"), 999000 // 2)
        self.assertEqual(time_of(1000000, "link_rate=1e9", 5) - time_of(1000, "link_rate=1e9", 5), 999000)
        slow_ns, slower_ns = (time_of(1000, f"link_rate=1e9,link_latency={ns}ns") for ns in (1525, 2525))
        self.assertEqual(slower_ns - slow_ns, slow_ns - base_ns) # 525, 1525, 2525 ns: each step the same number of crossings
        self.assertEqual((slow_ns - base_ns) % 1000, 0)
        self.assertGreaterEqual(slow_ns - base_ns, 2000) # the put and the flag

    def test_compute(self):
        """Of 8 PEs that compute for 20 ms each at the same virtual time: one after the other it would be 160."""
        for shape in (("-n", 8), ("--hosts", 4, "-n", 8)):
            self.assertLess(self.run_virtual(*shape, PROGRAM, "compute")[0], 1000000)
            time_ns, _ = self.run_virtual("--compute", "measured", *shape, PROGRAM, "compute")
            self.assertGreaterEqual(time_ns, 20000000)
            self.assertLess(time_ns, 80000000)

    def test_what_links_carry_repeats(self):
        with tempfile.TemporaryDirectory() as folder:
            names = [os.path.join(folder, name) for name in ("first", "second")]
            for name in names:
                self.run_virtual("--stats-json", name, "--hosts", 4, "-n", 4, PROGRAM, "parts")
            first, second = (self.content_of(name) for name in names)
            self.assertEqual(first, second)
            self.assertGreater(sum(link["bytes"] for link in json.loads(first)["links"]), 4 << 20)

    def test_polls_and_plain_stores(self):
        time_ns, _ = self.run_virtual("-n", 2, PROGRAM, "poll")
        self.assertEqual(self.run_virtual("-n", 2, PROGRAM, "poll")[0], time_ns)

    def test_polling_of_plain_memory_is_reported(self):
        """By processor time, so on a loaded machine later."""
        with tempfile.TemporaryFile() as said:
            def text():
                said.seek(0)
                return said.read().decode()
            job = self.start("--virtual", MODEL, "-n", 2, PROGRAM, "plain", stderr=said)
            try:
                self.wait_for(lambda: "Q0706" in text() or job.poll() is not None, "the warning", limit=5 * scenario.LIMIT_S)
                self.assertRegex(text(), r"oshrun: warning: PE 0 computes for 10 s without a routine, .*\[Q0706\]")
            finally:
                job.terminate()
                job.communicate()

    def test_many_pes(self):
        for shape in (("-n", 40), ("--hosts", 24, "-n", 24)):
            time_ns, _ = self.run_virtual(*shape, PROGRAM, "none")
            self.assertEqual(self.run_virtual(*shape, PROGRAM, "none")[0], time_ns)

    def test_deadlocks_are_known_at_once(self):
        for kind, words in (("value", r"no PE is left to write what PE 2 waits for +\[Q0140\]\n(.*\n)*  PE 2 was waiting in "
                                      r"shmem_long_wait_until .*for flag == 7, which is 0"),
                            ("two-locks", r"PE 0 waits for a lock whose holder, PE 1, waits too +\[Q0142\]"),
                            ("other-order", r"the collectives that the PEs are in do not match +\[Q0141\]")):
            for hosts in (1, 3):
                with self.subTest(kind=kind, hosts=hosts):
                    result = self.run_soon("--virtual", MODEL, "--hosts", hosts, "-n", 3, HANG, kind, until=words)
                    self.assertEqual(result.status, 1, result)
                    self.assertRegex(result.err, r"every PE waits, and nothing can happen after \d+\.\d{3} us of virtual time: ")

    def test_deadlock_where_computing_takes_time(self):
        result = self.run_job("--virtual", MODEL, "--compute", "measured", "--hosts", 3, "-n", 3, HANG, "value")
        self.assertEqual(result.status, 1, result)
        self.assertIn("[Q0140]", result.err)

    def test_limit_of_virtual_time(self):
        result = self.run_soon("--virtual", MODEL, "--timeout", "1ms", "-n", 2, PROGRAM, "endless",
                               until=r"the job ran longer than 1ms \(--timeout\) +\[Q0206\]")
        self.assertEqual(result.status, 124, result)
        self.run_virtual("--timeout", "1s", "-n", 2, PROGRAM, "parts")

    def test_what_is_refused(self):
        """Before anything starts."""
        for arguments, words in (
                (("--virtual", "nothing"), r"there is no model nothing .*\[Q0702\]"),
                (("--virtual", "/nowhere/x"), r"cannot read /nowhere/x.*\[Q0702\]"),
                (("--virtual", MODEL, "--set", "rate=1"), r"--set: \"rate=1\" is not NAME=VALUE.*\[Q0703\]"),
                (("--set", "look_time=2x"), r"--set look_time=2x changes the model of --virtual.*\[Q0210\]"),
                (("--virtual", MODEL, "--network", "tcp", "--hosts", 2), r"--virtual has a ring of hosts.*\[Q0210\]"),
                (("--virtual", MODEL, "--protocol", "scratchpad", "--hosts", 2), r"--virtual has links that.*\[Q0210\]"),
                # QUOIT_VIRTUAL_THREADS_MAX
                (("--virtual", MODEL, "--hosts", 1024, "--lanes", 8), r"--virtual has at most 8192 PEs and.*\[Q0210\]"),
                (("--virtual", MODEL, "--compute", "some"), r"--compute is \"some\", but must be .*\[Q0210\]")):
            with self.subTest(arguments=arguments):
                result = self.run_job(*arguments, PROGRAM, "none")
                self.assertEqual(result.status, 2, result)
                self.assertRegex(result.err, words)

    @staticmethod
    def constants_of(model):
        """As `quoit model show` prints them: {name: value}, in bytes a second or ns."""
        shown = subprocess.run([QUOIT, "model", "show", model], capture_output=True, text=True, timeout=scenario.LIMIT_S, check=True)
        return {name: float(value.removesuffix("ns")) for name, value in re.findall(r"^(\w+) +(\S+)  \S", shown.stdout, re.M)}

    def test_links_of_models(self):
        """What a put takes more for 999,000 bytes more is what they take on a link; twice the lanes are half of that.
        The put is cut into about 61 writes, whose times are whole nanoseconds."""
        took_ns = {}
        for model in (f"ring-gen{gen}-x{lanes}" for gen in (3, 4, 5, 6) for lanes in (8, 16)):
            base_ns, whole_ns = (self.run_virtual("--hosts", 2, "-n", 2, PROGRAM, "put", size, model=model)[0] for size in (1000, 1000000))
            took_ns[model] = whole_ns - base_ns
            self.assertAlmostEqual(took_ns[model], 999000e9 / self.constants_of(model)["link_rate"], delta=62, msg=model)
        for gen in (3, 4, 5, 6):
            self.assertAlmostEqual(took_ns[f"ring-gen{gen}-x8"] / took_ns[f"ring-gen{gen}-x16"], 2, delta=0.01)

    def test_models_of_rings_differ_in_their_links_alone(self):
        link = ",".join(f"{name}={self.constants_of('ring-gen5-x16')[name]:.0f}{unit}" for name, unit in
                        (("link_rate", ""), ("link_latency", "ns"), ("read_latency", "ns")))
        shape = ("--hosts", 3, "-n", 6, PROGRAM, "tasks")
        expected_ns = self.run_virtual(*shape, model="ring-gen5-x16")[0]
        for model in ("ring-gen3-x8", "ring-gen6-x16", MODEL):
            self.assertEqual(self.run_virtual(*shape, model=model, set_to=link)[0], expected_ns)
        self.assertGreater(self.run_virtual(*shape, model="ring-gen3-x8")[0], expected_ns)
        self.assertLess(self.run_virtual(*shape, model="ring-gen5-zen4")[0], expected_ns)

    def test_sources_of_models(self):
        """What stands in brackets is a key of docs/sources.md."""
        folder = os.path.join(os.environ["SCENARIO_SOURCE"], "share", "quoit", "models")
        with open(os.path.join(os.environ["SCENARIO_SOURCE"], "docs", "sources.md"), encoding="utf-8") as file:
            keys = set(re.findall(r"^\| ([\w-]+) \|", file.read(), re.M))
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                self.assertLessEqual(set(re.findall(r"\[([\w-]+)\]", file.read())), keys, name)

    def test_models(self):
        def quoit(*words):
            return subprocess.run([QUOIT, "model", *words], capture_output=True, text=True, timeout=scenario.LIMIT_S)
        listed = quoit("list")
        self.assertEqual((listed.returncode, listed.stderr), (0, ""))
        names = [line.split()[0] for line in listed.stdout.splitlines()]
        self.assertLessEqual({MODEL, "ring-gen3-x8", "ring-gen6-x16", "ring-gen5-zen4"}, set(names))
        for name in names:
            shown = quoit("show", name)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertEqual(quoit("check", shown.stdout.splitlines()[0]).returncode, 0)
        self.assertIn(" 120ns ", quoit("show", MODEL, "--set", "line_latency=2x").stdout)
        self.assertEqual(quoit("show", "nothing").returncode, 1)
        self.assertEqual(quoit("check", "nothing").returncode, 1)
        self.assertEqual(quoit("change").returncode, 2)


if __name__ == "__main__":
    scenario.main()
