# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a profile of a program of shared pages has its page faults, locks and barriers by the line of the program, and no call of
OpenSHMEM that libqdsm makes. Method: pages.c, whose faults by line follow from its rounds, on one host, a ring and with a handler;
by PE the rows add up to what libqdsm counted itself (DSM_STATS), less the faults inside its routines, of which a run without
rounds has as many."""
import json
import os
import re
import sys
import tempfile

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scenario"))

import scenario

PROGRAM = scenario.program("profile_pages")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pages.c")
PAGES, BYTES = 5, 4096
# Each fault brings one page, each copy goes when its page is written, each first store after a release is seen, and no home moves.
SET = {"DSM_STATS": "json", "DSM_COPIES": "invalidate", "DSM_PREFETCH": "1", "DSM_DETECT": "segv", "DSM_HOME": "first",
       "DSM_EXCLUSIVE": "off"}


def lines():
    with open(SOURCE, encoding="utf-8") as file:
        return {match[1]: f"pages.c:{number}" for number, line in enumerate(file, 1) if (match := re.search(r"/\* /(\w+) \*/", line))}


def faults_of(found, name, pe):
    return sum(cell["calls"] for row in found["rows"] if row["routine"] == name for cell in row["pes"] if cell["pe"] == pe)


class Pages(scenario.Case):
    def profile(self, *arguments, **env):
        """The file, and what libqdsm counted, by PE."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.json")
            result = self.run_job("--profile", path, *arguments, env={**SET, **env})
            self.assertEqual(result.status, 0, result)
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        counted = [json.loads(line) for line in re.findall(r'^\{"pe":.*\}$', result.err, re.M)]
        return found, {each["pe"]: each for each in counted}

    def check(self, pes, rounds, *form, **env):
        at = lines()
        before, counted_before = self.profile("-n", pes, *form, PROGRAM, 0, **env)
        found, counted = self.profile("-n", pes, *form, PROGRAM, rounds, **env)
        self.assertEqual(sorted(counted), list(range(pes)))
        cells = {(row["routine"], row["line"], cell["pe"]): (cell["calls"], cell["bytes"])
                 for row in found["rows"] for cell in row["pes"]}
        for pe in range(pes):
            for kind in ("read", "write"):
                name, count = f"dsm {kind} fault", f"{kind}_faults"
                inside = counted_before[pe][count] - faults_of(before, name, pe)
                self.assertEqual(faults_of(found, name, pe), counted[pe][count] - inside)
            self.assertEqual(sum(cells[key][1] for key in cells if key[2] == pe),
                             (counted[pe]["fetched_pages"] + counted[pe]["updated_pages"]) * BYTES)
            self.assertEqual(cells["dsm read fault", at["read"], pe], (PAGES * rounds, PAGES * rounds * BYTES))
            self.assertEqual(cells["dsm write fault", at["write"], pe], (PAGES * rounds, 0))
            for routine, word, calls in (("dsm_init", "init", 1), ("dsm_all_malloc", "malloc", 1), ("dsm_migrate", "migrate", pes), ("dsm_lock", "lock", rounds),
                                         ("dsm_unlock", "unlock", rounds), ("dsm_barrier_all", "written", rounds),
                                         ("dsm_barrier_all", "done", rounds), ("dsm_finalize", "end", 1),
                                         ("shmem_barrier_all", "own", 1)):
                self.assertEqual(cells[routine, at[word], pe][0], calls, routine)
        of_shmem = [(row["routine"], row["all"]["calls"]) for row in found["rows"] if row["routine"].startswith("shmem_")]
        self.assertEqual(of_shmem, [("shmem_barrier_all", pes)])
        self.assertEqual((found["puts"], found["gets"], found["atomics"]), ([], [], []))
        compared = {row["line"]: row["compared"] for row in found["rows"] if row["routine"] == "dsm_barrier_all"}
        self.assertEqual(compared, {at["written"]: rounds, at["done"]: rounds})
        for pe in found["pes"]:
            self.assertLessEqual(pe["ns"], pe["run_ns"])
            self.assertEqual(sum(pe["call_ns_of"]), pe["ns"])
            for call_ns, wait_ns in zip(pe["call_ns_of"], pe["wait_ns_of"]):
                self.assertLessEqual(wait_ns, call_ns)

    def test_one_host(self):
        self.check(3, 12, DSM_PROTOCOL="newgendsm")

    def test_ring(self):
        self.check(4, 6, "--hosts", 2)

    def test_handler(self):
        """The thread of the handler is no part of the program."""
        self.check(3, 6, DSM_PROTOCOL="ardmar")

    def test_one_memory(self):
        """With `direct` nothing is fetched: a fault maps a chunk."""
        found, counted = self.profile("-n", 2, PROGRAM, 3, DSM_PROTOCOL="direct")
        faults = {row["routine"]: row["all"] for row in found["rows"] if row["routine"].startswith("dsm ")}
        self.assertLessEqual(set(faults), {"dsm chunk fault"})
        self.assertGreater(faults["dsm chunk fault"]["calls"], 0)
        self.assertEqual(faults["dsm chunk fault"]["bytes"], 0)
        self.assertEqual([counted[pe]["read_faults"] for pe in counted], [0, 0])


if __name__ == "__main__":
    scenario.main()
