#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds one side of the project against the inventory.

Use: check.py header COMPILER FLAG...     the header declares each routine, and its pshmem_ twin, as the inventory says:
                                         each is named, then declared again, which compiles only if both agree
     check.py generics COMPILER FLAG...   each type-generic name can be called with each type, with and without a
                                         context, and calls the routine of that type: the object's relocations tell
     check.py exports LIBRARY             the library exports each routine, weak, and its twin
     check.py used OBJECT...              some conformance program refers to each routine
     check.py manual FOLDER               each routine has a page, and all pages render without a warning
     check.py self LIBRARY COMPILER FLAG...
                                          each check fails when a line of the inventory is made wrong
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cmake"))
import inventory  # noqa: E402

TWINLESS = re.compile(r"(?!shmem_)")  # names from before shmem_ was the prefix


def fail(text):
    sys.exit(f"inventory: {text}")


def compile_source(command, source, is_cxx):
    """The object's path, or the compiler's messages if it does not compile."""
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "inventory.cpp" if is_cxx else "inventory.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    result = subprocess.run(command + ["-w", "-c", path, "-o", path + ".o"], stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        fail("does not compile:\n" + result.stderr[:4000])
    return path + ".o"


def is_cxx_of(command):
    return any("++" in word for word in command)


def in_cxx(text):
    return text.replace("float _Complex", "std::complex<float>").replace("double _Complex", "std::complex<double>")


def prototypes(routine):
    """Name and prototype of the routine and, if it has one, of its twin."""
    yield routine.name, routine.prototype
    if not TWINLESS.match(routine.name):
        yield "p" + routine.name, routine.prototype.replace(routine.name + "(", "p" + routine.name + "(", 1)


def check_header(routines, command):
    is_cxx = is_cxx_of(command)
    both = [pair for routine in routines for pair in prototypes(routine)]
    lines = ["#define QUOIT_WITHOUT_GENERICS", "#include <shmem.h>", "typedef void any(void);",
             "extern any *const all[];", "any *const all[] = {"]
    lines += [f"    (any *){name}," for name, _ in both] + ["};"]
    lines += (['extern "C" {'] if is_cxx else []) + [text for _, text in both] + (["}"] if is_cxx else [])
    source = "\n".join(lines) + "\n"
    compile_source(command, in_cxx(source) if is_cxx else source, is_cxx)


def call_of(routine, generic):
    """The body of a function that makes one type-generic call with values of the right types."""
    types = inventory.parameters(routine.prototype)
    result = routine.prototype[:routine.prototype.index(routine.name)].strip()
    names = [f"a{i}" for i in range(len(types))]
    arguments = ", ".join(f"{kind} {name}" if not kind.endswith("*") else f"{kind}{name}"
                          for kind, name in zip(types, names))
    return f"{result} call_{routine.name}({arguments})\n{{\n    {'' if result == 'void' else 'return '}" \
           f"{generic}({', '.join(names)});\n}}\n"


