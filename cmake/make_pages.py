#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes section 3 of the manual: a page for each family of routines, from docs/inventory.tsv, the comments of
include/shmem.h and the programs of docs/api, and, for each routine and type-generic name, a page that refers to it.

Use: make_pages.py FOLDER VERSION
"""
import os
import re
import sys

import families
import inventory


def roff(text):
    """Text as roff shows it: a dash is a hyphen unless escaped; a line must not begin with a dot."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def synopsis(routines):
    """Each general form once, and before them what TYPE and SIZE stand for."""
    lines = []
    for words, status, group in families.forms(routines):
        if words[0] is not None:
            lines += [".PP", f"With {families.placeholder(words)} one of " + ", ".join(words) +
                      ("; deprecated:" if status == "deprecated" else ":")]
        elif status == "deprecated":
            lines += [".PP", "Deprecated:"]
        else:
            lines += [".PP"]
        lines += [".nf"] + [roff(form) for form in group] + [".fi"]
    return lines


def render(page, routines, texts, version):
    name, what = page[0], page[1]
    others = [other[0] for other in families.PAGES if other[0] != name]
    generics = families.generics(routines)
    lines = [".\\\" made from docs/inventory.tsv and include/shmem.h",
             f'.TH {name.upper()} 3 "" "Quoit {version}" "OpenSHMEM 1.6"', ".SH NAME",
             f"{name} \\- {roff(what)}", ".SH SYNOPSIS", ".B #include <shmem.h>"] + synopsis(routines)
    if generics:
        lines += [".PP", "Type\\-generic, in C11 and C++, with or without a context before the other arguments "
                  "where a form with ctx is above:", ".PP", ", ".join(generics)]
    lines += [".SH DESCRIPTION"]
    for number, part in enumerate(families.about(page, texts)):
        lines += ([".PP"] if number else []) + [roff(part)]
    lines += [".SH EXAMPLES", ".EX", roff(families.example(page)).rstrip(), ".EE"]
    lines += [".SH ERRORS", "A wrong argument ends the job with a message that names the routine, the argument, its "
              "value and what is allowed.", ".SH SEE ALSO",
              ", ".join(f"\\fB{other}\\fP(3)" for other in others) + ", \\fBoshcc\\fP(1), \\fBoshrun\\fP(1)"]
    return "\n".join(lines) + "\n"


def write(folder, name, text):
    with open(os.path.join(folder, name + ".3"), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    folder, version = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    routines_of, texts = families.read_families()
    for page in families.PAGES:
        routines = routines_of[page[0]]
        write(folder, page[0], render(page, routines, texts, version))
        for name in {routine.name for routine in routines} | {inventory.generic_name(routine) for routine in routines}:
            if name and name not in routines_of:
                write(folder, name, f".so man3/{page[0]}.3\n")


main()
