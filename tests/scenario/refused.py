# SPDX-License-Identifier: BSD-3-Clause
"""Aim: whichever system call a machine, a container or a policy refuses, a job runs right or ends with a message that names
the cause; it never hangs, never ends in silence, and leaves no process behind. Method: one call at a time is refused by a
seccomp filter (forbid.c), with each error that real systems give for it, to all processes of the job, and to its PEs alone.
The calls are those that strace shows in jobs of these kinds, without those that no program starts without."""
import errno
import os
import re
import signal
import subprocess
import unittest

import scenario

FORBID = scenario.program("scenario_forbid")
STARVE = scenario.program("scenario_starve")
KINDS = {"one host": ("-n", 2), "ring": ("--hosts", 2, "-n", 2), "tcp": ("--network", "tcp", "--hosts", 2, "-n", 2),
         "papers": ("--hosts", 2, "-n", 2, "--protocol", "scratchpad")}
CALLS = """accept4 access bind clock_nanosleep clone clone3 close_range connect dup2 epoll_create1 epoll_ctl epoll_wait eventfd2
    faccessat2 fallocate fcntl ftruncate getdents64 getpgrp getppid getrandom getsockname getsockopt kill listen madvise
    membarrier memfd_create mremap munmap pidfd_open pipe2 poll ppoll prctl prlimit64 process_vm_readv
    process_vm_writev readlink recvfrom recvmsg rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigtimedwait sched_getaffinity
    sched_setaffinity sched_yield sendmsg sendto set_robust_list setpgid setsockopt shutdown sigaltstack signalfd4 socket
    socketpair sysinfo tgkill uname userfaultfd wait4""".split()
NEW_DESCRIPTOR = "accept4 dup2 epoll_create1 eventfd2 memfd_create pidfd_open pipe2 signalfd4 socket socketpair".split()
LIMIT_S = 60


def errors_of(call):
    yield errno.EPERM
    yield errno.ENOSYS
    if call in NEW_DESCRIPTOR:
        yield errno.EMFILE


def run(mark, kind, who, call, error):
    """(status or None for a hang, output of both kinds)."""
    forbid = [FORBID, f"errno={error},{call}"]
    command = [*(forbid if who == "all" else ()), scenario.OSHRUN, *KINDS[kind], "--timeout", f"{LIMIT_S}s",
               *(forbid if who == "PEs" else ()), STARVE, 8]
    job = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=scenario.environment(mark), start_new_session=True)
    try:
        out = job.communicate(timeout=2 * LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        for pid in scenario.processes(mark):
            scenario.send(pid, signal.SIGKILL)
        return None, job.communicate()[0].decode(errors="replace")
    return job.returncode, out.decode(errors="replace")


def fault_of(call, error, status, out):
    """What is wrong with such an end; "": nothing is."""
    if status is None or status == 124:
        return "hangs"
    if status == 0:
        return "" if "starve: 8 MiB\n" in out else "has lost its output"
    if not re.search(r"\[Q\d{4}\]", out):
        return "ends in silence"
    if not any(word in out for word in (os.strerror(error), call)):
        return "does not name the cause"
    return ""


@unittest.skipIf(scenario.SANITIZE, "a sanitizer's own calls are refused too")
class Refused(scenario.Case):
    def judge(self, who, *kinds):
        found = []
        for kind in kinds:
            for call in CALLS:
                for error in errors_of(call):
                    status, out = run(self.mark, kind, who, call, error)
                    fault = fault_of(call, error, status, out)
                    left = [(pid, scenario.name_of(pid)) for pid in self.left()]
                    if left:
                        fault += f", leaves {left}"
                    if fault:
                        found.append(f"{kind}, {who} without {call} ({errno.errorcode[error]}): {fault}: status {status}\n{out}")
        self.assertEqual(found, [], "\n".join(found))

    def left(self):
        """What is there when the job has ended and what it killed has had time to end; all of it is killed."""
        try:
            self.wait_for(lambda: not scenario.processes(self.mark), "the job's processes", scenario.LATE_S)
        except AssertionError:
            pass
        left = scenario.processes(self.mark)
        for pid in left:
            scenario.send(pid, signal.SIGKILL)
        return left

    def test_one_host(self):
        self.judge("all", "one host")

    def test_ring(self):
        self.judge("all", "ring")

    def test_network(self):
        self.judge("all", "tcp")

    def test_papers(self):
        self.judge("all", "papers")

    def test_pes_alone(self):
        self.judge("PEs", "one host", "ring", "tcp")


if __name__ == "__main__":
    scenario.main()
