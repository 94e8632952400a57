# SPDX-License-Identifier: BSD-3-Clause
"""Aim: every subcommand of quoit works from an installed copy alone. Method: the shortest real use of each, and its result:
data is read back, pages are there, a job is seen, a ring carries a job. What each prints is judged by the tests of the
commands; a command without a test here fails."""
import json
import os
import subprocess

import installed

WAITS = """#include <shmem.h>
#include <stdio.h>
int main(void)
{
    shmem_init();
    if (shmem_my_pe() == 0) {
        puts("begun");
        fflush(stdout);
        while (getchar() != EOF) {
        }
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
"""


class Commands(installed.Case):
    def read(self, name):
        with open(os.path.join(self.work, name), encoding="utf-8") as file:
            return json.load(file)

    def assert_page(self, *path):
        with open(os.path.join(self.work, *path), encoding="utf-8") as file:
            page = file.read()
        self.assertTrue(page.lstrip().lower().startswith("<!doctype html"), page[:80])
        self.assertIn("</html>", page)

    def quiet(self, *words, **how):
        """The output of a command that may report its progress on standard error."""
        done = self.run_command(*words, **how)
        self.assertEqual(done.returncode, 0, (words, done.stdout, done.stderr))
        return done.stdout

    def test_all_are_tested(self):
        for name in [line.split()[0] for line in self.command("quoit", "--help").splitlines() if line.startswith("  ")]:
            self.assertTrue(hasattr(self, f"test_{name}"), f"quoit {name} has no test here")

    def test_info(self):
        for _ in self.prefixes():
            told = json.loads(self.command("quoit", "info", "--json", "--hosts", 3, "-n", 3))
            self.assertTrue(told["transports"]["to PE 1"].startswith("direct"), told["transports"])
            for part in ("paths", "networks", "schedules"):
                self.assertNotEqual(self.command("quoit", "info", part), "")

    def test_docs(self):
        """With a site or without it the command names a folder that is there; the site itself: installed.site."""
        for _ in self.prefixes():
            shown = self.run_command("quoit", "docs").stdout.strip()
            self.assertTrue(os.path.exists(shown), shown)

    def test_model(self):
        """Constants and mistakes of models: scenario.virtual."""
        for _ in self.prefixes():
            self.assertIn("papers-2022", self.command("quoit", "model", "list"))
            path = self.command("quoit", "model", "show", "papers-2022").splitlines()[0]
            self.assertIn("a model: ", self.command("quoit", "model", "check", path))

    def test_explain(self):
        """Each code of it: installed.explain."""
        for _ in self.prefixes():
            self.assertIn("past the end", self.command("quoit", "explain", "Q0116"))

    def test_panes(self):
        """In tmux: scenario.debugger."""
        done = self.run_command("oshrun", "-n", 1, "--debugger", "quoit panes true", "true", env={"TMUX": ""})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"quoit panes: PE 0: (there is no tmux around oshrun|tmux is not installed)")

    def test_perf(self):
        for _ in self.prefixes():
            few = ["--tests", "put-quiet", "--sizes", "8", "--seconds", "1"]
            self.quiet("quoit", "perf", *few, "--json", "ours.json", "--html", "ours.html")
            # The installed source of the benchmark, built anew as for another library.
            self.quiet("quoit", "perf", *few, "--cc", "oshcc", "--launch", "oshrun -n {pes}", "--json", "theirs.json")
            for name in ("ours.json", "theirs.json"):
                rows = self.read(name)["rows"]
                self.assertEqual({(row["test"], row["bytes"]) for row in rows}, {("put-quiet", 8)}, name)
                self.assertTrue(all(row["ns"]["median"] > 0 for row in rows), name)
            self.assertIn("put-quiet", self.quiet("quoit", "perf", "--compare", "ours.json", "theirs.json"))
            if installed.has_matplotlib():
                self.assert_page("ours.html")
                self.quiet("quoit", "perf", "--compare", "ours.json", "theirs.json", "--html", "both.html")
                self.assert_page("both.html")

    def test_predict(self):
        """Of a program; mistakes and values: scenario.predicted."""
        self.bring(installed.GREET)
        self.command("oshcc", "greet.c", "-o", "greet")
        for _ in self.prefixes():
            self.assertIn("speed-up", self.command("quoit", "predict", "./greet", "--hosts", "1,2", "--model", "ring-gen4-x8"))

    def test_predict_rings(self):
        self.skip_without_matplotlib()
        for _ in self.prefixes():
            self.quiet("quoit", "predict", "--hosts", "2,3", "--seeds", "1", "--bytes", "4K", "--html", "page.html")
            self.assert_page("page.html")

    def test_report(self):
        self.skip_without_matplotlib()
        for _ in self.prefixes():
            data = self.quiet("quoit", "predict", "--hosts", "2,3", "--seeds", "1", "--bytes", "4K", "--json")
            self.quiet("quoit", "report", "-", "--html", "page.html", text_in=data)
            self.assert_page("page.html")

    def test_ring(self):
        self.bring(installed.GREET)
        self.command("oshcc", "greet.c", "-o", "hello")
        problem = self.ring_problem()
        if problem:
            self.skipTest(problem)
        self.command("quoit", "ring", "up", "--hosts", 2, "--ring", "lab")
        try:
            self.assertIn("lab", self.command("quoit", "ring", "list"))
            self.assertEqual(self.command("quoit", "ring", "exec", "--ring", "lab", 1, "--", "hostname"), "host1\n")
            self.assertEqual(len(json.loads(self.command("quoit", "ring", "status", "--ring", "lab", "--json"))["hosts"]), 2)
            self.check_hello("./hello", "--ring", "lab")
        finally:
            self.command("quoit", "ring", "down", "--ring", "lab")

    def test_sim(self):
        for _ in self.prefixes():
            self.assertRegex(self.command("quoit", "sim", "--seed", 1, "--seeds", 3), "3 ")

    def test_top(self):
        self.write("waits.c", WAITS)
        self.command("oshcc", "waits.c", "-o", "waits")
        words = self.copies.hidden.words(self.work, ["oshrun", "--hosts", "2", "-n", "2", "./waits"])
        job = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.work, env=self.environment())
        try:
            self.assertEqual(job.stdout.readline(), b"begun\n")
            seen = json.loads(self.command("quoit", "top", "--once", "--json", "--interval", "50ms", job.pid))
            self.assertEqual((seen["program"], seen["hosts"], seen["pes"]), ("waits", 2, 2))
            self.assertIn("waits", self.command("quoit", "top", "--list"))
        finally:
            job.communicate(timeout=installed.LIMIT_S)
        self.assertEqual(job.returncode, 0)

    def test_profile(self):
        self.write("waits.c", WAITS)
        for _ in self.prefixes():
            self.command("oshcc", "-g", "waits.c", "-o", "waits")
            self.quiet("oshrun", "--profile", "job.json", "-n", 2, "./waits")
            self.assertIn("shmem_barrier_all (waits.c:12)", self.command("quoit", "profile", "job.json"))

    def test_tune(self):
        for prefix in self.prefixes():
            home = os.path.join(self.work, os.path.basename(os.path.dirname(prefix)).replace(" ", "-"))
            os.mkdir(home)
            self.quiet("quoit", "tune", "--time", "1s", "--memory", "1M", "--force", env={"HOME": home})
            stored = os.listdir(os.path.join(home, ".config", "quoit"))
            self.assertEqual(len(stored), 1, stored)
            self.assertIn(stored[0], self.quiet("quoit", "info", "paths", env={"HOME": home}))

    def test_figures(self):
        """A simulated figure, and those of shared pages."""
        self.skip_without_matplotlib()
        self.quiet("quoit", "figures", "--quick", "--html", "out/figures.html", "22/4a")
        self.assert_page("out", "figures.html")
        self.prefix = self.copies.blank
        self.quiet("quoit", "figures", "dsm", "--quick", "--html", "out/dsm.html")
        self.assert_page("out", "dsm.html")

    def test_figures_hybrid(self):
        """Measured on this machine, with the BFS of the examples: the other library is this one again."""
        self.skip_without_matplotlib()
        self.prefix = self.copies.blank
        self.quiet("quoit", "figures", "hybrid", "--quick", "--scale", 8, "--cc", "oshcc", "--launch", "oshrun -n {pes}",
                   "--html", "out/hybrid.html")
        self.assert_page("out", "hybrid.html")
        data = json.dumps(self.read("out/hybrid.json"))
        self.assertIn("BFS, 2^8 vertices", data)
        self.assertNotRegex(data, "BFS was not run|BFS, [^2]")  # "BFS, LIBRARY: problem"


if __name__ == "__main__":
    installed.main()
