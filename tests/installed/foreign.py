# SPDX-License-Identifier: BSD-3-Clause
"""Aim: a program whose OpenSHMEM library is not of this oshrun is named once, with what to do, and nothing of it runs: one
linked with another project's library, and one whose Quoit has another version. Method: tiny libraries of those names; a
program that sends what libraries of other versions send, from a file called libshmem.so; and a launcher that answers a real
program as one of another version."""
import os
import re

import installed

OTHER = """int shmem_init(void) { return 0; }
"""
PROGRAM = """#include <stdio.h>
int shmem_init(void);
int main(void) { shmem_init(); puts("PE 0 of 1"); return 0; }
"""

# In libshmem.so.9: HELLO of SIZE bytes, and in it the text VERSION where every version has its own.
SENDER = """#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
void greet(void)
{
    static char hello[SIZE] = {0x49, 0x4f, 0x55, 0x51, 1};
    strcpy(hello + 8, VERSION);
    send(atoi(getenv("QUOIT_BOOT_FD")), hello, sizeof hello, 0);
    for (;;)
        pause();
}
"""
SENDING = "void greet(void);\nint main(void) { greet(); }\n"

# Starts argv[1] with a boot socket, takes its HELLO, prints the version in it, and answers as a launcher of version 7.0.
LAUNCHER = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    static char bytes[65536], layout[40] = {0x49, 0x4f, 0x55, 0x51, 2};
    char number[16];
    int pair[2], status;
    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    snprintf(number, sizeof number, "%d", pair[1]);
    setenv("QUOIT_BOOT_FD", number, 1);
    if (argc == 2 && fork() == 0)
        return execv(argv[1], argv + 1);
    if (recv(pair[0], bytes, sizeof bytes, 0) < 0)
        return 2;
    puts(bytes + 8);
    strcpy(layout + 8, "7.0");
    send(pair[0], layout, sizeof layout, 0);
    wait(&status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}
"""


class Foreign(installed.Case):
    def build_with(self, name):
        """A program that needs a library of this name, which its RUNPATH leads to."""
        self.write("other.c", OTHER)
        self.write("program.c", PROGRAM)
        self.command("cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "other.c", "-o", name)
        self.command("cc", "program.c", f"./{name}", "-Wl,-rpath,$ORIGIN", "-o", "program")

    def test_library_of_another_project(self):
        for name, owner in (("liboshmem.so.40", "Open MPI"), ("libsma.so.2", "Sandia"), ("libshmem.so.0", "OSSS")):
            with self.subTest(name=name):
                self.build_with(name)
                self.assertEqual(self.command("./program"), "PE 0 of 1\n")
                job = self.run_command("oshrun", "-n", 3, "./program")
                self.assertEqual((job.returncode, job.stdout), (126, ""), job)
                self.assertEqual(job.stderr.count("[Q0230]"), 1, job.stderr)
                self.assertIn(name, job.stderr)
                self.assertIn(owner, job.stderr)
                self.assertIn(f"{self.prefix}/bin/oshcc", job.stderr)

    def test_of_several_programs(self):
        self.build_with("liboshmem.so.40")
        job = self.run_command("oshrun", "-n", 1, "echo", "a", ":", "-n", 2, "./program")
        self.assertEqual((job.returncode, job.stdout, job.stderr.count("[Q0230]")), (126, "", 1), job)

    def test_other_names(self):
        """What only begins as such a name, and our own, is no other library."""
        for name in ("libsmart.so.1", "libshmemx.so.2", "libshmem.so.1"):
            self.build_with(name)
            self.assertEqual(self.command("oshrun", "-n", 2, "./program"), 2 * "PE 0 of 1\n")

    def run_sender(self, size, version):
        self.write("sender.c", SENDER)
        self.write("sending.c", SENDING)
        os.makedirs(os.path.join(self.work, "lib"), exist_ok=True)
        self.command("cc", "-shared", "-fPIC", "-Wl,-soname,libshmem.so.1", f"-DSIZE={size}", f'-DVERSION="{version}"',
                     "sender.c", "-o", "lib/libshmem.so.1")
        self.command("cc", "sending.c", "lib/libshmem.so.1", "-Wl,-rpath,$ORIGIN/lib", "-o", "sending")
        job = self.run_command("oshrun", "-n", 3, "./sending")
        self.assertEqual((job.returncode, job.stdout), (1, ""), job)
        self.assertEqual(job.stderr.count("[Q0214]"), 1, job.stderr)
        return job.stderr

    def test_library_of_another_version(self):
        """Both versions and both files are named: HELLO shorter than ours and longer, and of a time that had no version in
        it."""
        mine = re.search(r"\d+\.\d+\.\d+", self.command("oshrun", "--version"))[0]
        for size, version, named in ((64, "9.8.7", "version 9.8.7"), (60000, "9.8.7", "version 9.8.7"),
                                     (512, "", "an unknown version")):
            with self.subTest(size=size, version=version):
                told = self.run_sender(size, version)
                self.assertIn(named, told)
                self.assertIn(f"version {mine}", told)
                self.assertIn(f"{self.work}/lib/libshmem.so.1", told)
                self.assertIn(f"{self.prefix}/bin/oshrun", told)

    def test_launcher_of_another_version(self):
        mine = re.search(r"\d+\.\d+\.\d+", self.command("oshrun", "--version"))[0]
        self.bring(installed.GREET)
        self.write("launcher.c", LAUNCHER)
        self.command("oshcc", "greet.c", "-o", "hello")
        self.command("cc", "launcher.c", "-o", "launcher")
        job = self.run_command("./launcher", "./hello")
        self.assertNotEqual(job.returncode, 0, job)
        self.assertEqual(job.stdout, f"{mine}\n")
        self.assertEqual(job.stderr.count("[Q0303]"), 1, job.stderr)
        for part in ("version 7.0", f"{self.work}/launcher", f"version {mine}", f"{self.prefix}/lib"):
            self.assertIn(part, job.stderr)


if __name__ == "__main__":
    installed.main()
