# SPDX-License-Identifier: BSD-3-Clause
"""Aim: however a job ends, oshrun ends soon with the right status, explains what happened, and leaves no process
behind.
Method: programs that end in every possible manner, first without the library (sh, sleep), then PEs that misbehave, on
one host and on a ring; signals to oshrun. After each test scenario.Case.tearDown looks for leftover processes."""
import fcntl
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import scenario

MISBEHAVE, GREET = scenario.program("scenario_misbehave"), scenario.program("scenario_greet")
PRETEND = scenario.program("scenario_pretend")
HAS_LIBRARY = os.path.exists(MISBEHAVE)
# Without binutils' addr2line messages print addresses instead of lines.
HAS_LINES = shutil.which("addr2line") is not None
LINE = r" \(misbehave.c:\d+\)" if HAS_LINES else ""


def place(function):
    return rf"at {function}\(\) misbehave.c:\d+" if HAS_LINES else r"at 0x[0-9a-f]+ of \S.*scenario_misbehave"


class Plain(scenario.Case):
    """Without the library."""

    def test_status_of_a_pe(self):
        result = self.run_soon("true", ":", "sh", "-c", "exit 3", ":", "sleep", 100)
        self.assertEqual(result.status, 3)
        self.assertIn("PE 1 on host0 exited with status 3", result.err)
        self.assertIn("[Q0202]", result.err)

    def test_signal_of_a_pe(self):
        result = self.run_soon("sleep", 100, ":", "sh", "-c", "kill -FPE $$")
        self.assertEqual(result.status, 128 + signal.SIGFPE)
        self.assertIn("PE 1 on host0 was killed by SIGFPE", result.err)

    def test_all_fail(self):
        result = self.run_job("-n", 8, "sh", "-c", "exit 7")
        self.assertEqual(result.status, 7)
        self.assertEqual(result.err.count("exited with status 7"), 1)

    def test_what_pes_started_ends_too(self):
        result = self.run_soon("-n", 2, "sh", "-c", "sleep 100 & setsid sleep 100 & exit 0")
        self.assertEqual(result.status, 0)
        result = self.run_soon("sh", "-c", "trap '' TERM INT; sleep 100 & wait", ":", "sh", "-c", "sleep 0.3; exit 4")
        self.assertEqual(result.status, 4)

    def test_output_before_the_end_is_kept(self):
        result = self.run_job("sh", "-c", "seq 20000; exit 5", ":", "sleep", 100)
        self.assertEqual(result.status, 5)
        self.assertEqual(result.out, "".join(f"{i}\n" for i in range(1, 20001)))

    def test_timeout(self):
        result = self.run_soon("--timeout", "300ms", "-n", 3, "sleep", 100)
        self.assertEqual(result.status, 124)
        self.assertIn("longer than 300ms", result.err)
        self.assertIn("PEs 0-2 had not called shmem_init", result.err)
        self.assertEqual(self.run_job("--timeout=30s", "-n", 2, "true").status, 0)

    def interrupt(self, numbers, trap, body, limit, said=b""):
        """Up to three times, until the job ends within the limit; two signals may come to a busy oshrun as one, and a busy PE may
        be killed before it has said what it says."""
        for _ in range(scenario.RUNS_MAX):
            job = self.start("-n", 2, "sh", "-c", f"{trap}; echo ready; {body}")
            self.assertEqual(job.stdout.readline(), b"ready\n")
            self.assertEqual(job.stdout.readline(), b"ready\n")
            begin = time.monotonic()
            for number in numbers:
                job.send_signal(number)
                time.sleep(0.3)
            out, err = job.communicate(timeout=scenario.LIMIT_S)
            seconds = time.monotonic() - begin
            if seconds < limit and out == said:
                break
        self.assertLess(seconds, limit)
        return job.returncode, out.decode(), err.decode()

    def test_interrupt(self):
        status, out, err = self.interrupt([signal.SIGINT], "trap 'echo bye; exit 0' TERM", "sleep 100 & wait",
                                          scenario.SOON_S, b"bye\nbye\n")
        self.assertEqual((status, out), (130, "bye\nbye\n"), err)
        status, _, _ = self.interrupt([signal.SIGTERM], "true", "exec sleep 100", scenario.SOON_S)
        self.assertEqual(status, 143)
        stubborn = "trap '' TERM INT", "while :; do sleep 1; done"
        status, _, _ = self.interrupt([signal.SIGINT], *stubborn, 2 + scenario.SOON_S)
        self.assertEqual(status, 130)
        status, _, _ = self.interrupt([signal.SIGINT, signal.SIGINT], *stubborn, 1.8)
        self.assertEqual(status, 130)

    def test_signals_are_passed_on(self):
        job = self.start("-n", 2, "sh", "-c", "trap 'echo usr1' USR1; trap 'exit 6' USR2; echo ready; "
                         "while :; do sleep 0.1; done")
        for _ in range(2):
            self.assertEqual(job.stdout.readline(), b"ready\n")
        job.send_signal(signal.SIGUSR1)
        for _ in range(2):
            self.assertEqual(job.stdout.readline(), b"usr1\n")
        job.send_signal(signal.SIGUSR2)
        job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 6)

    def test_stop_and_continue(self):
        job = self.start("-n", 2, "sleep", 100, preexec_fn=os.setpgrp)
        self.wait_for(lambda: len(self.pids_of("sleep")) == 2, "two PEs")
        pids = self.pids_of("sleep") + [job.pid]
        job.send_signal(signal.SIGTSTP)
        self.wait_for(lambda: all(scenario.state_of(p) == "T" for p in pids), "everything to stop")
        job.send_signal(signal.SIGCONT)
        self.wait_for(lambda: all(scenario.state_of(p) not in ("T", "") for p in pids), "everything to go on")
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual(job.returncode, 143)

    def test_kill_of_the_launcher(self):
        for delay in (0.001, 0.003, 0.01, 0.1):
            job = self.start("-n", 3, "sh", "-c", "sleep 100 & sleep 101; true")
            time.sleep(delay)
            job.kill()
            job.communicate(timeout=scenario.LIMIT_S)
            self.assert_nothing_left()

    def test_kill_of_the_launcher_beside_other_sessions(self):
        """A process that a PE started in a session of its own ends too, whichever one or two of oshrun's three
        processes are killed at once."""
        own = ("oshrun", "quoit-guard", "quoit-job")
        for names in [{name} for name in own] + [set(own) - {name} for name in own]:
            job = self.start("-n", 2, "sh", "-c", "setsid sh -c 'setsid sleep 100 & sleep 102' & sleep 101; true")
            self.wait_for(lambda: len(self.pids_of("sleep")) == 6 and all(len(self.pids_of(name)) == 1 for name in own),
                          "all that the PEs start, and the names") # the guard takes its own when the job runs already
            pids = self.pids_of(*names)
            self.assertEqual(len(pids), len(names))
            for pid in pids:
                scenario.send(pid, signal.SIGKILL)  # it may have ended as the one before it was killed
            _, err = job.communicate(timeout=scenario.LIMIT_S)
            self.assert_nothing_left()
            if names != {"oshrun", "quoit-job"}:  # the latter may have ended by itself before it was killed
                self.assertEqual("Q0219" in err.decode(), "oshrun" not in names, err)

    def named_oshrun(self):
        def is_named(pid):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return b"oshrun" in file.read()
        return [pid for pid in scenario.processes(self.mark) if is_named(pid)]

    def test_kill_of_all_that_are_named_oshrun(self):
        """pkill -9 -f oshrun, while the job runs and while it is stopped."""
        for is_stopped in (False, True):
            job = self.start("-n", 2, "sh", "-c", "setsid sleep 100 & sleep 101; true", preexec_fn=os.setpgrp)
            self.wait_for(lambda: len(self.pids_of("sleep")) == 4, "all that the PEs start")
            self.wait_for(lambda: len(self.named_oshrun()) == 2, "the guard's own name")
            if is_stopped:
                job.send_signal(signal.SIGTSTP)
                self.wait_for(lambda: scenario.state_of(job.pid) == "T", "the job to stop")
            named = self.named_oshrun()
            self.assertEqual(len(named), 2)
            for pid in named:
                scenario.send(pid, signal.SIGKILL)
            job.communicate(timeout=scenario.LIMIT_S)
            self.assert_nothing_left()

    def test_stopped_reader_of_the_output(self):
        """oshrun can be ended while the reader of the PEs' output is stalled, also after the PEs have ended."""
        for body, ends in (("head -c 900000 /dev/zero", True), ("head -c 9000000 /dev/zero", False)):
            for how in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None):
                options = ["--timeout", "1s"] if how is None else []
                read_end, write_end = os.pipe()
                job = self.start(*options, "-n", 1, "sh", "-c", body, stdout=write_end, stderr=write_end)
                os.close(write_end)
                try:
                    if how:
                        self.wait_for(lambda: self.is_filling(read_end) and not (ends and self.pids_of("sh", "head")), "output")
                        time.sleep(0.3)
                        job.send_signal(how)
                    self.assertEqual(job.wait(timeout=scenario.LATE_S), 124 if how is None else 128 + how)
                finally:
                    job.kill()
                    os.close(read_end)

    @staticmethod
    def is_filling(pipe):
        held = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]
        return held >= fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) // 2


