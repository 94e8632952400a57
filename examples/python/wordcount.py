# SPDX-License-Identifier: BSD-3-Clause
"""Counts words: PE 0 deals out a text, each PE counts a part of it, and each word has one PE that adds up. Ends with a table.

    python -m quoit.run -n 4 wordcount.py [FILE...]

Without a FILE the text is Python's own reference, which comes with it. PE 0 counts all words alone and compares."""
import collections
import pathlib
import pydoc_data.topics
import re
import sys
import zlib

import numpy as np

import quoit


def read(paths):
    """PE 0 ends the job if a file cannot be read."""
    try:
        text = "\n".join(pathlib.Path(path).read_text(encoding="utf-8", errors="replace") for path in paths)
    except OSError as error:
        print(f"wordcount.py: {error}\n\n{__doc__}", file=sys.stderr)
        quoit.global_exit(2)
    return text if paths else "\n".join(pydoc_data.topics.topics.values())


def exchange(parts):
    """parts[pe], of any length, goes to that PE; returns what came from all, one after the other."""
    lengths = np.array([len(part) for part in parts])
    coming = quoit.alltoall(lengths)
    places = quoit.alltoall(np.cumsum(coming) - coming)  # where mine begins on each PE
    with quoit.empty(quoit.max(coming.sum()), parts[0].dtype) as inbox:
        for pe, (place, part) in enumerate(zip(places, parts)):
            inbox.on(pe)[place:place + len(part)] = part
        quoit.barrier()
        return inbox[:coming.sum()].copy()


def cut(text, pes):
    """A part for each PE, at ends of lines."""
    text = text.encode()
    ends = [text.find(b"\n", len(text) * pe // pes) for pe in range(1, pes)]
    return np.split(np.frombuffer(text, np.uint8), [end if end >= 0 else len(text) for end in ends])


def count(text):
    return collections.Counter(word.encode() for word in re.findall(r"[^\W\d_]+", text.lower()))


def main():
    me, pes = quoit.my_pe(), quoit.n_pes()
    text = read(sys.argv[1:]) if me == 0 else ""
    found = count(exchange(cut(text, pes)).tobytes().decode())

    longest = quoit.max(max(map(len, found), default=1))
    pairs = np.array(list(found.items()), [("word", f"S{longest}"), ("times", np.int64)])
    owner = np.array([zlib.crc32(word) % pes for word in found], int)  # the same on every PE, as hash() is not
    pairs = exchange([pairs[owner == pe] for pe in range(pes)])
    words, which = np.unique(pairs["word"], return_inverse=True)
    mine = np.empty(len(words), pairs.dtype)
    mine["word"], mine["times"] = words, 0
    np.add.at(mine["times"], which, pairs["times"])

    shares = quoit.allgather([len(mine), mine["times"].sum()])
    every = quoit.concatenate(mine)
    if me == 0:
        for word, times in sorted(every.tolist(), key=lambda pair: (-pair[1], pair[0]))[:15]:
            print(f"{word.decode():>16} {times:7d}  {'#' * round(50 * times / every['times'].max())}")
        for pe, (kinds, total) in enumerate(shares):
            print(f"PE {pe} added up {total} times of {kinds} words")
        print("verified" if dict(every.tolist()) == count(text) and len(every) == len(count(text)) else "WRONG")


if __name__ == "__main__":
    main()
