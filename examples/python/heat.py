# SPDX-License-Identifier: BSD-3-Clause
"""Heat in a plate: each PE has some rows, and puts its edge rows into its neighbours'. Ends with a picture of the plate.

    python -m quoit.run -n 4 heat.py [ROWS [STEPS]]

Each step a cell becomes the mean of its four neighbours. The upper edge is kept at 100 degrees, the others at 0. PE 0 computes
the same alone and compares: the result does not depend on the number of PEs."""
import sys

import numpy as np

import quoit


def step(u):
    u[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4


def alone(rows, steps):
    u = np.zeros((rows + 2, rows + 2))
    u[0] = 100
    for _ in range(steps):
        step(u)
    return u[1:-1]


def picture(plate, lines=16, columns=64):
    shades = np.array(list(" .:-=+*#%@"))
    rows = np.linspace(0, len(plate) - 1, lines).astype(int)
    across = np.linspace(0, plate.shape[1] - 1, columns).astype(int)
    degrees = np.clip(plate[np.ix_(rows, across)] / 100 * len(shades), 0, len(shades) - 1).astype(int)
    return "\n".join("".join(line) for line in shades[degrees])


def main():
    words = [int(word) for word in sys.argv[1:] if word.isdecimal() and int(word) > 0]
    if len(words) < len(sys.argv) - 1 or len(words) > 2:
        if quoit.my_pe() == 0:
            print(f"heat.py takes up to two numbers of at least 1\n\n{__doc__}", file=sys.stderr)
            quoit.global_exit(2)
        quoit.barrier()
    rows, steps = words + [64, 400][len(words):]
    me, pes = quoit.my_pe(), quoit.n_pes()
    blocks = min(pes, rows)  # later PEs have no row
    first, last = (rows * min(pe, blocks) // blocks for pe in (me, me + 1))
    with quoit.zeros((-(-rows // blocks) + 2, rows + 2)) as u:
        mine = u[:last - first + 2]  # one row above and one below belong to the neighbours
        if me == 0:
            mine[0] = 100
        quoit.barrier()
        for _ in range(steps):
            if 0 < me < blocks:
                above = first - rows * (me - 1) // blocks
                u.on(me - 1)[above + 1] = mine[1]
            if me < blocks - 1:
                u.on(me + 1)[0] = mine[-2]
            quoit.barrier()
            step(mine)
            quoit.barrier()
        plate = quoit.concatenate(mine[1:-1])
    if me == 0:
        print(picture(plate))
        print(f"{pes} PEs, {rows} x {rows}, {steps} steps: mean {plate[:, 1:-1].mean():.3f} degrees")
        print("verified" if (plate == alone(rows, steps)).all() else "WRONG: differs from one PE alone")


if __name__ == "__main__":
    main()
