# SPDX-License-Identifier: BSD-3-Clause
"""Aim: on any kind of machine a job of any kind runs right, or ends at once with a message that names the cause and the cure;
nothing hangs and nothing stays behind. Method: a table of machines, each made for one process and those below it (a time or
mount namespace, a control group, an affinity mask, an environment, a user), and a table of kinds of jobs, each of which checks
its own bytes. Every job runs on every machine. The unit tests that look at clocks, in the long run all of them, run on a machine
that booted a second ago and on one that has been up for three years.

A machine that cannot be made here is skipped with the reason."""
import concurrent.futures
import errno
import glob
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import scenario

STARVE = scenario.program("scenario_starve")
MISBEHAVE = scenario.program("scenario_misbehave")
QUOIT = os.path.join(scenario.BIN, "quoit")
MIX = os.path.join(scenario.BIN, "mix")
LITMUS = os.path.join(scenario.BIN, "dsm", "litmus")
SOURCE = os.environ["SCENARIO_SOURCE"]
YEAR_S = 365 * 86400
OTHER_UID = 54321  # no entry in the list of users
MIB = 1 << 20
# Their own clocks decide when they are late, or how old something is; those that take long are left to the long run.
UNITS_WITH_CLOCKS = """net_wrapper net_pe_endpoints net_sockets link_holddown link_service link_state host_placement env_park
    boot_leader veth_veth emulated_pace ring_pe_endpoint""".split()


def clocks(since_boot_s):
    """Words before a command for which the machine booted so long ago."""
    offset = {clock: since_boot_s - int(time.clock_gettime(number)) for clock, number in
              (("monotonic", time.CLOCK_MONOTONIC), ("boottime", time.CLOCK_BOOTTIME))}
    words = [f"--{clock}={seconds}" for clock, seconds in offset.items()]
    for user in ((), ("--map-root-user",)):  # without rights: in a user namespace
        how = ["unshare", *user, "--time", *words, "--fork", "--kill-child"]
        if shutil.which("unshare") and subprocess.run([*how, "true"], capture_output=True).returncode == 0:
            return how
    raise unittest.SkipTest("no time namespace can be made here")


def mounts(script):
    """Words before a command that sees the machine after the script's mounts."""
    for user in ((), ("--map-root-user",)):
        how = ["unshare", *user, "--mount", "sh", "-c"]
        if shutil.which("unshare") and subprocess.run([*how, script], capture_output=True).returncode == 0:
            return [*how, script + ' && exec "$@"', "sh"]
    raise unittest.SkipTest(f"no mount namespace here in which: {script}")


def other_user():
    if os.getuid() != 0 or not shutil.which("setpriv"):
        raise unittest.SkipTest("only root becomes another user")
    how = ["setpriv", f"--reuid={OTHER_UID}", f"--regid={OTHER_UID}", "--clear-groups"]
    if subprocess.run([*how, "test", "-x", STARVE]).returncode != 0:
        raise unittest.SkipTest("another user may not read this folder")
    return how


def unnamed_host():
    how = ["unshare", "--uts", "sh", "-c", "hostname nowhere.invalid"]
    if not shutil.which("unshare") or not shutil.which("hostname") or subprocess.run(how, capture_output=True).returncode != 0:
        raise unittest.SkipTest("the name of the machine cannot be changed here")
    return [*how[:-1], how[-1] + ' && exec "$@"', "sh"]


def one_processor():
    if not shutil.which("taskset"):
        raise unittest.SkipTest("no taskset")
    return ["taskset", "-c", str(min(os.sched_getaffinity(0)))]


class Group:
    """A control group, of version 2 or 1, with {(controller, file of version 2, file of version 1): value of 2, value of 1}."""

    def __init__(self, mark, controller, *files):
        self.folder = None
        root = "/sys/fs/cgroup"
        is_second = os.path.exists(f"{root}/cgroup.controllers")
        try:
            if is_second:
                with open(f"{root}/cgroup.subtree_control") as file:
                    if controller not in file.read().split():
                        raise OSError(f"the root gives {controller} to no group")
            parent = root if is_second else f"{root}/{controller}"
            folder = f"{parent}/quoit-test-{mark}"
            os.mkdir(folder)
            self.folder = folder
            for name_2, name_1, value_2, value_1 in files:
                with open(f"{folder}/{name_2 if is_second else name_1}", "w") as file:
                    file.write(value_2 if is_second else value_1)
        except OSError as problem:
            self.close()
            raise unittest.SkipTest(f"no control group for {controller} here: {problem}")

    def words(self):
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec "$@"', "sh"]

    def close(self):
        """The kernel may still be taking the last process out of it."""
        end = time.monotonic() + scenario.LATE_S
        while self.folder:
            try:
                os.rmdir(self.folder)
                self.folder = None
            except OSError as problem:
                if problem.errno != errno.EBUSY or time.monotonic() > end:
                    raise
                time.sleep(0.01)