@unittest.skipUnless(HAS_LIBRARY, "the library was not built")
class Misbehaving(scenario.Case):
    """PEs that misbehave while others wait in a barrier, on one host and on rings."""

    shapes = (["-n", 4], ["--hosts", 2, "-n", 4], ["--hosts", 3, "-n", 3])

    def misbehave(self, who, *deed, until=""):
        for shape in self.shapes:
            with self.subTest(shape=shape, deed=deed):
                yield self.run_soon(*shape, MISBEHAVE, who, *deed, until=until)

    def misbehave_until_timeout(self, who, *deed, words):
        for shape in self.shapes:
            with self.subTest(shape=shape, deed=deed):
                self.run_out(1.5, words, *shape, MISBEHAVE, who, *deed)


class Pes(Misbehaving):
    def test_exit(self):
        for result in self.misbehave(1, "exit", 3):
            self.assertEqual(result.status, 3, result)
            self.assertIn("PE 1 on host", result.err)
            self.assertIn("exited with status 3", result.err)

    def test_quick_exit_is_a_failure(self):
        for result in self.misbehave(2, "_exit", 0):
            self.assertEqual(result.status, 1, result)
            self.assertIn("[Q0203]", result.err)

    def test_return_after_finalize(self):
        for result in self.misbehave(1, "return", 9):
            self.assertEqual(result.status, 9, result)

    @unittest.skipIf(scenario.SANITIZE, "a sanitizer takes the signal")
    def test_crash(self):
        for result in self.misbehave(1, "null", until=place("solve")):  # a busy addr2line is not waited for
            self.assertEqual(result.status, 139, result)
            self.assertIn("was killed by SIGSEGV (address 0x0)", result.err)
            self.assertIn("[Q0201]", result.err)
            # On a busy machine they may not be asleep yet.
            self.assertRegex(result.err, rf"PEs? [-,023]+ (was|were) (waiting in shmem_barrier_all{LINE}|running)")
            self.assertLessEqual(len(result.err.splitlines()), 8)
        for result in self.misbehave(1, "put-null", until=place("copy_from_nowhere") + ", in shmem_putmem"):
            self.assertEqual(result.status, 139, result)
            self.assertIn("was killed by SIGSEGV (address 0x40)", result.err)
        for result in self.misbehave(0, "abort"):
            self.assertEqual(result.status, 134, result)
            self.assertIn("was killed by SIGABRT", result.err)

    @unittest.skipIf(scenario.SANITIZE, "a sanitizer takes the signal")
    def test_crash_beside_a_tool_that_hangs(self):
        """Source lines come from addr2line; the end of the job does not wait for it."""
        with tempfile.TemporaryDirectory() as folder:
            tool = os.path.join(folder, "addr2line")
            with open(tool, "w") as file:
                file.write("#!/bin/sh\nexec sleep 100\n")
            os.chmod(tool, 0o755)
            result = self.run_soon("-n", 3, MISBEHAVE, 1, "null", env={"PATH": folder + ":" + os.environ["PATH"]})
        self.assertEqual(result.status, 139, result)
        self.assertRegex(result.err, r"at 0x[0-9a-f]+ of ")

    def test_kill(self):
        for result in self.misbehave(1, "kill", 9):
            self.assertEqual(result.status, 137, result)
            self.assertIn("was killed by SIGKILL", result.err)

    def test_kill_of_a_lock_holder(self):
        """PEs that wait for the lock do not wait for ever, and the message names the PE that died."""
        for result in self.misbehave(-1, "lock", 1):
            self.assertEqual(result.status, 128 + signal.SIGKILL, result)
            self.assertIn("PE 1 on host", result.err)
            self.assertIn("was killed by SIGKILL", result.err)
            self.assertRegex(result.err, rf"PEs? [-,023]+ (was|were) (waiting in shmem_(set_lock|barrier_all){LINE}|running)")

    def test_global_exit(self):
        for status in (0, 5):
            for result in self.misbehave(1, "global-exit", status):
                self.assertEqual((result.status, result.err), (status, ""), result)
            for result in self.misbehave(-1, "global-exit", status):
                self.assertEqual((result.status, result.err), (status, ""), result)

    def test_misuse_is_told_once(self):
        for result in self.misbehave(-1, "bad-pe", until="oshrun: PEs 0-"):  # the end does not wait for a PE that is held up
            self.assertNotIn(result.status, (0, 139), result)
            self.assertEqual(result.err.count("1000"), 1, result)

    def test_timeout_says_who_waits(self):
        self.misbehave_until_timeout(1, "flag", words=(
            r"PE 1 was waiting in shmem_long_wait_until" + LINE + " for flag != 0, which is 0",
            r"PEs 0,2[-,0-9]* were waiting in shmem_barrier_all" + LINE))
        self.misbehave_until_timeout(0, "sleep", 100, words=("PE 0 was running",))

    def test_a_computing_pe_that_is_asked_does_nothing_more(self):
        result = self.run_job("--timeout", "500ms", "-n", 2, MISBEHAVE, 0, "nap")
        self.assertEqual((result.status, result.out), (124, ""), result)

    def test_stopped_pe(self):
        self.misbehave_until_timeout(1, "kill", int(signal.SIGSTOP), words=("PE 1 was stopped by a signal",))

    def test_one_leaves_early(self):
        """Its shmem_finalize matches a barrier of the others, which then wait for ever."""
        for deed, words in (("exit", "by exit(0)"), ("finalize", "by shmem_finalize")):
            for result in self.misbehave(1, deed, 0):
                self.assertEqual(result.status, 1, result)
                self.assertRegex(result.err, r"PE 1 on host\d left the job " + re.escape(words) + ".*Q0209")
                self.assertRegex(result.err, rf"PEs? [-,023]+ (was|were) (waiting in shmem_finalize({LINE})?|"
                                 rf"waiting in shmem_barrier_all{LINE}|running)")

    def test_one_leaves_with_a_lock(self):
        for result in self.misbehave(-1, "keep", 1):
            self.assertEqual(result.status, 1, result)
            self.assertRegex(result.err, r"PE 1 on host\d left the job by exit\(0\) or return from main with a lock .*Q0242")
            self.assertRegex(result.err, rf"PEs? [-,023]+ (was|were) waiting in shmem_set_lock{LINE} for lock held_lock, which PE 1 holds")

    def test_exec(self):
        """Another program in the place of a PE for which the others wait."""
        for result in self.misbehave(1, "exec"):
            self.assertEqual(result.status, 1, result)
            self.assertRegex(result.err, r"PE 1: its program was replaced by \S+ \(exec\) .*\[Q0243\]")

    def test_all_leave_by_exit(self):
        for result in self.misbehave(-1, "exit", 0):
            self.assertEqual((result.status, result.err), (0, ""), result)
        for result in self.misbehave(1, "exit-late", 0):
            self.assertEqual((result.status, result.err), (0, ""), result)

    def test_messages_that_come_late(self):
        """On a busy machine the same message arrives from PE after PE: it is reported once for all, and the job ends
        soon."""
        for result in self.misbehave(-1, "bad-pe", 130, until="PEs 0-[23]: shmem_long_p: pe is 1000"):
            self.assertEqual(result.status, 1, result)

    def test_closed_descriptors(self):
        """A program that closes every descriptor has closed the boot socket; its end is judged like any other."""
        for who in (1, -1):
            for result in self.misbehave(who, "close-all"):
                self.assertEqual((result.status, result.out, result.err), (0, "", ""), result)
            for result in self.misbehave(who, "close-all", 5):
                self.assertEqual(result.status, 5, result)
        for deed in ("global-exit", "slow-exit"): # whose handlers have their time
            for result in self.misbehave(1, f"close-all {deed}", 9):
                self.assertEqual((result.status, result.err), (9, ""), result)
        for result in self.misbehave(1, "close-all bad-pe"):
            self.assertEqual(result.status, 1, result)
            self.assertIn("shmem_long_p: pe is 1000", result.err)
        for result in self.misbehave(1, "close-all _exit", 0):
            self.assertIn("[Q0203]", result.err)

    @unittest.skipUnless(os.geteuid() == 0, "only root can name another process as the sender")
    def test_no_stranger_is_signalled(self):
        """A PE sends HELLO in the name of a process outside the job."""
        stranger = subprocess.Popen(["sleep", "100"])
        try:
            job = self.start("-n", 1, PRETEND, "impostor", stranger.pid)
            self.assertEqual(job.stdout.readline(), b"said 0\n")
            time.sleep(0.1)
            job.send_signal(signal.SIGUSR1)
            time.sleep(0.1)
            job.send_signal(signal.SIGTERM)
            job.communicate(timeout=scenario.LIMIT_S)
            self.assertIsNone(stranger.poll())
        finally:
            stranger.kill()
            stranger.wait()

    def test_memory_that_cannot_be(self):
        result = self.run_job("-n", 1, PRETEND, "huge")
        self.assertEqual(result.status, 1, result)
        self.assertIn("the memory of host0 cannot be laid out: 8796093022208 MiB of variables", result.err)

    def test_report_is_plain_text(self):
        """Text from a PE reaches the terminal without its control characters."""
        result = self.run_job("-n", 1, PRETEND, "escape")
        self.assertEqual(result.status, 3, result)
        self.assertIn("?[31mred?]0;title? ?? end", result.err)
        self.assertNotRegex(result.err, r"[^ -~\n]")

    def test_pid_namespace(self):
        """In its own pid namespace a PE reports a pid that denotes another process outside."""
        apart = ["unshare", "--pid", "--fork"]
        if not shutil.which("unshare") or subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
            self.skipTest("pid namespaces are not allowed here")
        job = self.start("-n", 2, *apart, PRETEND, "usr1")
        for _ in range(2):
            self.assertEqual(job.stdout.readline(), b"ready\n")
        job.send_signal(signal.SIGUSR1)
        out, err = job.communicate(timeout=scenario.LIMIT_S)
        self.assertEqual((job.returncode, out), (0, b"signalled\n" * 2), err)
        for deed, status in ((["null"], 139), (["exit", 3], 3)):
            if not (scenario.SANITIZE and deed == ["null"]):
                result = self.run_job("--hosts", 2, "-n", 2, *apart, MISBEHAVE, 1, *deed)
                self.assertEqual(result.status, status, result)

    def test_one_without_init(self):
        words = "PEs 2,3 ended without shmem_init, in which PEs 0,1 waited"  # the end does not wait for a PE that is held up
        result = self.run_soon("-n", 2, MISBEHAVE, 0, "nothing", ":", "-n", 2, "true", until=words)
        self.assertEqual(result.status, 1)
        self.run_out(0.5, ("PE 2 had not called shmem_init",), "-n", 2, MISBEHAVE, 0, "nothing", ":", "sleep", 100)

    def test_a_proxy_that_does_not_end(self):
        """It is killed soon after the PEs; the status is theirs, and a warning names the host."""
        for frozen, words in (((1,), "the proxy of host1 .* was killed"),
                              ((0, 2), "the proxy of host0, the proxy of host2 .* were killed")):
            with self.subTest(frozen=frozen):
                job = self.start("--hosts", 3, "-n", 3, "sh", "-c", f"{shlex.quote(GREET)}; sleep 3; exit 3")
                for _ in range(3):
                    self.assertRegex(job.stdout.readline(), b"hello from PE [0-2] of 3\n")
                proxies = self.pids_of("quoit-proxy")
                for host in frozen:
                    os.kill(proxies[host], signal.SIGSTOP)
                _, err = job.communicate(timeout=scenario.LIMIT_S)
                self.assertEqual(job.returncode, 3, err)
                self.assertRegex(err.decode(), rf"^oshrun: warning: {words} \[Q0229\]\n.*\[Q0202\]\n$")

    def test_under_a_shell(self):
        """A shell between oshrun and the PE changes nothing."""
        shape, quoted = ["--hosts", 2, "-n", 2], shlex.quote(MISBEHAVE)
        self.assertEqual(self.run_job(*shape, "sh", "-c", f"{quoted} 5 nothing; exit $?").status, 0)
        result = self.run_job(*shape, "sh", "-c", f"{quoted} 1 exit 3; exit $?")
        self.assertEqual(result.status, 3, result)
        if not scenario.SANITIZE:
            result = self.run_job(*shape, "sh", "-c", f"{quoted} 1 null; exit $?")
            self.assertEqual(result.status, 139, result)
            self.assertIn("killed by SIGSEGV", result.err)


