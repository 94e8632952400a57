# SPDX-License-Identifier: BSD-3-Clause
"""Aim: programs of one version of Quoit under oshrun of another: they run where a protocol is common to both, oshrun goes
on as the one beside the program's library where none is, and where there is none beside it both versions and both files
are named; quoit info names the version and file of each part. Method: whole copies of the installation in which the note
of the version is another one in every file, since what is sent is what the note says (base/version.h)."""
import json
import os
import re
import shutil
import struct

import installed
from programs import DSM, DSM_2

NOTE = struct.Struct("<III8s24sII")
TYPE = 1
# Which oshrun runs this PE, and greetings as in tests/scenario/greet.c.
PROGRAM = """#include <limits.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    char link[64], path[PATH_MAX] = "";
    shmem_init();
    snprintf(link, sizeof link, "/proc/%d/exe", (int)getppid());
    (void)!readlink(link, path, sizeof path - 1);
    printf("PE %d of %d under %s\\n", shmem_my_pe(), shmem_n_pes(), path);
    shmem_finalize();
}
"""


def change(path, text, oldest, newest):
    """Another version into the note of a file; whether it has one."""
    with open(path, "rb") as file:
        content = file.read()
    head = struct.pack("<III8s", len("Quoit") + 1, 32, TYPE, b"Quoit")
    at = content.find(head)
    if at < 0:
        return False
    made = content[:at] + NOTE.pack(len("Quoit") + 1, 32, TYPE, b"Quoit", text.encode(), oldest, newest) + \
        content[at + NOTE.size:]
    os.remove(path)
    with open(path, "wb") as file:
        file.write(made)
    os.chmod(path, 0o755)
    return True


def own_protocols(path):
    with open(path, "rb") as file:
        content = file.read()
    return NOTE.unpack_from(content, content.index(struct.pack("<III8s", len("Quoit") + 1, 32, TYPE, b"Quoit")))[5:]


