# SPDX-License-Identifier: BSD-3-Clause
"""Bodies that attract each other: a star, five planets and small bodies, a block of them on each PE. Ends with their orbits.

    python -m quoit.run -n 4 nbody.py [BODIES [STEPS]]

The blocks go round: while a PE computes what one block does to its own bodies, it reads the next
one. The energy must not change, and PE 0 computes the same alone and compares."""
import sys

import numpy as np

import quoit

PLANETS, STEP, SOFT = 5, 0.01, 0.03


def start(count):
    """x, y and mass of each body, and its velocity; the star is the first, its mass is 1."""
    random = np.random.default_rng(1)
    radius = np.concatenate([[0], np.linspace(0.35, 1, PLANETS), random.uniform(0.6, 0.7, count)])[:count]
    angle = random.uniform(0, 2 * np.pi, count)
    mass = np.where(np.arange(count) > PLANETS, 1e-8, 1e-4)
    mass[0] = 1
    across = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    speed = random.uniform(0.85, 1, count) / np.sqrt(np.maximum(radius, SOFT))
    speed[0] = 0
    velocity = speed[:, None] * across[:, ::-1] * [-1, 1]
    velocity -= mass @ velocity / mass.sum()
    return np.column_stack([radius[:, None] * across, mass]), velocity


def pull(points, bodies):
    """Acceleration in x and y and potential at each point."""
    way = bodies[:, :2] - points[:, None]
    square = (way ** 2).sum(axis=2)
    mass = np.where(square > 0, bodies[:, 2], 0)
    far = np.sqrt(square + SOFT ** 2)
    return np.column_stack([((mass / far ** 3)[..., None] * way).sum(axis=1), -(mass / far).sum(axis=1)])


def pull_of_all(bodies):
    """Of the blocks of all PEs at this PE's bodies."""
    me, pes = quoit.my_pe(), quoit.n_pes()
    quoit.barrier()  # all have moved
    found, block = np.zeros((len(bodies), 3)), bodies
    for pe in range(me + 1, me + pes):
        coming = bodies.on(pe % pes).get_nbi(...)
        found += pull(bodies[:, :2], block)
        block = coming.result()
    found += pull(bodies[:, :2], block)
    quoit.barrier()  # all have read
    return found


def energy(bodies, velocity, pulled):
    return (bodies[:, 2] * ((velocity ** 2).sum(axis=1) + pulled[:, 2])).sum() / 2


def orbits(bodies, velocity, steps, pull_of_all):
    """Moves the bodies. Returns where they were, [body, step], and their energy at the start and the end."""
    path, pulled = np.empty((len(bodies), steps, 2)), pull_of_all(bodies)
    before = energy(bodies, velocity, pulled)
    for step in range(steps):
        velocity += STEP / 2 * pulled[:, :2]
        bodies[:, :2] += STEP * velocity
        pulled = pull_of_all(bodies)
        velocity += STEP / 2 * pulled[:, :2]
        path[:, step] = bodies[:, :2]
    return path, np.array([before, energy(bodies, velocity, pulled)])


def picture(path, lines=28, columns=64):
    grid = np.full((lines, columns), " ")
    for body in reversed(range(len(path))):  # the orbits of the planets; where the small bodies are
        x, y = (path[body] if body <= PLANETS else path[body, -1:]).T / 2.3 + 0.5
        seen = (x >= 0) & (x < 1) & (y >= 0) & (y < 1)
        grid[(y[seen] * lines).astype(int), (x[seen] * columns).astype(int)] = "*12345"[body] if body <= PLANETS else "."
    return "\n".join("".join(line).rstrip() for line in grid)


def main():
    words = [int(word) for word in sys.argv[1:] if word.isdecimal() and int(word) > 0]
    if len(words) < len(sys.argv) - 1 or len(words) > 2:
        if quoit.my_pe() == 0:
            print(f"nbody.py takes up to two numbers of at least 1\n\n{__doc__}", file=sys.stderr)
            quoit.global_exit(2)
        quoit.barrier()
    count, steps = words + [48, 700][len(words):]
    me, pes = quoit.my_pe(), quoit.n_pes()
    bodies, velocity = start(count)
    size = -(-count // pes)  # of a block; what is more than the bodies has mass 0
    with quoit.zeros((size, 3)) as mine:
        own = slice(me * size, (me + 1) * size)
        mine[:len(bodies[own])] = bodies[own]
        moving = np.zeros((size, 2))
        moving[:len(bodies[own])] = velocity[own]
        path, energies = orbits(mine, moving, steps, pull_of_all)
        path, energies = quoit.concatenate(path)[:count], quoit.sum(energies)
    if me == 0:
        print(picture(path))
        change = abs(energies[1] - energies[0])
        print(f"{pes} PEs, {count} bodies, {steps} steps: energy {energies[0]:.6e}, then {energies[1]:.6e}")
        right, _ = orbits(bodies, velocity, steps, lambda all: pull(all[:, :2], all))
        is_right = np.allclose(path, right, rtol=0, atol=1e-9) and change <= 1e-3 * abs(energies[0])
        print("verified" if is_right else f"WRONG: differs from one PE alone by {abs(path - right).max()}, energy by {change:.1e}")


if __name__ == "__main__":
    main()
