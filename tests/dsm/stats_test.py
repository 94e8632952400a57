# SPDX-License-Identifier: BSD-3-Clause
"""DSM_STATS: the parts of a PE's time add up to its wall time; pages and blocks count faults, fetches and diffs; the
block that two PEs write at once stands out; a handler's work is counted until it ends; a page that is used after every
acquire is updated and does not fault; a release looks for written pages by one scan; rows of doubles are few runs of words; a
program that only locks does not compute; a PE that waited for its lock has mostly got the notices with it. Use: stats_test.py
OSHRUN RACES LITMUS JACOBI HANDED"""
import collections
import json
import os
import subprocess
import sys

NAMES = ("diffs", "diff_bytes", "fetches", "write_faults", "invalidations", "false_sharing")


def run(stats, program=(sys.argv[2], "adjacent-bytes"), **more):
    environment = dict(os.environ, **{"DSM_PROTOCOL": "newgendsm", "DSM_STATS": stats, "DSM_DETECT": "wp", "DSM_MEMORY": "8M",
                                      **more})
    done = subprocess.run([sys.argv[1], "-n", "2", "--timeout", "240s", *program], env=environment, text=True,
                          capture_output=True, timeout=280, check=False)
    if done.returncode != 0:
        sys.exit(f"stats: {done}")
    return [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]


def expect(is_right, what):
    if not is_right:
        sys.exit(f"stats: {what}")


def main():
    whole, blocks, pages = (run(stats) for stats in ("json", "blocks", "pages"))
    expect(sorted(one["pe"] for one in whole) == [0, 1], f"{whole}")
    for one in whole:
        parts = sum(one[f"{part}_ns"] for part in ("compute", "page", "diff", "lock", "barrier"))
        expect(abs(parts - one["wall_ns"]) < one["wall_ns"] / 1000, f"the parts of the time are {parts}: {one}")
    for lines in (blocks, pages):
        sums = collections.Counter()
        for one in lines:
            for name in NAMES:
                sums[name] += one[name]
        expect(all(sums[name] > 0 for name in NAMES), f"{sums}")
    shared = [one for one in blocks if one["bytes"] == 16416]
    expect(shared and sum(one["false_sharing"] for one in shared) > 0, f"no block shows that two wrote it: {blocks}")
    expect(all(one["bytes"] == 4096 for one in pages), f"{pages}")
    for one in run("json", DSM_PROTOCOL="async"):
        expect(one["served"] > 0 and one["service_ns"] > 0, f"a handler that did nothing: {one}")
    program = (sys.argv[3], "--only", "habits", "--rounds", "10")
    updated, dropped = (next(one for one in run("json", program, DSM_COPIES=copies) if one["pe"] == 1)
                        for copies in ("auto", "invalidate"))
    expect(dropped["updated_pages"] == 0 and updated["updated_pages"] > 60, f"{updated}")
    expect(updated["read_faults"] < dropped["read_faults"] / 2, f"{updated['read_faults']} of {dropped['read_faults']} faults")
    program = (sys.argv[3], "--only", "gaps", "--rounds", "1")
    for one in run("json", program, DSM_DETECT="async"):
        expect(0 < one["scans"] * 4 < one["releases"] * 5, f"{one['scans']} scans in {one['releases']} releases")
    bytewise, wordwise = (sum(one["diff_runs"] for one in run("json", (sys.argv[4], "128", "10"), DSM_LOCAL="off", DSM_WORD=word,
                                                              DSM_HOME="cyclic")) for word in "18")
    expect(0 < wordwise * 10 < bytewise, f"{wordwise} runs of words, {bytewise} of bytes")
    both = run("json", (sys.argv[5], "--steps", "150"), DSM_LOCAL="off")
    waited, handed, read = (sum(one[name] for one in both) for name in ("locks_waited", "locks_handed", "log_reads"))
    expect(waited > 0 and handed * 2 > waited, f"{handed} of {waited} locks that were waited for came with their notices")
    expect(read > 0, "more notices than a releaser remembers were not read")
    program = (sys.argv[3], "--only", "many_locks", "--rounds", "40")
    shares = []
    for _ in range(5):  # of which one must not be disturbed by other processes; the kernel's part of a fault is no lock
        both = run("json", program, DSM_LOCAL="off", DSM_DETECT="async")
        shares.append(max(one["compute_ns"] / one["wall_ns"] for one in both))
        for one in both:  # 10 rounds of 1024 locks, 30 of 64, and some that the library takes
            expect(12160 <= one["locks"] < 13000, f"{one['locks']} locks")
            expect(11136 <= one["locks_retaken"] <= one["locks"] - 1024, f"{one['locks_retaken']} locks taken again")
            expect(one["locks_waited"] == 0, f"{one['locks_waited']} locks of one PE alone waited for")
        if shares[-1] < 0.4:
            break
    expect(shares[-1] < 0.4, f"a program that does nothing but lock computes for {shares} of its time")
    print("PASSED")


main()