READ_ONLY = r"""awk '{print $5}' /proc/self/mountinfo | sort -r | while read -r at; do
    case $at in /proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro "$(printf %b "$at")" 2>/dev/null;; esac; done; ! touch / 2>/dev/null"""


def work_of(name):
    """A machine: words before the command, changes of its environment, its folder, and a control group or None."""
    def plain(*words, env=None, cwd=None, keeps=True):
        return list(words), env or {}, cwd, keeps
    table = {
        "plain": lambda: plain(),
        "booted a second ago": lambda: plain(*clocks(1)),
        "up for three years": lambda: plain(*clocks(3 * YEAR_S)),
        "one processor": lambda: plain(*one_processor()),
        "no /dev/shm": lambda: plain(*mounts("mount -t tmpfs -o size=0,nr_inodes=1,mode=0 none /dev/shm")),
        "no /proc": lambda: plain(*mounts("umount -l /proc")),
        "no /sys": lambda: plain(*mounts("umount -l /sys")),
        "hidden processes": lambda: plain(*mounts("mount -o remount,hidepid=2 /proc"), *other_user()),
        "read-only": lambda: plain(*mounts(READ_ONLY)),
        "no folders": lambda: plain(env={"HOME": None, "TMPDIR": "/nonexistent", "XDG_CONFIG_HOME": None, "XDG_CACHE_HOME": None}),
        "unwritable folder": lambda: plain(*other_user(), cwd="/"),
        "user without a name": lambda: plain(*other_user(), env={"HOME": None, "USER": None, "LOGNAME": None}),
        "empty environment": lambda: plain(keeps=False),
        "host without an address": lambda: plain(*unnamed_host()),
        "no tools": lambda: plain(env={"PATH": "/nonexistent"}),
        "odd language": lambda: plain(env={"LANG": "tr_TR.UTF-8", "LC_ALL": "xx_XX.nonsense", "LANGUAGE": "\x01"}),
    }
    return table[name]()


MACHINES = ("plain", "booted a second ago", "up for three years", "one processor", "no /dev/shm", "no /proc", "no /sys",
            "hidden processes", "read-only", "no folders", "unwritable folder", "user without a name", "empty environment",
            "host without an address", "no tools", "odd language")
GROUPS = {
    "half a processor": ("cpu", ("cpu.max", "cpu.cfs_quota_us", "50000 100000", "50000")),
    "one processor of a group": ("cpuset", ("cpuset.cpus", "cpuset.cpus", "0", "0"), ("cpuset.mems", "cpuset.mems", "0", "0")),
    "little memory": ("memory", ("memory.max", "memory.limit_in_bytes", str(256 * MIB), str(256 * MIB))),
    "few processes": ("pids", ("pids.max", "pids.max", "11", "11")),
}
KINDS = {
    "one host": (scenario.OSHRUN, "-n", 3, "--timeout", "100s", STARVE, 8),
    "alone": (STARVE, 8),
    "ring": (scenario.OSHRUN, "--hosts", 3, "-n", 3, "--timeout", "100s", STARVE, 8),
    "network": (scenario.OSHRUN, "--network", "tcp", "--hosts", 3, "-n", 3, "--timeout", "100s", STARVE, 8),
    "papers": (scenario.OSHRUN, "--protocol", "scratchpad", "--hosts", 3, "-n", 3, "--timeout", "100s", STARVE, 8),
    "cut links": (scenario.OSHRUN, "--hosts", 3, "-n", 3, "--timeout", "100s", "--fault", "links random every 100ms for 20ms seed 7",
                  MIX, "--seconds", 1),
    "long limits": (scenario.OSHRUN, "--network", "tcp", "--hosts", 2, "-n", 2, "--timeout", "2000000h", "--network-limit", "2000000h",
                    "--link-timeout", "1h", STARVE, 8),
    "dsm": (shutil.which("env"), "DSM_MEMORY=8M", scenario.OSHRUN, "--hosts", 2, "-n", 4, "--timeout", "100s", LITMUS, "--rounds", 1),
    "other launcher": (sys.executable, os.path.join(SOURCE, "tests", "launchers", "direct.py"), "Pmi.test_greeting"),
    "ring that stays": (shutil.which("sh"), "-c", '"$0" ring up --ring "$1" --hosts 2 && "$2" --ring "$1" -n 2 --timeout 100s "$3" 8; s=$?; '
                        '"$0" ring down --ring "$1"; exit $s', QUOIT, "RING", scenario.OSHRUN, STARVE),
}
# What is no job at all on such a machine, and the words with which it ends.
REFUSED = {
    ("few processes", kind): r"(cannot start|no thread could be started|cannot fork|Resource temporarily unavailable).*|"
                             r"ulimit -u|pids" for kind in KINDS
}
UP = "booted a second ago", "up for three years"


