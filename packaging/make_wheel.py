# SPDX-License-Identifier: BSD-3-Clause
"""The wheel: programs, libraries, headers and manual below the prefix of the Python that installs it, the package quoit
among its modules; one file for all Pythons from 3.9.

A wheel has no links, so libshmem.so and the like are linker scripts that name the library, as libc.so is. Pages of the
manual that only lead to another are left out: each would be a file to install."""
import base64
import csv
import hashlib
import io
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import zipfile

import common
from check import Check, report

LIMIT_BYTES = 4_000_000
PACKAGE = "lib/quoit/python/"
LEFT_OUT = ("lib/systemd/", "share/doc/", "share/quoit/modulefiles/", "share/zsh/", "share/bash-completion/")
# What a manylinux platform has (PEP 600), and ours.
SYSTEM_LIBRARIES = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+)\.so\.|ld-linux")
OWN_LIBRARIES = re.compile(r"lib(shmem|qdsm)\.so\.1$")
PLUGIN_LIBRARIES = re.compile(r"lib(fabric|ucp|uct|ucs)\.so\.")  # of the machine: without them only that network is missing

def elf_files(prefix):
    for below in sorted(common.paths_below(prefix)):
        path = os.path.join(prefix, below)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield below


def newest_glibc(shown):
    """N of the newest GLIBC_2.N in what readelf shows; 0: none."""
    return max([int(text) for text in re.findall(r"GLIBC_2\.(\d+)", shown)], default=0)


def platform_tag(prefix):
    """manylinux_2_N_ARCH of the newest symbol of the C library that any file needs; what it may not need is refused."""
    newest = 17
    for below in elf_files(prefix):
        path = os.path.join(prefix, below)
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", common.output("readelf", "-dW", path)):
            is_plugin = "libquoit-net-" in below and PLUGIN_LIBRARIES.match(name)
            if not (SYSTEM_LIBRARIES.match(name) or OWN_LIBRARIES.match(name) or is_plugin):
                raise common.Problem(f"{below} needs {name}, which not every machine has")
        newest = max(newest, newest_glibc(common.output("readelf", "-VW", path)))
    return f"manylinux_2_{newest}_{os.uname().machine}"


def entries(prefix, data):
    """(name in the wheel, bytes, mode) of an installed prefix."""
    for below in sorted(common.paths_below(prefix)):
        path = os.path.join(prefix, below)
        if os.path.isdir(path) and not os.path.islink(path) or below.startswith(LEFT_OUT):
            continue
        soname = re.search(r"lib(shmem|qdsm|sma)\.so$", below)
        if soname:
            target = "libqdsm" if soname[1] == "qdsm" else "libshmem"
            yield f"{data}/{below}", f"/* GNU ld script */\nINPUT({target}.so.1)\n".encode(), 0o644
            continue
        if re.search(r"\.so\.\d+\.\d+\.\d+$", below):
            continue  # under the name that programs need
        with open(path, "rb") as file:
            content = file.read()
        if below.startswith("share/man/man3/") and content.startswith(b".so "):
            continue
        mode = 0o755 if os.stat(path).st_mode & stat.S_IXUSR or re.search(r"\.so\.1$", below) else 0o644
        yield (below[len(PACKAGE):] if below.startswith(PACKAGE) else f"{data}/{below}"), content, mode


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return [name, f"sha256={digest}", str(len(content))]


