# SPDX-License-Identifier: BSD-3-Clause
"""Aim: whatever the machine lacks or forbids, a job either works or ends with one message that says what is too small
and what helps, and leaves nothing behind. Method: the same small programs under resource limits, control groups, system
call filters, other mounts, another user. Tests that need rights not available here are skipped with a reason."""
import os
import pwd
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

import scenario

FORBID = scenario.program("scenario_forbid")
GREET = scenario.program("scenario_greet")
RESERVED = scenario.program("scenario_reserved")
SHARED = os.path.join(scenario.BIN, "dsm", "memory")
STARVE = scenario.program("scenario_starve")
QUOIT = os.path.join(os.path.dirname(scenario.OSHRUN), "quoit")
SHAPES = (("-n", 4), ("--hosts", 3, "-n", 6))
KINDS = (("-n", 3), ("--hosts", 2, "-n", 4), ("--network", "tcp", "--hosts", 2, "-n", 2)) # of ways to another PE
MIB = 1 << 20
# A sanitizer reserves terabytes and starts threads of its own.
plain_only = unittest.skipIf(scenario.SANITIZE, "a sanitizer needs more than the limit")


def group_folder(kind, control):
    """A folder in which control groups of this version can be created: (folder, True if version 2), or None."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        with open("/sys/fs/cgroup/cgroup.subtree_control") as file:
            return ("/sys/fs/cgroup", True) if kind in file.read().split() else None
    folder = "/sys/fs/cgroup/" + kind
    return (folder, False) if os.path.exists(os.path.join(folder, control)) else None


class Resources(scenario.Case):
    def run_in(self, *command, limits=(), env=None, group=None):
        """A command under resource limits [(which, bytes)], in a control group."""
        def prepare():
            if group:
                with open(os.path.join(group, "cgroup.procs"), "w") as file:
                    file.write("0")
            for which, value in limits:
                resource.setrlimit(which, (value, value))

        made = scenario.environment(self.mark, **(env or {}))
        if env and "HOME" in env and env["HOME"] is None:
            del made["HOME"]
        result = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=made, timeout=3 * scenario.LIMIT_S,
                                preexec_fn=prepare)
        self.assert_nothing_left()
        return result

    def job(self, *arguments, **how):
        return self.run_in(scenario.OSHRUN, *arguments, **how)

    def works(self, result):
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
        return result.stdout

    def refused(self, result, code, *words):
        """The job ends with status 1, and a line of oshrun or the library with that code contains all the words."""
        self.assertEqual(result.returncode, 1, result.stderr)
        lines = [line for line in result.stderr.splitlines() if code in line]
        self.assertTrue(any(all(word in line for word in words) for line in lines), result.stderr)
        return result.stderr

    def unshared(self, script, *command):
        """Runs a command after a script in a mount namespace of its own; skips the test where that is not allowed."""
        how = ["unshare", "-m", "sh", "-c"]
        if not shutil.which("unshare") or subprocess.run([*how, script], capture_output=True).returncode != 0:
            self.skipTest(f"mounts of one's own are not allowed here: {script}")
        return self.run_in(*how, script + ' && exec "$@"', "sh", *command)

    def make_group(self, kind, control_1, control_2, value_1, value_2):
        found = group_folder(kind, control_1)
        folder = found and os.path.join(found[0], "quoit-test-" + self.mark)
        try:
            os.mkdir(folder or "")
            with open(os.path.join(folder, control_2 if found[1] else control_1), "w") as file:
                file.write(value_2 if found[1] else value_1)
        except OSError as problem:
            if folder and os.path.isdir(folder):
                os.rmdir(folder)
            self.skipTest(f"control groups for {kind} cannot be made here: {problem}")
        self.addCleanup(os.rmdir, folder)
        return folder

    @plain_only
    def test_address_space(self):
        limits = [(resource.RLIMIT_AS, 1000 * MIB)]
        for shape in SHAPES + ((("-n", 1)),):
            self.works(self.job(*shape, STARVE, 16, limits=limits))  # the default heap fits
        self.works(self.run_in(STARVE, 16, limits=limits))
        large = {"SHMEM_SYMMETRIC_SIZE": "2G"}
        for shape in SHAPES:
            err = self.refused(self.job(*shape, GREET, limits=limits, env=large), "[Q0215]", "ulimit -v",
                               "SHMEM_SYMMETRIC_SIZE (2048 MiB a PE now)")
            self.assertEqual(len(err.splitlines()), 1)
        self.refused(self.run_in(STARVE, limits=limits, env=large), "[Q0302]", "SHMEM_SYMMETRIC_SIZE", "ulimit -v")

    @plain_only
    def test_file_size(self):
        for shape in SHAPES:
            self.works(self.job(*shape, STARVE, 8, limits=[(resource.RLIMIT_FSIZE, 400 * MIB)]))
            self.refused(self.job(*shape, GREET, limits=[(resource.RLIMIT_FSIZE, 4 * MIB)]), "[Q0215]", "ulimit -f")
        self.works(self.run_in(STARVE, 8, limits=[(resource.RLIMIT_FSIZE, 400 * MIB)]))
        self.refused(self.run_in(STARVE, limits=[(resource.RLIMIT_FSIZE, 4 * MIB)]), "[Q0302]", "ulimit -f")

    def test_locked_and_data(self):
        self.works(self.job("-n", 4, STARVE, 16, limits=[(resource.RLIMIT_MEMLOCK, 0)]))
        if not scenario.SANITIZE:
            self.works(self.job("-n", 4, STARVE, 16, limits=[(resource.RLIMIT_DATA, 16 * MIB)]))

    @plain_only
    def test_private_memory(self):
        """Records of blocks are private memory: without it the job ends, since a single PE cannot fail a collective
        call."""
        limits = [(resource.RLIMIT_DATA, 12 * MIB)]
        for command in ((scenario.OSHRUN, "-n", 2, STARVE, "words"), (STARVE, "words")):
            self.refused(self.run_in(*command, limits=limits), "[Q0122]", "shmem_malloc", "ulimit -v or -d")

    @plain_only
    def test_data_of_a_network(self):
        limits = [(resource.RLIMIT_DATA, 1000 << 10)]
        result = self.job("--network", "tcp", "--hosts", 2, "-n", 2, GREET, limits=limits)
        self.refused(result, "[Q0222]", "out of memory", "ulimit -d")

    def test_descriptors(self):
        """Every number of descriptors: the job works, or reports that they are too few."""
        for shape in SHAPES:
            worked = [self.descriptors_are_told(shape, count) for count in range(6, 48, 3)]
            self.assertFalse(worked[0])
            self.assertTrue(worked[-1])

    def descriptors_are_told(self, shape, count):
        result = self.job(*shape, GREET, limits=[(resource.RLIMIT_NOFILE, count)])
        if result.returncode == 0:
            return True
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"Too many open files|ulimit -n|descriptor")
        return False

    def other_user(self):
        if os.getuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("only root becomes another user")
        user = pwd.getpwnam("nobody")
        how = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        if subprocess.run([*how, "test", "-x", GREET]).returncode != 0:
            self.skipTest("nobody may not read this folder")
        return how

    def test_other_user(self):
        how = self.other_user()
        for home in (None, "/", "/nonexistent", pwd.getpwuid(0).pw_dir):
            for shape in SHAPES:
                self.works(self.run_in(*how, scenario.OSHRUN, *shape, STARVE, 8, env={"HOME": home}))
        result = self.run_in(*how, QUOIT, "tune", "--time", "100ms", "--memory", "128M", env={"HOME": None})
        self.assertEqual(result.returncode, 1)
        self.assertIn("neither XDG_CONFIG_HOME nor HOME", result.stderr)

    @plain_only
    def test_processes(self):
        """Any number of processes and threads: the job works, or one message names the limit, and no PE has got past
        shmem_init."""
        how = self.other_user()
        for shape in (*SHAPES, ("--network", "tcp", "--hosts", 3, "-n", 6)):
            worked = [self.processes_are_named(how, shape, count) for count in (1, 2, 5, 9, 12, 14, 16, 18, 20, 23, 60)]
            self.assertFalse(worked[0])
            self.assertTrue(worked[-1])

    def processes_are_named(self, how, shape, count):
        result = self.run_in(*how, scenario.OSHRUN, *shape, GREET, limits=[(resource.RLIMIT_NPROC, count)], env={"HOME": "/"})
        if result.returncode == 0:
            return True
        if result.stderr.startswith("setpriv:"): # not even that
            return False
        self.assertEqual((result.returncode, result.stdout), (1, ""), f"{shape} {count}: {result.stderr}")
        self.assertEqual(result.stderr.count("[Q"), 1, f"{shape} {count}: {result.stderr}")
        self.assertRegex(result.stderr, r"^oshrun: .*ulimit -u.* \[Q\d+\]", f"{shape} {count}")
        return False

    @plain_only
    def test_group_too_small_to_start(self):
        """Less memory than the job needs before the first shmem_malloc: the kernel kills a process, which is
        reported."""
        group = self.make_group("memory", "memory.limit_in_bytes", "memory.max", str(24 * MIB), str(24 * MIB))
        result = self.job("--hosts", 8, "-n", 64, GREET, group=group)
        if result.returncode > 0: # the launcher itself may be killed
            self.assertRegex(result.stderr, r"killed by SIGKILL \(kill -9, or memory ran out|has died of SIGKILL \(kill -9, or memory")

    def test_forbidden_calls(self):
        """System calls that many containers refuse. Without memfd_create there is no shared memory; the others have
        fallbacks."""
        for shape in SHAPES:
            self.refused(self.run_in(FORBID, "memfd_create", scenario.OSHRUN, *shape, GREET), "[Q0215]", "memfd_create",
                         "seccomp")
        self.refused(self.run_in(FORBID, "errno=38,memfd_create", GREET), "[Q0302]", "memfd_create")
        for calls in ("membarrier", "userfaultfd", "close_range", "madvise", "sched_setaffinity",
                      "errno=38,membarrier,userfaultfd,close_range,madvise,process_vm_readv,process_vm_writev"):
            for shape in SHAPES:
                self.works(self.run_in(FORBID, calls, scenario.OSHRUN, *shape, STARVE, 8))

    def test_small_shared_memory(self):
        """Memory of jobs is not in /dev/shm, so the size and presence of that do not matter."""
        for size in ("32m", "4k"):
            for shape in SHAPES:
                self.works(self.unshared(f"mount -t tmpfs -o size={size} none /dev/shm", scenario.OSHRUN, *shape, STARVE, 64))

    @unittest.skipIf(scenario.SANITIZE, "the search for leaks reads /proc")
    def test_odd_mounts(self):
        for script in ("mount -t tmpfs -o ro none /tmp", "mount -t tmpfs none /proc", "mount -t tmpfs none /sys",
                       "mount -t tmpfs none /proc && mount -t tmpfs none /sys && mount -t tmpfs -o ro none /dev/shm"):
            if "/tmp" in script and scenario.BIN.startswith("/tmp/"):
                continue
            for shape in SHAPES:
                self.works(self.unshared(script, scenario.OSHRUN, *shape, STARVE, 8))

    def test_hidden_processes(self):
        how = self.other_user()
        self.works(self.unshared("mount -o remount,hidepid=2 /proc", *how, "env", "HOME=/", scenario.OSHRUN, "-n", 4,
                                 STARVE, 8))

    @plain_only
    def test_group_memory(self):
        """A control group with less memory than the heap's limit: shmem_malloc fails, and no process is killed."""
        group = self.make_group("memory", "memory.limit_in_bytes", "memory.max", str(256 * MIB), str(256 * MIB))
        for shape in SHAPES:
            out = self.works(self.job(*shape, STARVE, group=group))
            got = int(re.fullmatch(r"starve: (\d+) MiB\n", out).group(1))
            self.assertGreater(got, 0)
            self.assertLess(got * shape[-1], 256)

    def test_memory_of_the_machine(self):
        """What /proc/meminfo calls available is not exceeded, though the kernel would give more."""
        with open("/proc/meminfo") as file:
            real = file.read()
        for available, got in (("1024", 0), ("16777216", 16)):
            with tempfile.NamedTemporaryFile("w") as forged:
                forged.write(re.sub(r"(MemAvailable: +)\d+", rf"\g<1>{available}", real))
                forged.flush()
                for shape in SHAPES:
                    out = self.works(self.unshared(f"mount --bind {forged.name} /proc/meminfo", scenario.OSHRUN, *shape, STARVE, 16))
                    self.assertEqual(out, f"starve: {got} MiB\n")

    def test_reserved(self):
        """Blocks of shmemx_reserve occupy what is taken or used, also at PEs of other hosts, and others do as before."""
        for shape in (*KINDS, ("--protocol", "scratchpad", "--hosts", 3, "-n", 3), ("--check", "--hosts", 2, "-n", 2)):
            with self.subTest(shape=shape):
                self.assertEqual(self.works(self.job(*shape, RESERVED)), "reserved: right\n")

    @unittest.skipIf(scenario.SANITIZE, "the search for leaks reads /proc")
    def test_reserved_without_memory(self):
        """A PE takes only what its machine has free, for others too; what is taken already can be taken without."""
        for shape in KINDS:
            with self.subTest(shape=shape), tempfile.NamedTemporaryFile("w") as forged:
                forged.write("MemAvailable: 16777216 kB\n")
                forged.flush()
                how = (f"mount --bind {forged.name} /proc/meminfo", scenario.OSHRUN, *shape, "--symmetric-size", "128M")
                self.assertEqual(self.works(self.unshared(*how, RESERVED, "lack", forged.name)), "reserved: right\n")

    @unittest.skipIf(scenario.SANITIZE, "the search for leaks reads /proc")
    @unittest.skipUnless(os.path.exists(SHARED), "libqdsm is not built")
    def test_shared_pages_without_memory(self):
        """libqdsm ends the job with the PE that has no memory for a page: the one that uses it, or on another host its home."""
        for how, shape, pe in (("much", ("-n", 2), 0), ("much", ("--hosts", 2, "-n", 2), 0), ("lack", ("--hosts", 2, "-n", 4), 3),
                               ("lack", ("--network", "tcp", "--hosts", 2, "-n", 2), 1)):
            with self.subTest(how=how, shape=shape), tempfile.NamedTemporaryFile("w") as forged:
                forged.write("MemAvailable: 16777216 kB\n")
                forged.flush()
                result = self.unshared(f"mount --bind {forged.name} /proc/meminfo", scenario.OSHRUN, *shape, "--symmetric-size", "128M",
                                       "-x", "DSM_MEMORY=80M", "-x", "DSM_PROTOCOL=newgendsm", SHARED, how, forged.name)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stderr, rf"dsm: PE 0: PE {pe} has no memory for \d+ KiB more of shared pages")

    @plain_only
    def test_reserved_in_a_group(self):
        """More is reserved than a control group has: taking it fails in the end, and no process is killed."""
        group = self.make_group("memory", "memory.limit_in_bytes", "memory.max", str(256 * MIB), str(256 * MIB))
        for shape in SHAPES:
            out = self.works(self.job(*shape, "--symmetric-size", "100M", RESERVED, "all", group=group))
            got, reserved = map(int, re.fullmatch(r"reserved: (\d+) MiB of (\d+)\n", out).groups())
            self.assertGreater(reserved, 64)
            self.assertGreater(got, 0)
            self.assertLess(got * shape[-1], 256 - 64)

    def test_group_processors(self):
        """`quoit info` prints how many processors the wait policy assumes."""
        def told(*prefix, **how):
            text = self.works(self.run_in(*prefix, QUOIT, "info", **how))
            return int(re.search(r"processors allowed +(\d+)", text).group(1))

        self.assertEqual(told("taskset", "-c", str(min(os.sched_getaffinity(0)))), 1)
        allowed = told()
        group = self.make_group("cpu", "cpu.cfs_quota_us", "cpu.max", "150000", "150000 100000")
        self.assertEqual(told(group=group), 1)
        self.assertLessEqual(allowed, len(os.sched_getaffinity(0)))

    def test_huge_pages(self):
        """A heap that grew in small steps is backed by huge pages, except for a partial one at its end."""
        for shape in SHAPES:
            out = self.works(self.job(*shape, scenario.program("scenario_pages")))
            if "none here" in out:
                self.skipTest("this kernel gives no huge pages to memfds")
            kib = [int(number) for number in re.findall(r"^PE \d+: (\d+) KiB$", out, re.M)]
            self.assertEqual(len(kib), shape[-1])
            self.assertGreaterEqual(min(kib), 60 << 10)

    def test_many(self):
        """64 and 200 PEs on any number of processors: every PE greets."""
        if scenario.SANITIZE:
            self.skipTest("200 shadows of memory")
        for shape in (("-n", 64), ("-n", 200), ("--hosts", 8, "-n", 64)):
            out = self.works(self.job("--timeout", 170, *shape, STARVE, 4))
            self.assertEqual(out, "starve: 4 MiB\n")

    def test_spaces(self):
        folder = os.path.join(os.path.dirname(scenario.BIN), "a folder " + self.mark[:6])
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(STARVE, os.path.join(folder, "a program"))
        self.works(self.job("-n", 2, os.path.join(folder, "a program"), 4))


if __name__ == "__main__":
    scenario.main()
