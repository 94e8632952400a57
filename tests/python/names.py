# SPDX-License-Identifier: BSD-3-Clause
"""Aim: every public name of the package has type hints and a docstring, and every routine of the specification has a way in the
package, or a reason why not. Method: the names are walked in an interpreter that has numpy; the routines are those of
docs/inventory.tsv, without types and sizes, and must be named in the docstring of what calls them."""
import importlib
import inspect
import json
import os
import re
import sys

MODULES = ("quoit", "quoit.dsm", "quoit.nvshmem")
INVENTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "inventory.tsv")
ABSENT = {
    "shmem_init": "shmem_init_thread with SHMEM_THREAD_MULTIPLE is called",
    "shmem_query_thread": "it is always SHMEM_THREAD_MULTIPLE",
    "shmem_pe_accessible": "every PE of a job is",
    "shmem_addr_accessible": "is_symmetric",
    "shmem_pcontrol": "for profiling tools",
    "shmem_realloc": "a new array and a copy",
    "shmem_align": "blocks are aligned to 64 bytes",
    "shmem_malloc_with_hints": "hints of the heap, of which dtypes need none",
    "shmem_team_get_config": "teams have no settings here",
    "shmem_ctx_get_team": "the attribute team of a Context",
    "shmem_ctx_session_start": "a hint, which the library ignores",
    "shmem_ctx_session_stop": "a hint, which the library ignores",
    "shmem_atomic_fetch_inc": "fetch_add of 1", "shmem_atomic_fetch_inc_nbi": "fetch_add of 1",
    "shmem_iput": "shmem_ibput of blocks of one element", "shmem_iget": "shmem_ibget of blocks of one element",
}
TYPES = ("(?:float|double|longdouble|char|schar|short|int|long|longlong|uchar|ushort|uint|ulong|ulonglong|u?int(?:8|16|32|64)|size|"
         "ptrdiff|complexf|complexd|TYPE|TYPENAME)_")


def routines():
    """The current routines of the specification, each once for all types, sizes, and with and without a context."""
    found = set()
    with open(INVENTORY, encoding="utf-8") as file:
        for line in list(file)[1:]:
            _, name, status, _ = line.split("\t")
            if status == "current":
                found.add(plain(name))
    return found


def plain(name):
    name = re.sub(f"^shmem_(ctx_)?{TYPES}", "shmem_", name)
    name = re.sub(r"^shmem_ctx_(?!create|destroy|get_team|session)", "shmem_", name)
    return re.sub(r"^(shmem_\w*?(?:put|get|alltoalls?|broadcast|f?collect))(?:8|16|32|64|128|mem)(?=_|$)", r"\1", name)


def is_own(value):
    return (getattr(value, "__module__", None) or "").startswith("quoit")


def walk(name, value):
    """(name, object) of what a user may call: functions, classes, and their public methods and properties."""
    yield name, value
    if not inspect.isclass(value):
        return
    for base in value.__mro__:
        if not is_own(base) or base.__module__ == "quoit._core":
            continue
        for each, member in vars(base).items():
            member = getattr(member, "__func__", member)
            if isinstance(member, property):
                yield f"{name}.{each}", member.fget
            elif not each.startswith("_") and inspect.isfunction(member):
                yield f"{name}.{each}", member


def lacks(value):
    """What a public object does not have."""
    doc = inspect.getdoc(value) or ""
    if len(doc) < 20 or not doc.rstrip().endswith((".", ".)")):
        yield "has no docstring of a sentence"
    if not inspect.isfunction(value):
        return
    own = inspect.signature(value)
    for parameter in own.parameters.values():
        if parameter.name not in ("self", "cls") and parameter.annotation is parameter.empty:
            yield f"has no type of {parameter.name}"
    if own.return_annotation is own.empty:
        yield "has no type of its result"


def examine():
    problems, docs = [], ""
    for module in map(importlib.import_module, MODULES):
        docs += module.__doc__ or ""
        for public in module.__all__:
            for name, value in walk(f"{module.__name__}.{public}", getattr(module, public)):
                if inspect.isfunction(value) or inspect.isclass(value):
                    problems += [f"{name} {lack}" for lack in lacks(value)]
                    docs += inspect.getdoc(value) or ""
                elif not callable(value) and not is_own(type(value)):
                    problems.append(f"{name} is a {type(value).__name__}")
    return {"problems": problems, "named": sorted({plain(name) for name in re.findall(r"shmem_\w+", docs)})}


if __name__ == "__main__" and sys.argv[1:] == ["examine"]:
    print(json.dumps(examine()))
    sys.exit(0)

import package  # noqa: E402  (not for the interpreter that examines)


class Names(package.Case):
    def test_names(self):
        ended = self.run_python(os.path.abspath(__file__), "examine")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        found = json.loads(ended.stdout)
        self.assertEqual(found["problems"], [])
        named, wanted = set(found["named"]), routines()
        self.assertGreater(len(wanted), 70)
        self.assertEqual(sorted(wanted - named - set(ABSENT)), [], "named by no docstring")
        self.assertEqual(sorted(set(ABSENT) & named), [], "named, but listed as absent")
        self.assertEqual(sorted(set(ABSENT) - wanted), [], "no routines of the specification")


if __name__ == "__main__":
    package.main()