def make(prefix, out):
    version = common.version()
    has_package = os.path.isdir(os.path.join(prefix, PACKAGE))
    tag = f"{'cp39-abi3' if has_package else 'py3-none'}-{platform_tag(prefix)}"
    path = os.path.join(out, f"quoit-{version}-{tag}.whl")
    info = f"quoit-{version}.dist-info"
    files = list(entries(prefix, f"quoit-{version}.data/data"))
    files += [(f"{info}/METADATA", common.metadata().encode(), 0o644),
              (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: quoit {version}\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644),
              (f"{info}/LICENSE", common.read(os.path.join(common.ROOT, "LICENSE")).encode(), 0o644)]
    records = io.StringIO()
    csv.writer(records, lineterminator="\n").writerows([record_line(name, content) for name, content, _ in files] +
                                                       [[f"{info}/RECORD", "", ""]])
    files.append((f"{info}/RECORD", records.getvalue().encode(), 0o644))
    when = time.gmtime(common.epoch())[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    if os.path.getsize(path) > LIMIT_BYTES:
        raise common.Problem(f"{path} has {os.path.getsize(path)} bytes, more than {LIMIT_BYTES}")
    return path


def audit(path):
    """By auditwheel, where it is installed: it gives a wheel this tag, and has to put no library into it. What a driver of a
    network needs is of the machine."""
    if not (shutil.which("auditwheel") and shutil.which("patchelf")):
        return "no auditwheel with patchelf: own check alone"
    tag = re.search(r"-(manylinux_\w+?)\.whl$", path)[1]
    others = ("libshmem.so.1", "libfabric.so.1", "libucp.so.0", "libucs.so.0", "libuct.so.0", "libucm.so.0")
    with tempfile.TemporaryDirectory(prefix="quoit-audit-") as folder:
        common.run("auditwheel", "repair", "--plat", tag, *(f"--exclude={name}" for name in others), "-w", folder, path)
        repaired, = os.listdir(folder)
        with zipfile.ZipFile(path) as own, zipfile.ZipFile(os.path.join(folder, repaired)) as other:
            added = set(other.namelist()) - set(own.namelist())
            if tag not in repaired or [name for name in added if ".so" in name]:
                raise common.Problem(f"auditwheel makes {repaired} of {os.path.basename(path)}, and adds {sorted(added)}")
    return f"auditwheel: {tag}"


def install(python, path, *how):
    common.run(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check",
               "--no-warn-script-location", *how, path)


def test(path):
    """In a virtual environment, with --user, and in an environment that was moved."""
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    if subprocess.run([python, "-m", "venv", "-h"], stdout=subprocess.DEVNULL, check=False).returncode != 0 or \
            subprocess.run([python, "-c", "import ensurepip"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise common.Missing("no venv for Python on this machine (python3-venv)")
    with tempfile.TemporaryDirectory(prefix="quoit-wheel-") as folder:
        made = os.path.join(folder, "venv")
        common.run(python, "-m", "venv", "--system-site-packages", made)
        install(f"{made}/bin/python", path)
        check = Check(common.version(), os.path.join(folder, "work"), f"{made}/bin:/usr/bin:/bin")
        check.programs()
        check.networks()
        check.static()
        check.linkers()
        check.pkg_config(f"{made}/lib/pkgconfig")
        check.cmake(made)
        check.versions(4)
        check.manual("oshrun", "shmem_put")
        check.python(f"{made}/bin/python")
        report(check, "venv")
        moved = shutil.move(made, os.path.join(folder, "moved"))
        check = Check(common.version(), os.path.join(folder, "work"), f"{moved}/bin:/usr/bin:/bin")
        check.greeting()
        report(check, "moved")
        base = os.path.join(folder, "user")
        old = os.environ.get("PYTHONUSERBASE")
        os.environ["PYTHONUSERBASE"] = base
        try:
            install(python, path, "--user", *(["--break-system-packages"] if "break-system" in
                                              common.run(python, "-m", "pip", "install", "--help") else []))
        finally:
            os.environ.pop("PYTHONUSERBASE")
            if old is not None:
                os.environ["PYTHONUSERBASE"] = old
        check = Check(common.version(), os.path.join(folder, "work"), f"{base}/bin:/usr/bin:/bin", env={"PYTHONUSERBASE": base})
        check.greeting()
        check.python(python)
        check.passed.append(audit(path))
        report(check, "--user")