class Waits(Misbehaving):
    @scenario.each(*Misbehaving.shapes)
    def test_timeout_says_what_is_waited_for(self, shape):
        """Objects by name or address, signed values, the holder of a lock, and where a PE computes."""
        for deed, words in (("signed", "for signed_flag == 5, which is -3"),
                            ("heap", r"for heap \+ 0x[0-9a-f]+ >= 7, which is 2"),
                            ("part", r"for words \+ 24 bytes < 0, which is 4000000000"),
                            ("several", r"for 3 objects, of which words \+ 4 bytes is 0 \(wanted: == 1\)")):
            self.run_out(1, (r"PE 1 was waiting in shmem_\w+" + LINE + " " + words,), *shape, MISBEHAVE, 1, deed)
        self.run_out(1, (r"waiting in shmem_set_lock" + LINE + " for lock held_lock, which PE 1 holds",), *shape, MISBEHAVE,
                     -1, "hold", 1)
        if HAS_LINES and not scenario.SANITIZE:
            self.run_out(1, (r"PE 0 was running \(in compute_for_ever\(\) misbehave.c:\d+\)",), *shape, MISBEHAVE, 0,
                         "compute")

    def test_timeout_says_which_links_went_down(self):
        self.run_out(1, ("links went down: 1-2 1 time\n",), "--hosts", 3, "-n", 3, "--fault", "link 1-2 down at 100ms for 100ms",
                     MISBEHAVE, 0, "sleep", 100)

    @scenario.each(*Misbehaving.shapes[:2])
    def test_one_leaves_and_the_others_wait(self, shape):
        """exit(0) waits in shmem_finalize for PEs that wait for a flag: reported, since nothing progresses."""
        result = self.run_out(9, (r"warning: PE 1 on host\d waits in shmem_finalize, by exit\(0\).*\[Q0220\]",
                                  "for flag != 0, which is 0"), *shape, MISBEHAVE, -1, "desert", 1)
        self.assertEqual(result.err.count("Q0220"), 1)

    def test_one_computes_when_all_others_have_left(self):
        result = self.run_job("--timeout", "8s", "-n", 3, MISBEHAVE, 0, "compute-on")
        self.assertNotIn("Q0220", result.err)

    @unittest.skipIf("thread" in scenario.SANITIZE, "ThreadSanitizer gives each process a second thread, which might end a poll")
    @scenario.each("test", "signal", "g")
    def test_one_leaves_and_the_others_poll(self, how):
        """In vain: reported, and ended after half a minute."""
        shape = ("--network", "tcp", "--hosts", 3, "-n", 3) if how == "g" else ("-n", 4)
        result = self.run_job("--timeout", "100s", *shape, MISBEHAVE, -1, "poll-" + how, 2)
        self.assertEqual(result.status, 1, result)
        self.assertRegex(result.err, r"warning: PE 2 on host\d waits in shmem_finalize, .*nothing but poll.*\[Q0220\]")
        self.assertRegex(result.err, r"PE 2 on host\d left the job by .*wait or poll for what no PE will write.*\[Q0244\]")

    @scenario.each("work", "talk")
    def test_polls_that_are_at_work_or_find_something(self, how):
        """The job goes on."""
        result = self.run_job("--timeout", "40s", "-n", 3, MISBEHAVE, -1, "poll-" + how, 2)
        self.assertEqual((result.status, "Q0220" in result.err, "Q0206" in result.err), (124, False, True), result)


if __name__ == "__main__":
    scenario.main(6)
