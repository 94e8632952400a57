# SPDX-License-Identifier: BSD-3-Clause
"""The binary archive: a prefix to unpack anywhere and to move, for a machine without root."""
import os
import platform
import shutil
import tempfile

import common
from check import Check, as_nobody, report


def make(prefix, out):
    name = f"quoit-{common.version()}-linux-{platform.machine()}"
    path = os.path.join(out, f"{name}.tar.gz")
    common.pack(path, prefix, name)
    return path


def test(path):
    """Unpacked by a user without rights into a folder with a blank in its path, used, moved, used again."""
    with tempfile.TemporaryDirectory(prefix="quoit-tar-") as folder:
        os.chmod(folder, 0o777)
        prefix = common.unpack(path, os.path.join(folder, "a place"))
        for place in ("a place", "another"):
            if place == "another":
                prefix = shutil.move(prefix, os.path.join(folder, place))
            check = Check(common.version(), os.path.join(folder, "work"), f"{prefix}/bin:/usr/bin:/bin", wrap=as_nobody(),
                          env={"MANPATH": f"{prefix}/share/man"})
            check.greeting()
        check.programs()
        check.networks()
        check.static()
        check.linkers()
        check.pkg_config(f"{prefix}/lib/pkgconfig")
        check.cmake(prefix)
        check.versions(4)
        check.manual("oshrun", "oshcc", "quoit", "shmem_put")
        check.python("/usr/bin/python3", {"PYTHONPATH": f"{prefix}/lib/quoit/python"})
        modules(check, prefix)
        report(check, os.path.basename(path))


def modules(check, prefix):
    """The module file sets what the programs need, whichever language it is read in."""
    lmod = "/usr/share/lmod/lmod/libexec/lmod"
    folder, version = f"{prefix}/share/quoit/modulefiles", common.version()
    if os.path.exists(lmod):
        for suffix in (".lua", ""):
            check.command("sh", "-c", f"rm -rf modules; mkdir -p modules/share/quoit/modulefiles/quoit modules/lib; "
                          f"touch modules/lib/libshmem.so.1; "
                          f"cp '{folder}/quoit/{version}{suffix}' modules/share/quoit/modulefiles/quoit")
            text = check.command("env", f"MODULEPATH={check.seen}/modules/share/quoit/modulefiles", "MODULEPATH_ROOT=/nowhere",
                                 "LMOD_SYSTEM_DEFAULT_MODULES=", lmod, "bash", "load", f"quoit/{version}")
            for part in (f"{check.seen}/modules/bin", f"{check.seen}/modules/share/man", f"{check.seen}/modules/lib/pkgconfig"):
                if part not in text:
                    raise common.Problem(f"quoit/{version}{suffix} does not set {part}: {text}")
        check.passed.append("module files")
