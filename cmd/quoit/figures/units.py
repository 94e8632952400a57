# SPDX-License-Identifier: BSD-3-Clause
"""Numbers with units, as the terminal has them: 23.9 GB/s, 1.24 ms, 4 KiB."""

SCALES = (
    (("ns", 1), ("us", 1e3), ("ms", 1e6), ("s", 1e9)),
    (("B/s", 1), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)),
    (("bit/s", 1), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)),
    (("/s", 1), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)),
    (("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)),
)


def plain(value):
    """A number without a unit."""
    if value is None:
        return "\u2013"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def text(value, unit):
    """In the unit of its scale that leaves at least 1, with three digits; other units stand behind the number as they are."""
    scale = next((scale for scale in SCALES if unit in dict(scale)), None)
    if value is None or isinstance(value, str) or not unit:
        return plain(value)
    if not scale or value == 0:
        return f"{plain(value)} {unit}"
    base = value * dict(scale)[unit]
    name, factor = next((one for one in reversed(scale) if abs(base) >= 0.9995 * one[1]), scale[0])
    share = base / factor
    return f"{share:.0f} {name}" if abs(share) >= 999.5 or share == int(share) else f"{share:.3g} {name}"


def size(value, _position=None):
    """Bytes as quoit's options take them: 64K."""
    for name, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.4g}{name}"
    return f"{value:.4g}"
