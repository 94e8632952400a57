#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds what docs/design/versions.md promises: the names and values that programs were built with, and the layout behind
the number of the protocol.

Use: abi.py symbols LIST LIBRARY             the library exports LIST, no more and no less, each name with its version
     abi.py constants LIST INCLUDE CC        the headers have the constants and sizes of LIST, and no others
     abi.py program LIST LIBRARY CC OSHRUN SOURCE
                                             a program that was linked with a library of each version's names and those
                                             before it, and nothing else, runs with LIBRARY
     abi.py protocol LIST NUMBER FILE...     the structures that processes share, by the debug information of files
     abi.py self FOLDER LIBRARY              each of these lists is refused when it is made wrong
     abi.py write symbols|constants|protocol ...   prints the list instead

Status 77: skipped, with the reason.

A list of symbols has a section for each version, headed by its name. A release adds "released DIGEST" to a heading (abi.py
seal LIST prints them), from when on that section cannot change."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

HEADERS = ("shmem.h", "shmemx.h", "dsm.h")
CONSTANT = re.compile(r"^#define (SHMEM_\w+) (?!SHMEM_VENDOR_STRING|\")(.+)$", re.M)
TYPES = ("shmem_team_t", "shmem_ctx_t", "shmem_team_config_t", "shmem_ctx_session_config_t", "struct dsm_attributes",
         "dsm_lock_t", "dsm_rwlock_t", "dsm_cond_t", "dsm_sem_t", "dsm_flag_t", "dsm_once_t", "dsm_barrier_t")
ENUMERATORS = re.compile(r"\b(DSM_[A-Z_0-9]+)(?=[,\s]*(?:/\*[^*]*\*/)?\s*(?:[,}]|DSM_))")
# What crosses a boundary between files that may be of different versions.
SHARED = ("enum quoit_boot_kind", "struct quoit_boot_message", "struct quoit_port_endpoint", "struct quoit_host_row",
          "struct quoit_agent_start", "struct quoit_agent_pe", "struct quoit_hosts_entry", "struct quoit_proxy_message",
          "struct quoit_host_header", "struct quoit_pe_shared", "struct quoit_lane_shared", "struct quoit_channel",
          "struct quoit_request", "struct quoit_rendezvous_slot", "struct quoit_mail", "struct quoit_contacts",
          "struct quoit_contact", "struct quoit_profile", "struct quoit_profile_site", "struct quoit_profile_peer",
          "struct quoit_profile_group", "struct quoit_profile_meeting", "struct quoit_profile_bin", "enum quoit_control_kind",
          "struct quoit_control_frame", "struct hosts_make")


def fail(text):
    sys.exit(f"abi: {text}")


def skip(text):
    print(f"abi: {text}")
    sys.exit(77)


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def compare(expected, found, what):
    """Both are lines."""
    missing, new = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or new or len(expected) != len(found):
        fail(f"{what} differ:\n" + "\n".join([f"< {line}" for line in missing[:40]] + [f"> {line}" for line in new[:40]]) +
             "\n< promised, > found; abi.py write prints a new list, for versions that are not released")


# Symbols

def exported(library):
    """{version: ["T name", ...]}; the names of versions themselves are left out."""
    found = {}
    for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines():
        kind, name = line.split()[-2:]
        name, _, version = name.partition("@@")
        if kind != "A":
            found.setdefault(version or "none", []).append(f"{kind} {name}")
    return {version: sorted(names, key=lambda line: line.split()[1]) for version, names in found.items()}


def digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def listed(path):
    """{version: names} of a list; a released section that was changed ends this program."""
    sections, seals = {}, {}
    for line in read(path).splitlines():
        if re.match(r"[A-Z] ", line):
            names.append(line)
        elif line and not line.startswith("#"):
            heading = line.split()
            names = sections.setdefault(heading[0], [])
            if heading[1:2] == ["released"]:
                seals[heading[0]] = heading[2]
    for version, seal in seals.items():
        if digest(sections[version]) != seal:
            fail(f"{path}: {version} is released, and its names have changed")
    return sections


def check_symbols(path, library):
    expected, found = listed(path), exported(library)
    for version in sorted(set(expected) | set(found)):
        compare(expected.get(version, []), found.get(version, []), f"exports of {version}")


def write_symbols(library):
    for version, names in exported(library).items():
        print("\n".join([version] + names))


def seal(path):
    for version, names in listed(path).items():
        print(f"{version} released {digest(names)}")


# Constants

def constants(include, compiler):
    """["NAME VALUE", ...] as a program sees them."""
    lines = "".join(f"#include <{name}>\n" for name in HEADERS)
    made = subprocess.run([compiler, "-I", include, "-dM", "-E", "-"], input=lines, check=True, capture_output=True, text=True)
    names = sorted({name for name, _ in CONSTANT.findall(made.stdout)} | set(ENUMERATORS.findall(read(f"{include}/dsm.h"))))
    names = [name for name in names if name not in ("DSM_SHARED", "SHMEM_VENDOR_STRING")]
    body = "".join(f'    printf("{name} %lld\\n", (long long)(intptr_t)({name}));\n' for name in names)
    body += "".join(f'    printf("sizeof({name}) %zu\\n", sizeof({name}));\n' for name in TYPES)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/print.c", "w", encoding="utf-8") as file:
            file.write(f"#include <stdint.h>\n#include <stdio.h>\n{lines}int main(void)\n{{\n{body}}}\n")
        run(compiler, "-I", include, f"{folder}/print.c", "-o", f"{folder}/print")
        return run(f"{folder}/print").splitlines()


