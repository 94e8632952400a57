# SPDX-License-Identifier: BSD-3-Clause
"""`oshrun --trace` shows what libqdsm did: as many slices of faults, fetches, updates and diffs as DSM_STATS counts, the
fetches within faults and as large as the pages that were fetched. Use: trace_test.py OSHRUN PROGRAM (random)"""
import collections
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "trace"))
import perfetto

PAGE = 4096


def expect(is_right, what):
    if not is_right:
        sys.exit(f"trace: {what}")


def check(arguments, copies):
    environment = dict(os.environ, DSM_PROTOCOL="newgendsm", DSM_STATS="json", DSM_COPIES=copies, DSM_MEMORY="8M")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "job.pftrace")
        done = subprocess.run([sys.argv[1], "--trace", path, "--timeout", "240s", *arguments, sys.argv[2],
                               "--steps", "4"], env=environment, text=True, capture_output=True, timeout=280, check=False)
        expect(done.returncode == 0 and all(line.startswith("{") for line in done.stderr.splitlines()), f"{done}")
        trace = perfetto.Trace(path)
    counted = collections.Counter()
    for line in done.stderr.splitlines():
        if line.startswith("{"):
            counted.update(json.loads(line))
    slices = collections.defaultdict(list)
    for part in trace.slices:
        slices[part.name].append(part)
    for name, count in (("dsm read fault", "read_faults"), ("dsm write fault", "write_faults"), ("dsm update", "updated_pages")):
        expect(len(slices[name]) == counted[count], f"{len(slices[name])} slices {name}, but {count} is {counted[count]}")
    fetched = sum(part.notes["bytes"] for part in slices["dsm fetch"])
    expect(fetched == counted["fetched_pages"] * PAGE, f"the slices of fetches have {fetched} bytes: {counted}")
    expect(len(slices["dsm diff"]) >= counted["diff_pages"] > 0, f"{len(slices['dsm diff'])} slices of diffs: {counted}")
    expect(all(part.parent and part.parent[1].endswith("fault") for part in slices["dsm fetch"]), "a fetch outside a fault")
    expect(all(part.notes["pe"] < 3 for name in ("dsm fetch", "dsm diff", "dsm update") for part in slices[name]), "the homes")
    expect((copies == "update") == (counted["updated_pages"] > 0), f"{counted}")


check(["-n", "3"], "invalidate")
check(["--hosts", "3", "-n", "3"], "update")
print("PASSED")