class Versions(installed.Case):
    def copy(self, name, text, oldest, newest):
        """A copy of the installation of another version."""
        made = shutil.copytree(self.prefix, os.path.join(self.work, name), symlinks=True)
        changed = [path for path in installed.elf_files(made) if change(path, text, oldest, newest)]
        self.assertGreaterEqual(len(changed), 5)  # libshmem, libqdsm, oshrun, oshcc, quoit, and plugins
        return made

    def build(self, prefix, *options):
        self.write("program.c", PROGRAM)
        self.command(f"{prefix}/bin/oshcc", "program.c", *options, "-o", "program")

    def check_run(self, oshrun, expected_prefix, *options):
        out = self.command(f"{oshrun}/bin/oshrun", "-n", 3, *options, "./program")
        under = os.path.realpath(f"{expected_prefix}/bin/oshrun")
        self.assertEqual(sorted(out.splitlines()), [f"PE {pe} of 3 under {under}" for pe in range(3)])

    def setUp(self):
        super().setUp()
        self.library = os.path.join(self.find("libshmem.so"), "libshmem.so.1")
        self.oldest, self.newest = own_protocols(self.library)
        self.mine = re.search(r"\d+\.\d+\.\d+", self.command("oshrun", "--version"))[0]

    def test_common_protocol(self):
        """A later and an earlier version that speak a protocol of ours, on both sides."""
        for text, oldest, newest in (("9.8.7", self.newest, self.newest + 3), ("0.0.1", 0, self.oldest)):
            with self.subTest(text=text):
                other = self.copy(text, text, oldest, newest)
                for options in ((), ("--hosts", 3), ("--hosts", 3, "--network", "tcp")):
                    self.build(other)
                    self.check_run(self.prefix, self.prefix, *options)
                    self.build(self.prefix)
                    self.check_run(other, other, *options)

    def test_goes_on_beside_the_library(self):
        other = self.copy("other", "9.8.7", self.newest + 1, self.newest + 2)
        for options in ((), ("-Wl,--disable-new-dtags",)):
            self.build(other, *options)
            self.check_run(self.prefix, other)
            self.check_run(other, other, "--hosts", 3)
            self.check_run(self.prefix, other, "--hosts", 3)
        self.build(self.prefix)
        self.check_run(other, self.prefix)
        env = {"LD_LIBRARY_PATH": os.path.dirname(self.library.replace(self.prefix, other))}
        self.command("sh", "-c", "cc program.c $(oshcc --showme:compile) $(oshcc --showme:link | sed 's/-Wl,-rpath[^ ]*//') -o program")
        out = self.command("oshrun", "-n", 1, "./program", env=env)
        self.assertEqual(out, f"PE 0 of 1 under {os.path.realpath(other)}/bin/oshrun\n")

    def test_origin_and_working_folder(self):
        """A library that the program finds from its own folder, and a program that is named from another one."""
        other = self.copy("other", "9.8.7", self.newest + 1, self.newest + 2)
        self.build(other, f"-Wl,-rpath,$ORIGIN/other/{os.path.relpath(os.path.dirname(self.library), self.prefix)}")
        os.makedirs(f"{self.work}/below")
        out = self.command("oshrun", "-n", 1, "--wdir", self.work, "./program")
        self.assertEqual(out, f"PE 0 of 1 under {os.path.realpath(other)}/bin/oshrun\n")

    def test_shared_pages(self):
        other = self.copy("other", "9.8.7", self.newest + 1, self.newest + 2)
        self.write("pages.c", DSM)
        self.command(f"{other}/bin/oshcc", "-Wl,--as-needed", "pages.c", "-lqdsm", "-o", "pages")
        self.assertEqual(self.command("oshrun", "-n", 2, "--hosts", 2, "./pages"), DSM_2)

    def test_programs_of_two_versions(self):
        """No oshrun understands both: nothing is started over and over, and both are named."""
        other = self.copy("other", "9.8.7", self.newest + 1, self.newest + 2)
        self.build(other)
        os.rename(f"{self.work}/program", f"{self.work}/later")
        self.build(self.prefix)
        for oshrun in (self.prefix, other):
            job = self.run_command(f"{oshrun}/bin/oshrun", "-n", 1, "./program", ":", "-n", 1, "./later")
            self.assertEqual((job.returncode, job.stdout, job.stderr.count("[Q0214]")), (1, "", 1), job)
            for text in (f"version {self.mine}", "version 9.8.7", f"{oshrun}/bin/oshrun",
                         f"{self.prefix if oshrun == other else other}/lib"):
                self.assertIn(text, job.stderr)

    def test_none_beside(self):
        """Without the other's oshrun, and where its version cannot be seen: a script, or a program with its own note."""
        other = self.copy("other", "9.8.7", self.newest + 1, self.newest + 2)
        self.build(other)
        self.write("script", "#!/bin/sh\nexec ./program\n")
        os.chmod(f"{self.work}/script", 0o755)
        for program in ("./script", "./program"):
            if program == "./program":
                os.remove(f"{other}/bin/oshrun")
            job = self.run_command("oshrun", "-n", 2, program)
            self.assertEqual((job.returncode, job.stdout, job.stderr.count("[Q0214]")), (1, "", 1), job)
            for text in ("version 9.8.7", os.path.realpath(self.library).replace(self.prefix, other), f"version {self.mine}",
                         f"{self.prefix}/bin/oshrun"):
                self.assertIn(text, job.stderr)

    def test_other_machine(self):
        """An agent of another version: both versions and both files. The remote shell starts the other's oshrun."""
        other = self.copy("other", "9.8.7", self.newest + 1, self.newest + 2)
        self.build(self.prefix)
        self.write("rsh", f"#!/bin/sh\nshift\nexec sh -c \"$(printf '%s' \"$*\" | sed 's|{self.prefix}/bin|{other}/bin|g')\"\n")
        os.chmod(f"{self.work}/rsh", 0o755)
        job = self.run_command("oshrun", "--rsh", "./rsh", "--host", "alpha", "-n", 1, "./program")
        self.assertEqual((job.returncode, job.stdout), (1, ""), job)
        for text in ("version 9.8.7", f"{other}/bin/oshrun", f"version {self.mine}", f"{self.prefix}/bin/oshrun"):
            self.assertIn(text, job.stderr)

    def test_one_segment_is_writable(self):
        """The version's note, and all else that is no variable, is read-only."""
        for path in installed.elf_files(self.prefix):
            shown = self.command("readelf", "-lW", path)
            flags = re.findall(r"(?m)^  LOAD +(?:0x\w+ +){5}([R ][W ][E ])", shown)
            self.assertEqual(flags.count("RW "), 1, f"{path}\n{shown}")
            self.assertEqual([each for each in flags if each not in ("R  ", "R E", "RW ")], [], path)

    def test_info(self):
        other = self.copy("other", "9.8.7", self.newest, self.newest)
        shutil.copy(f"{other}/bin/oshrun", f"{self.work}/oshrun")
        parts = json.loads(self.command(f"{other}/bin/quoit", "info", "--json", env={"PATH": f"{self.work}:/usr/bin:/bin"}))["parts"]
        for name, path in (("oshrun", f"{other}/bin/oshrun"), ("oshcc", f"{other}/bin/oshcc"),
                           ("libshmem", self.library.replace(self.prefix, other)), ("oshrun in PATH", f"{self.work}/oshrun")):
            self.assertEqual(parts[name].split(", ", 1)[0], "9.8.7", parts)
            self.assertEqual(os.path.realpath(parts[name].split(", ", 1)[1]), os.path.realpath(path))
        plugins = [name for name in parts if name.startswith("network ")]
        self.assertEqual(len(plugins), len([name for _, _, names in os.walk(other) for name in names if "libquoit-net-" in name]))
        change(self.library.replace(self.prefix, other), "9.9.9", self.newest, self.newest)
        self.assertIn("libshmem                    9.9.9, ", self.command(f"{other}/bin/quoit", "info"))
        self.build(self.prefix)
        shown = self.command("./program", env={"SHMEM_INFO": "1"})
        self.assertIn(f"{self.mine}, {self.library}\n", shown)


if __name__ == "__main__":
    installed.main()