class Anywhere(scenario.Case):
    def run_on(self, words, kind, env, cwd, keeps):
        command = [word if word != "RING" else "t" + self.mark[:10] for word in map(str, KINDS[kind])]
        made = scenario.environment(self.mark, **{k: v for k, v in env.items() if v is not None}) if keeps else {
            "SCENARIO_MARK": self.mark}
        for name in (k for k, v in env.items() if v is None):
            made.pop(name, None)
        if kind == "other launcher":
            made.update({k: v for k, v in os.environ.items() if k.startswith("SCENARIO_")}, LAUNCHERS_CONFORMANCE=scenario.BIN)
        job = subprocess.Popen([*words, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=made, cwd=cwd, start_new_session=True)
        try:
            out, err = job.communicate(timeout=2 * scenario.LIMIT_S)
        except subprocess.TimeoutExpired:
            for pid in scenario.processes(self.mark):
                scenario.send(pid, signal.SIGKILL)
            out, err = job.communicate()
            self.fail(f"{kind} hangs\n{out}\n{err}")
        if kind == "ring that stays" and ("Q0601" in err or "Q0602" in err):
            self.skipTest(err.strip())
        return scenario.Result(job.returncode, out, err, 0)

    def judge(self, machine, kind, result):
        words = REFUSED.get((machine, kind))
        if words and result.status != 0:
            self.assertNotIn(result.status, (124, 137, -9), result)
            self.assertRegex(result.err, words)
            return
        self.assertEqual(result.status, 0, result)
        if STARVE in KINDS[kind]:
            self.assertEqual(result.out.splitlines()[-1], "starve: 8 MiB", result)

    def jobs_on(self, machine, *kinds):
        words, env, cwd, keeps = work_of(machine)
        for kind in kinds or KINDS:
            with self.subTest(machine=machine, kind=kind):
                self.judge(machine, kind, self.run_on(words, kind, env, cwd, keeps))
                self.assert_nothing_left()

    def jobs_in(self, machine):
        group = Group(self.mark, *GROUPS[machine])
        try:
            for kind in KINDS:
                with self.subTest(machine=machine, kind=kind):
                    self.judge(machine, kind, self.run_on(group.words(), kind, {}, None, True))
                    self.assert_nothing_left()
        finally:
            group.close()


for index, machine in enumerate(MACHINES):
    name = re.sub(r"\W+", "_", machine).strip("_")
    setattr(Anywhere, f"test_{name}", lambda self, machine=machine: self.jobs_on(machine))
for machine in GROUPS:
    setattr(Anywhere, "test_group_" + re.sub(r"\W+", "_", machine), lambda self, machine=machine: self.jobs_in(machine))


class Clocks(scenario.Case):
    """A few of both tables, for each run."""
    AT_ONCE = 1

    def test_jobs(self):
        for machine in UP:
            Anywhere.jobs_on(self, machine, "ring", "network")

    def test_timeout(self):
        for machine in UP:
            words, *_ = work_of(machine)
            result = subprocess.run([*words, scenario.OSHRUN, "-n", "2", "--timeout", "500ms", MISBEHAVE, "1", "flag"],
                                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=scenario.LIMIT_S,
                                    env=scenario.environment(self.mark))
            self.assertEqual(result.returncode, 124, result)
            self.assertIn("[Q0206]", result.stderr)

    def unit(self, run):
        machine, name = run
        words, *_ = work_of(machine)
        return subprocess.run([*words, name], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                              env=scenario.environment(self.mark))

    def units(self, names):
        self.assertNotEqual(names, [])
        runs = list(itertools.product(UP, names))
        with concurrent.futures.ThreadPoolExecutor(self.AT_ONCE) as pool:
            for (machine, name), result in zip(runs, pool.map(self.unit, runs)):
                with self.subTest(machine=machine, unit=os.path.basename(name)):
                    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    run_on, judge = Anywhere.run_on, Anywhere.judge

    def test_units(self):
        programs = [os.path.join(scenario.BIN, f"unit_{name}_test") for name in UNITS_WITH_CLOCKS]
        self.units([program for program in programs if os.path.exists(program)])


class Units(Clocks):
    """All unit tests."""
    AT_ONCE = 2
    test_jobs = test_timeout = None

    def test_units(self):
        self.units(sorted(glob.glob(os.path.join(scenario.BIN, "unit_*_test"))))


if __name__ == "__main__":
    scenario.main()