def chosen_by(path):
    """The symbols that each function of an object compiled with -ffunction-sections refers to."""
    text = subprocess.run(["objdump", "-r", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    found, section = {}, None
    for line in text.splitlines():
        match = re.match(r"RELOCATION RECORDS FOR \[\.text\.(?:\w*?)call_(\w+)\]", line)
        if line.startswith("RELOCATION"):
            section = match[1] if match else None
        match = re.search(r"\b(shmem_\w+)", line)
        if section and match and not line.startswith("RELOCATION"):
            found.setdefault(section, []).append(match[1])
    return found


def check_generics(routines, command):
    is_cxx = is_cxx_of(command)
    called = [(routine, inventory.generic_name(routine)) for routine in routines]
    called = [(routine, generic) for routine, generic in called if generic]
    source = "#include <shmem.h>\n" + ('extern "C" {\n' if is_cxx else "")
    source += "".join(call_of(routine, generic) for routine, generic in called) + ("}\n" if is_cxx else "")
    path = compile_source(command + ["-O2", "-ffunction-sections", "-fno-pic"], in_cxx(source) if is_cxx else source,
                          is_cxx)
    found = chosen_by(path)
    own = {routine.name for routine in routines}
    for routine, generic in called:
        context, name, deed = inventory.typed_parts(routine.name)
        same = f"shmem_{context}{inventory.SAME.get(name, name)}_{deed}"
        names = found.get(routine.name, [])
        is_long = inventory.SAME.get(name, name) == "long"
        is_own = is_long and generic in own and names == [generic]  # shmem_wait_until without a type is that of long
        if not is_own and not (len(names) == 1 and same_type(names[0], same)):
            fail(f"{generic} of {name} calls {names}, not {routine.name}")
    print(f"inventory: {len(called)} type-generic calls")


def same_type(name, other):
    one, two = inventory.typed_parts(name), inventory.typed_parts(other)
    return one is not None and (one[0], inventory.SAME.get(one[1], one[1]), one[2]) == two


def check_exports(routines, library):
    text = subprocess.run(["nm", "-D", "--defined-only", "--without-symbol-versions", library], stdout=subprocess.PIPE, text=True, check=True).stdout
    kinds = {line.split()[-1]: line.split()[-2] for line in text.splitlines()}
    for routine in routines:
        names = [name for name, _ in prototypes(routine)]
        wanted = ["W", "T"] if len(names) == 2 else ["T"]
        for name, kind in zip(names, wanted):
            if kinds.get(name) not in ((kind,) if len(names) == 2 else ("T", "W")):
                fail(f"{name} is {kinds.get(name, 'not exported')}, not {kind}")


def check_used(routines, objects):
    text = subprocess.run(["nm", "-u", *objects], stdout=subprocess.PIPE, text=True, check=True).stdout
    used = {line.split()[-1] for line in text.splitlines() if line.split()[:1] == ["U"]}
    missing = [routine.name for routine in routines if routine.name not in used]
    if missing:
        fail(f"no conformance program calls {len(missing)} routines: {' '.join(missing[:20])}")


def check_manual(routines, folder):
    for routine in routines:
        path = os.path.join(folder, routine.name + ".3")
        if not os.path.exists(path):
            fail(f"{routine.name} has no page")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if text.startswith(".so "):
            with open(os.path.join(folder, "..", text[4:].strip()), encoding="utf-8") as file:
                text = file.read()
        parts = inventory.typed_parts(routine.name)
        if routine.name not in text and (not parts or f"shmem_{parts[0]}TYPE_{parts[2]}" not in text) \
                and re.sub(r"\d+", "SIZE", routine.name) not in text:
            fail(f"the page of {routine.name} does not name it")
    pages = [name for name in sorted(os.listdir(folder)) if not open(os.path.join(folder, name)).read(4) == ".so "]
    for name in pages:
        result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", os.path.join(folder, name)],
                                stderr=subprocess.PIPE, text=True)
        if result.returncode != 0 or result.stderr:
            fail(f"{name}: {result.stderr[:500]}")
    print(f"inventory: {len(pages)} pages")


def sees(check, *arguments):
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        output, sys.stdout = sys.stdout, nowhere
        try:
            check(*arguments)
        except SystemExit as end:
            return isinstance(end.code, str)
        finally:
            sys.stdout = output
    return False


def check_self(library, *compiler):
    """Each check detects a wrong and an unknown routine."""
    compiler = list(compiler)
    routine = inventory.Routine("", "shmem_int_p", "current", "void shmem_int_p(int *dest, int value, int pe);")
    wrong = routine._replace(prototype=routine.prototype.replace("int value", "long value"))
    unknown = inventory.Routine("", "shmem_int_q", "current", "void shmem_int_q(int *dest, int value, int pe);")
    if sees(check_header, [routine], compiler) or sees(check_generics, [routine], compiler) \
            or sees(check_exports, [routine], library):
        fail("a check refuses what is right")
    for what, is_seen in {
            "header, wrong": sees(check_header, [wrong], compiler), "header, unknown": sees(check_header, [unknown], compiler),
            "generics, unknown": sees(check_generics, [unknown], compiler),
            "exports, unknown": sees(check_exports, [unknown], library),
            "used, unknown": sees(check_used, [unknown], [library])}.items():
        if not is_seen:
            fail(f"not seen: {what}")


def main():
    checks = {"header": check_header, "generics": check_generics, "used": check_used}
    what, arguments = sys.argv[1], sys.argv[2:]
    routines = inventory.routines()
    if len(routines) != 1788 or len({routine.name for routine in routines}) != len(routines):
        fail(f"{len(routines)} lines, but the specification has 1,788 routines")
    if what == "self":
        check_self(*arguments)
    elif what in ("exports", "manual"):
        {"exports": check_exports, "manual": check_manual}[what](routines, arguments[0])
    else:
        checks[what](routines, arguments)


main()
