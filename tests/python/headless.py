# SPDX-License-Identifier: BSD-3-Clause
"""Runs notebooks as Jupyter's kernel would, without one: headless.py NOTEBOOK... Each cell must end without an exception, the last
one with a picture; the results, in variables of the notebook, must be those of a model here."""
import io
import json
import os
import sys

import matplotlib
import numpy as np
from IPython.core.interactiveshell import InteractiveShell

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (its backend is known now)


def heat(space):
    """By matrices, as the mean of neighbours is a sum of two products."""
    rows = space["rows"]
    beside = np.eye(rows, k=1) + np.eye(rows, k=-1)
    plate, edge = np.zeros((rows, rows)), np.zeros((rows, rows))
    edge[0] = 100
    for _ in range(space["steps"]):
        plate = (beside @ plate + plate @ beside + edge) / 4
    assert np.allclose(space["plate"], plate, rtol=0, atol=1e-9), abs(space["plate"] - plate).max()


def histogram(space):
    throws = np.concatenate([np.random.default_rng(pe).integers(1, 7, (20000, 12)).sum(axis=1) for pe in range(4)])
    assert dict(enumerate(space["counts"])) == {value: (throws == value).sum() for value in range(73)}


def pagerank(space):
    """In plain Python."""
    targets = {name: [] for name in range(space["n"])}
    for package, other in space["edges"].tolist():
        targets[package].append(other)
    ranks = [1 / len(targets)] * len(targets)
    for _ in space["changes"]:
        kept = 0.15 + 0.85 * sum(rank for rank, others in zip(ranks, targets.values()) if not others)
        after = [kept / len(targets)] * len(targets)
        for rank, others in zip(ranks, targets.values()):
            for other in others:
                after[other] += 0.85 * rank / len(others)
        ranks = after
    assert np.allclose(space["ranks"], ranks, rtol=0, atol=1e-12)
    assert space["names"][space["top"][-1]] == space["names"][int(np.argmax(ranks))]


def nbody(space):
    """Places and velocities as complex numbers."""
    bodies, velocity = space["nbody"].start(space["BODIES"])
    place, speed, mass = bodies[:, 0] + 1j * bodies[:, 1], velocity[:, 0] + 1j * velocity[:, 1], bodies[:, 2]

    def pull():
        way = place[None] - place[:, None]
        return (mass * way / (abs(way) ** 2 + 0.03 ** 2) ** 1.5).sum(axis=1)

    force = pull()
    for step in range(space["STEPS"]):
        speed += 0.005 * force
        place += 0.01 * speed
        force = pull()
        speed += 0.005 * force
        found = space["path"][:, step] @ [1, 1j]
        assert np.allclose(found, place, rtol=0, atol=1e-9), (step, abs(found - place).max())
    assert abs(space["after"] / space["before"] - 1) < 1e-3


MODELS = {model.__name__: model for model in (heat, histogram, pagerank, nbody)}


def pictures():
    """The number of figures that are not blank; closes all."""
    count = 0
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, format="png")
        file.seek(0)
        count += len(np.unique(plt.imread(file, format="png").reshape(-1, 4), axis=0)) > 20
    plt.close("all")
    return count


def run(path):
    with open(path, encoding="utf-8") as file:
        cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    os.chdir(os.path.dirname(path))
    shell = InteractiveShell()
    for cell in cells:
        shell.run_cell("".join(cell["source"])).raise_error()
        shown = pictures()
    assert shown > 0, "the last cell shows no picture"
    MODELS[os.path.splitext(os.path.basename(path))[0]](shell.user_ns)
    print(os.path.basename(path), "right")


if __name__ == "__main__":
    for each in map(os.path.abspath, sys.argv[1:]):
        run(each)
