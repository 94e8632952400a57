# SPDX-License-Identifier: BSD-3-Clause
"""What the package costs over the C library, on one host, and shmem4py beside it if this interpreter has it: prints a table. Not a
test, as figures of a busy machine mean nothing.

Use: PYTHONPATH=build/release/lib/quoit/python python3 tests/python/speed.py build/release/bin
Each figure is the best of some rounds."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

C_PUT = r"""
#include <shmem.h>
#include <stdio.h>
#include <time.h>
static long target;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(void)
{
    shmem_init();
    double best = 1e18;
    for (int round = 0; round < 30 && shmem_my_pe() == 0; round++) {
        double begin = now();
        for (long i = 0; i < 100000; i++)
            shmem_long_p(&target, i, 1);
        double each = (now() - begin) / 100000;
        best = each < best ? each : best;
    }
    if (shmem_my_pe() == 0)
        printf("%.1f\n", best);
    shmem_finalize();
}
"""
BAR_NS = 250
# shmem4py, in a job of its own: a process uses one of the two.
SHMEM4PY = r"""
import json, sys
import numpy as np
from shmem4py import shmem
from speed import best_of
a, values, one = shmem.zeros(1 << 21, dtype=np.int64), np.arange(1 << 21), np.array([1])
if shmem.my_pe() == 0:
    small = values[:16]
    calls = {"put": lambda: shmem.put(a[7:8], one, 1), "put 16": lambda: shmem.put(a[0:16], small, 1),
             "get 16": lambda: shmem.get(small, a[0:16], 1)}
    found = {name: best_of(call, 20000) for name, call in calls.items()}
    found["large"] = a.nbytes / best_of(lambda: shmem.put(a, values, 1))
    print(json.dumps(found))
shmem.barrier_all()
shmem.free(a)
"""


def of_puts(rounds=30, count=100000):
    """ns of a put of 8 bytes, of the loop around it alone, and of short slices; GB/s of a large one, and of numpy's own copy."""
    import numpy as np
    import quoit
    with quoit.zeros(1 << 21, np.int64) as a:
        figures = []
        if quoit.my_pe() == 0:
            best, empty = 1e18, 1e18
            for _ in range(rounds):
                begin = time.perf_counter_ns()
                for i in range(count):
                    a.on(1)[7] = i
                middle = time.perf_counter_ns()
                for i in range(count):
                    pass
                best = min(best, (middle - begin) / count)
                empty = min(empty, (time.perf_counter_ns() - middle) / count)
            values, private = np.arange(1 << 21), np.zeros(1 << 21, np.int64)
            put = best_of(lambda: a.on(1).__setitem__(slice(None), values))
            copy = best_of(lambda: private.__setitem__(slice(None), values))
            few, number = values[:16], values[5]
            short = [best_of(call, 20000) for call in (
                lambda: a.on(1).__setitem__(slice(0, 16), 7), lambda: a.on(1).__setitem__(slice(0, 16), few),
                lambda: a.on(1)[0:16], lambda: a.on(1).__setitem__(7, number), lambda: a.on(1)[7])]
            figures = [best, empty, a.nbytes / put, a.nbytes / copy, short]
        quoit.barrier()
    return figures


def best_of(call, rounds=20):
    best = 1e18
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        call()
        best = min(best, time.perf_counter_ns() - begin)
    return best


def nothing():
    return None


def of_shmem4py(folder):
    """Its figures, by name; {} if this interpreter does not have it."""
    if importlib.util.find_spec("shmem4py") is None:
        return {}
    job = [os.path.join(folder, "oshrun"), "-n", "2", sys.executable, "-c", SHMEM4PY]
    beside = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.abspath(__file__))}
    return json.loads(subprocess.run(job, check=True, capture_output=True, text=True, env=beside).stdout)


def process_ms(code):
    """ms of the fastest of some processes."""
    return best_of(lambda: subprocess.run([sys.executable, "-c", code], check=True), 7) / 1e6


def main(folder):
    import quoit
    with tempfile.TemporaryDirectory() as work:
        with open(os.path.join(work, "put.c"), "w", encoding="utf-8") as file:
            file.write(C_PUT)
        program = os.path.join(work, "put")
        subprocess.run([os.path.join(folder, "oshcc"), "-O2", os.path.join(work, "put.c"), "-o", program], check=True)
        in_c = float(subprocess.run([os.path.join(folder, "oshrun"), "-n", "2", program], check=True, capture_output=True, text=True).stdout)
    put, empty, slices, copies, short = quoit.run(of_puts, pes=2)[0]
    other = of_shmem4py(folder)

    def beside(name, unit="ns"):
        return f"shmem4py {other[name]:.{0 if unit == 'ns' else 1}f} {unit}" if other else ""
    with_numpy = process_ms("import numpy")
    rows = [("C: shmem_long_p", f"{in_c:.1f} ns", ""),
            ("a.on(pe)[i] = v, over it", f"{put - empty - in_c:.0f} ns", f"bar {BAR_NS} ns; {beside('put')}"),
            ("a.on(pe)[0:16] = 7", f"{short[0]:.0f} ns", ""),
            ("a.on(pe)[0:16] = array", f"{short[1]:.0f} ns", beside("put 16")),
            ("a.on(pe)[0:16]", f"{short[2]:.0f} ns", beside("get 16")),
            ("a.on(pe)[i] = scalar of numpy", f"{short[3]:.0f} ns", ""),
            ("a.on(pe)[i]", f"{short[4]:.0f} ns", ""),
            ("16 MiB slice", f"{slices:.1f} GB/s", f"numpy's own copy {copies:.1f} GB/s; {beside('large', 'GB/s')}"),
            ("import quoit", f"{process_ms('import quoit') - process_ms('pass'):.0f} ms", "bar 50 ms"),
            ("import of everything, without numpy's", f"{process_ms('import numpy; from quoit import *') - with_numpy:.0f} ms", "bar 50 ms"),
            ("quoit.run of 4 PEs", f"{best_of(lambda: quoit.run(nothing, pes=4), 7) / 1e6:.0f} ms", "bar 500 ms")]
    for name, figure, note in rows:
        print(f"{name:40} {figure:>12}  {note}")


if __name__ == "__main__":
    main(sys.argv[1])