def check_constants(path, include, compiler):
    compare(read(path).splitlines(), constants(include, compiler), "constants and sizes")


# A program of each version

def stub(sections, folder, soname, compiler):
    """A library with the names of these versions alone: each is a word that nothing may use."""
    source = "".join(f"char {line.split()[1]}[8];\n" for names in sections.values() for line in names)
    script, before = "", ""
    for version, names in sections.items():
        script += f"{version} {{ global: " + " ".join(f"{line.split()[1]};" for line in names) + f" local: *; }} {before};\n"
        before = version
    for name, text in (("stub.c", source), ("stub.map", script)):
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    run(compiler, "-shared", "-fPIC", "-w", f"{folder}/stub.c", f"-Wl,--version-script={folder}/stub.map",
        f"-Wl,-soname,{soname}", "-o", f"{folder}/{soname}")


def needed_versions(program):
    return set(re.findall(r"\((LIBSHMEM_\S+)\)|Name: (LIBSHMEM_\S+)", run("readelf", "-VW", program)))


def check_program(path, library, compiler, oshrun, source):
    sections, soname = listed(path), "libshmem.so.1"
    include = os.path.join(os.path.dirname(os.path.dirname(library)), "include")
    for count in range(1, len(sections) + 1):
        with tempfile.TemporaryDirectory() as folder:
            stub(dict(list(sections.items())[:count]), folder, soname, compiler)
            run(compiler, "-I", include, source, f"{folder}/{soname}", f"-Wl,-rpath,{os.path.dirname(library)}", "-o",
                f"{folder}/program")
            if not needed_versions(f"{folder}/program"):
                fail("the program was linked without versions")
            out = run(oshrun, "-n", "2", f"{folder}/program")
            if sorted(out.splitlines()) != ["hello from PE 0 of 2", "hello from PE 1 of 2"]:
                fail(f"the program printed {out!r}")


# The protocol

def shown_types(path):
    """{name: what gdb prints of that type} of a file's debug information."""
    asked = ["-ex", "set max-value-size unlimited"]
    for name in SHARED:
        asked += ["-ex", f"ptype/o {name}", "-ex", "echo ==\\n"]
    made = subprocess.run(["gdb", "-nx", "-batch", *asked, path], check=True, capture_output=True, text=True)
    return {name: text for name, text in zip(SHARED, made.stdout.split("==\n")) if "type =" in text}


def layouts(paths):
    """["TYPE BYTES DIGEST", ...], the digest of every member's place and declaration."""
    if not shutil.which("gdb"):
        skip("no gdb on this machine: the layout of structures cannot be read")
    shown = {name: text for path in paths for name, text in shown_types(path).items()}
    if not shown:
        skip("this build has no debug information")
    if set(shown) != set(SHARED):
        fail(f"no file uses {set(SHARED) - set(shown)}")
    found = []
    for name, text in shown.items():
        members = re.findall(r"^/\*\s*(\d*)(?::\s*\d+)?\s*(?:\|\s*(\d+))?\s*\*/\s*(.+)$", text, re.M)
        enumerators = re.findall(r"type = enum \S+ (?:: \S+ )?\{(.*)\}", text)
        size = re.findall(r"total size \(bytes\):\s*(\d+)", text)
        found.append(f"{name} {size[-1] if size else 4} {digest([' '.join(row) for row in members] + enumerators)}")
    return sorted(found)


def check_protocol(path, number, *files):
    expected = read(path).splitlines()
    if expected[0] != f"protocol {number}":
        fail(f"{path} is of {expected[0]}, the code of protocol {number}")
    compare(expected[1:], layouts(files), f"structures of protocol {number} (raise QUOIT_PROTOCOL_NEWEST after a release): they")


def write_protocol(number, *files):
    print("\n".join([f"protocol {number}"] + layouts(files)))


# This program

def refuses(check, *arguments):
    try:
        check(*arguments)
    except SystemExit as end:
        return end.code not in (None, 0, 77)
    return False


def check_self(folder, library):
    """A name that is missing, one too many, one of another version, and a released section that was changed."""
    with tempfile.TemporaryDirectory() as made:
        path = f"{made}/list"

        def is_refused(text):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            return refuses(check_symbols, path, library)

        text = read(f"{folder}/libshmem.symbols")
        sealed = text.replace("LIBSHMEM_0.9\n", f"LIBSHMEM_0.9 released {digest(listed(f'{folder}/libshmem.symbols')['LIBSHMEM_0.9'])}\n")
        if is_refused(text) or is_refused(sealed):
            fail("what is right is refused")
        for wrong in (text.replace("W shmem_put32\n", ""), text + "W shmem_zut32\n", text.replace("W shmem_put32\n", "T shmem_put32\n"),
                      text.replace("W shmem_put32\n", "LIBSHMEM_0.8\nW shmem_put32\nLIBSHMEM_0.9\n"),
                      sealed.replace("T start_pes\n", "")):
            if not is_refused(wrong):
                fail("a wrong list is accepted")


def main():
    commands = {"symbols": check_symbols, "constants": check_constants, "program": check_program, "protocol": check_protocol,
                "self": check_self, "seal": seal}
    writers = {"symbols": write_symbols, "protocol": write_protocol, "constants": lambda *rest: print("\n".join(constants(*rest)))}
    if sys.argv[1] == "write":
        writers[sys.argv[2]](*sys.argv[3:])
    else:
        commands[sys.argv[1]](*sys.argv[2:])


main()
