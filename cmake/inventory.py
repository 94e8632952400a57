# SPDX-License-Identifier: BSD-3-Clause
"""The routines of OpenSHMEM 1.6 as docs/inventory.tsv lists them, and what follows from a routine's name.

A typed routine is shmem_[ctx_]NAME_deed, NAME being a word of the type tables (float, uint64, ...). Without the word it
is the name of the type-generic form.
"""
import os
import re
from collections import namedtuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATH = os.path.join(ROOT, "docs", "inventory.tsv")

TYPES = {
    "float": "float", "double": "double", "longdouble": "long double", "char": "char", "schar": "signed char",
    "short": "short", "int": "int", "long": "long", "longlong": "long long", "uchar": "unsigned char",
    "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long", "ulonglong": "unsigned long long",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t",
    "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t", "size": "size_t", "ptrdiff": "ptrdiff_t",
    "complexf": "float _Complex", "complexd": "double _Complex",
}
# Where two names stand for one C type, a type-generic call may choose either.
SAME = {"int8": "schar", "int16": "short", "int32": "int", "int64": "long", "uint8": "uchar", "uint16": "ushort",
        "uint32": "uint", "uint64": "ulong", "size": "ulong", "ptrdiff": "long"}

Routine = namedtuple("Routine", "section name status prototype")


def routines():
    with open(PATH, encoding="utf-8") as file:
        return [Routine(*line.rstrip("\n").split("\t")) for line in file][1:]


def typed_parts(name):
    """("ctx_" or "", type name, deed) of a typed routine, else None."""
    match = re.fullmatch(rf"shmem_(ctx_)?({'|'.join(TYPES)})_(\w+)", name)
    return (match[1] or "", match[2], match[3]) if match else None


def generic_name(routine):
    """The type-generic form that the specification gives to a typed routine; None where it gives none."""
    parts = typed_parts(routine.name)
    if parts is None or parts[2] == "wait" or parts[2].endswith("_to_all"):
        return None
    return "shmem_" + parts[2]


def parameters(prototype):
    """The types of the parameters, without their names."""
    inside = prototype[prototype.index("(") + 1:prototype.rindex(")")]
    return [re.sub(r"\s*\b\w+$", "", one.strip()) for one in inside.split(",")] if inside != "void" else []
