# SPDX-License-Identifier: BSD-3-Clause
"""A script that starts its own jobs by quoit.run: pi by throwing darts, on more and more PEs. Ends with a table.

    python pi.py [DARTS_OF_EACH_PE]"""
import math
import sys
import time

import quoit


def hits(darts):
    import numpy as np
    points = np.random.default_rng(quoit.my_pe()).random((darts, 2))
    return quoit.sum(int(((points ** 2).sum(axis=1) < 1).sum())).item()


if __name__ == "__main__":
    if len(sys.argv) > 2 or not all(word.isdecimal() and int(word) > 0 for word in sys.argv[1:]):
        sys.exit(f"pi.py takes one number of at least 1\n\n{__doc__}")
    darts = int(sys.argv[1]) if len(sys.argv) > 1 else 200000
    print(f"{'PEs':>4} {'hosts':>5} {'darts':>9} {'pi':>9} {'error':>9} {'seconds':>8}")
    for pes, hosts in ((1, 1), (2, 1), (4, 1), (3, 3)):
        begin = time.perf_counter()
        found = quoit.run(hits, darts, pes=pes, hosts=hosts)
        assert found == [found[0]] * pes, found
        pi = 4 * found[0] / (darts * pes)
        print(f"{pes:4d} {hosts:5d} {darts * pes:9d} {pi:9.5f} {pi - math.pi:+9.5f} {time.perf_counter() - begin:8.2f}")
    print("verified" if abs(pi - math.pi) < 10 / math.sqrt(darts) else "WRONG")
