# SPDX-License-Identifier: BSD-3-Clause
"""A histogram whose bins are spread over the PEs: each PE adds its samples to the bins of all, by atomics. Ends with a plot.

    python -m quoit.run -n 4 histogram.py [SAMPLES_OF_EACH_PE]

The sum of twelve dice is nearly normal; PE 0 compares the counts with numpy.bincount of all samples."""
import sys

import numpy as np

import quoit

DICE = 12


def samples(pe, count):
    return np.random.default_rng(pe).integers(1, 7, (count, DICE)).sum(axis=1)


def main():
    words = [int(word) for word in sys.argv[1:] if word.isdecimal() and int(word) > 0]
    if len(words) < len(sys.argv) - 1 or len(words) > 1:
        if quoit.my_pe() == 0:
            print(f"histogram.py takes one number of at least 1\n\n{__doc__}", file=sys.stderr)
            quoit.global_exit(2)
        quoit.barrier()
    count = words[0] if words else 5000
    me, pes = quoit.my_pe(), quoit.n_pes()
    bins = DICE * 6 + 1
    with quoit.zeros(-(-bins // pes), np.int64) as counts:  # bin b: element b // pes on PE b % pes
        mine = samples(me, count)
        for pe in range(pes):
            places, times = np.unique(mine[mine % pes == pe] // pes, return_counts=True)
            counts.on(pe).add(places, times)
        quoit.barrier()
        every = quoit.allgather(counts).T.ravel()[:bins]
    if me == 0:
        for value in range(20, 66, 2):
            print(f"{value:3d} {every[value]:6d} {'#' * round(60 * every[value] / every.max())}")
        expected = np.bincount(np.concatenate([samples(pe, count) for pe in range(pes)]), minlength=bins)
        print(f"{every.sum()} samples of {pes} PEs: " + ("verified" if (every == expected).all() else "WRONG"))


if __name__ == "__main__":
    main()
