# SPDX-License-Identifier: BSD-3-Clause
"""A work queue: PEs take rows of the Mandelbrot set, which take unequal time, until none is left. Ends with the picture.

    python -m quoit.run -n 4 workqueue.py [ROWS [LIMIT]]

LIMIT: iterations of a point. The queue is a counter on PE 0, from which a PE takes the next number by an atomic addition. PE 0
computes all rows alone and compares."""
import sys

import numpy as np

import quoit

COLUMNS = 80


def row(at, rows, limit):
    """The iterations after which each point of a row is farther than 2 from 0; the limit if it never is."""
    c = np.linspace(-2.2, 0.8, COLUMNS) + 1j * (2.4 * (at + 0.5) / rows - 1.2)
    z, found, places = c.copy(), np.full(COLUMNS, limit), np.arange(COLUMNS)
    for iteration in range(1, limit):
        is_far = abs(z) > 2
        found[places[is_far]] = iteration
        z, c, places = z[~is_far], c[~is_far], places[~is_far]
        if len(z) == 0:
            break
        z = z * z + c
    return found


def main():
    words = [int(word) for word in sys.argv[1:] if word.isdecimal() and int(word) > 0]
    if len(words) < len(sys.argv) - 1 or len(words) > 2:
        if quoit.my_pe() == 0:
            print(f"workqueue.py takes up to two numbers of at least 1\n\n{__doc__}", file=sys.stderr)
            quoit.global_exit(2)
        quoit.barrier()
    rows, limit = words + [32, 400][len(words):]
    me, pes = quoit.my_pe(), quoit.n_pes()
    taken = iterations = 0
    with quoit.zeros(1, np.int64) as queue, quoit.zeros((rows, COLUMNS), np.int64) as plane:
        while (at := queue.on(0).fetch_add(0, 1)) < rows:
            found = row(at, rows, limit)
            plane.on(0).put_nbi(at, found)
            taken, iterations = taken + 1, iterations + found.sum()
        quoit.barrier()
        shares = quoit.allgather([taken, iterations])
        if me == 0:
            shades = np.array(list(" .:-=+*#%@"))
            dark = np.log(plane) / max(np.log(limit), 1e-9) * (len(shades) - 1)
            print("\n".join("".join(line) for line in shades[dark.astype(int)]))
            for pe, (number, cost) in enumerate(shares):
                print(f"PE {pe} {number:5d} rows {cost:9d} iterations  {'#' * round(40 * cost / plane.sum())}")
            is_right = shares[:, 0].sum() == rows and (plane == [row(at, rows, limit) for at in range(rows)]).all()
            print("verified" if is_right else "WRONG: differs from one PE alone")


if __name__ == "__main__":
    main()
