#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Virtual machines whose bridge is emulated (ntb_device.c), under Linux's own driver of the chip and our kernel module.
The chip is AMD's; with `.intel` behind the name of a test Intel's, and an IOMMU where memory does not lie as that wants it.
With `.ivshmem` it is QEMU's ivshmem (ivshmem_link.c) under a driver of our own, for which QEMU 7.2 is new enough.

  contract  one machine with both ends of a link: the contract suite of ports over the driver in src/port/linux
  contract_dma   the same machine with two engines under Linux's own plx_dma: the suite's part about DMA;
            each end has the engine of its own switch
  iommu     as contract, with ordinary memory, which an IOMMU puts together; the others have a huge page and no IOMMU
  iommu_dma   as contract_dma, with an IOMMU, and windows that are mappings
  stress    the machine of contract: both sides at once, processes killed
  pair      two machines: the promises of kernel/uapi/quoit_ntb.h, every byte compared
  beside    one machine: clients of one port beside each other
  dma       two machines, each with the DMA engine of a PLX switch under Linux's own plx_dma, which is slow and fails now
            and then: what the module copies, every byte compared; the link lost and processes killed meanwhile
  fuzz      one machine: random calls on both ends for some seconds, by processes that are killed
  failures  the same while what the module asks of the kernel and the chip fails at random: it holds nothing afterwards
  dma_fuzz  the same with such engines, and without an IOMMU
  ring2, ring3   a ring of two or three machines with `quoit ring join`: every host reaches every other one through
            quoit0, every byte compared (ring_traffic.c)
  flap      the ring of three, while cables are pulled and put back
  job       a conformance program on the bridges of three machines, two PEs on each: oshrun --driver linux on host0, agents
            on the others over a network beside the ring
  job_lost_doorbells   the same with a program that waits for the other PEs, while every third doorbell is lost
  job_dma   the stress program likewise, all payload by engines that are late and fail now and then
  cuts      the stress program and `once` on three machines while cables are pulled at random; QUOIT_VM_SECONDS=600 for
            ten minutes of it
  killed    a machine is powered off while the stress program runs on three: the job ends and says which it was
  graph     PageRank and breadth-first search on such a ring, verified by PE 0 alone
  papers    the programs of RING-19 and RING-22 there, by the papers' protocol and barrier
  conformance, mix, times   all of them, or those of QUOIT_VM_ONLY="rma amo"; the stress program; what single operations
            cost (ring_times.c): by hand, they need longer than ctest allows without KVM
  iommu.part, stress.part, pair.part and others   the same on the first of one or three parts of each port
  parts     one machine, each port in three parts: what is sent through one arrives there alone, holders of one are killed
  shared, shared3, shared.intel   a ring of two or three machines, each port in three parts: Ethernet on the first, every
            byte of its traffic compared; meanwhile jobs on the second, started over that Ethernet, one of which is killed
  ssh       the same ring of two: OpenSSH over its Ethernet, a file there and back, and `oshrun --ring`, three jobs of which
            two find a part of the ports and the third says that there is no more
  shared_cut   the same while one cable after the other is out for a moment
  roce      two machines without a bridge, each with soft-RoCE (Linux's rdma_rxe) on its Ethernet: the stress program and
            conformance programs over libfabric's verbs and UCX's rc, through the proxies and from PE to host
  roce_killed.ofi, roce_killed.ucx   the same, whose second machine is powered off: the job ends and says which it was
  copy      one machine: what a write through a mapped window costs beside a bare copy through the same mapping
  ethernet, netdev, compare   iperf3 between two machines through our Ethernet device; through Linux's own ntb_netdev on
            the same bed; and both, with their ratio

Use: machines.py TEST BUILD_FOLDER [ARGUMENT...]; arguments go to the program. Exit 77: this machine cannot do it, and why.
The bed (QEMU, kernel, modules) is what tests/vm/bed makes in the folder QUOIT_VM_BED. QUOIT_VM_ACCEL=kvm is faster where
KVM works; without it QEMU translates. QUOIT_VM_QEMU=/usr/bin/qemu-system-x86_64 takes that QEMU instead of the bed's, for
tests of `.ivshmem`. QUOIT_VM_PROCESSORS=2 gives each machine two processors, QUOIT_VM_MEMORY=640 as many
MiB (256), QUOIT_VM_HOSTS=2 to 6 is how many a job has (3).
"""
import dataclasses, glob, hashlib, os, random, re, shutil, signal, subprocess, sys, tempfile, threading, time

from guest import ETHERNET, FAILURES, INIT, IPERF_RUNS, JOB, NETDEV, RING, ROCE, SHARED, SSH

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = {"quoit_ntb": os.path.join(HERE, "../../kernel"), "ntb_hw_ivshmem": os.path.join(HERE, "ivshmem")}  # our own
BED = os.environ.get("QUOIT_VM_BED", "/var/cache/quoit-vm")
QEMU = os.environ.get("QUOIT_VM_QEMU")
IS_CHECKED = bool(os.environ.get("QUOIT_VM_CHECKED"))
KERNEL = os.path.join(BED, "checked") if IS_CHECKED else BED  # vmlinuz, its modules, and ours built for it
MEMORY_MIB = int(os.environ.get("QUOIT_VM_MEMORY", "1024" if IS_CHECKED else "256"))
# Debian's kernel then tells in its log of memory that is used after it was freed, or written past its end.
GUARDS = "kfence.sample_interval=5 slab_debug=FZP page_poison=1"
# A processor that stands still with the whole machine is no defect; nor is it ours that an interrupt while Linux looks at
# the first processor confuses KASAN about five levels of page tables.
CHECKS = "no5lvl rcupdate.rcu_cpu_stall_timeout=300 log_buf_len=4M" if IS_CHECKED else ""
LIMIT_S = 1500 if IS_CHECKED else 420
NICE = 10
NAPS = 3000  # of port_pair.c
HOSTS = int(os.environ.get("QUOIT_VM_HOSTS", "3"))  # of jobs, 2 to 6
SECONDS = int(os.environ.get("QUOIT_VM_SECONDS", "20"))  # of cuts
DEVICE_MS = 60000  # after which QEMU gives up a device that has not answered; 5 s are too few on a busy machine
RATIO_LEAST = 5  # of our Ethernet device to Linux's own


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check_bed():
    if not os.path.exists(os.path.join(BED, "vmlinuz")):
        skip(f"there is no bed in {BED}: as root, tests/vm/bed DIR makes one (QUOIT_VM_BED=DIR names another)")
    if os.geteuid() != 0 and not os.path.exists(module_path("quoit_ntb")):
        skip("the kernel module is built in a chroot, which needs root")


# Our kernel modules, each built once for each content of its sources; quoit_ntb also so that its calls of the kernel fail

FAILING = [os.path.join(HERE, "failing.c"), os.path.join(HERE, "failing.h")]
FAILING_KBUILD = """
quoit_ntb-y += failing.o
ccflags-y += -include $(src)/failing.h
"""


def sources(module):
    for folder, _, names in sorted(os.walk(MODULES[module])):
        for name in sorted(names):
            if name.endswith((".c", ".h")) or name == "Kbuild":
                yield os.path.join(folder, name)


def module_path(module, is_failing=False):
    digest = hashlib.sha256()
    for path in [*sources(module), *(FAILING if is_failing else [])]:
        with open(path, "rb") as file:
            digest.update(file.read())
    return os.path.join(KERNEL, "built", digest.hexdigest()[:16] + ".ko")


def build_module(module, is_failing):
    path = module_path(module, is_failing)
    if os.path.exists(path):
        return path
    root = os.path.join(BED, "root")
    tree, flags = "/checked", []  # Linux built with our own configuration, which has NTB
    if not IS_CHECKED:
        with open(os.path.join(BED, "version")) as file:
            tree = f"/usr/src/linux-headers-{file.read().strip()}"
        flags = ["KCFLAGS=-DCONFIG_NTB=1"]
    work = tempfile.mkdtemp(prefix="quoit-", dir=os.path.join(root, "tmp"))
    try:
        for source in sources(module):
            target = os.path.join(work, os.path.relpath(source, MODULES[module]))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
        if is_failing:
            for source in FAILING:
                shutil.copy(source, work)
            with open(os.path.join(work, "Kbuild"), "a") as file:
                file.write(FAILING_KBUILD)
        inside = "/tmp/" + os.path.basename(work)
        if not IS_CHECKED:
            shutil.copy(os.path.join(BED, "modules/Module.symvers"), os.path.join(work, "ntb.symvers"))
            flags.append(f"KBUILD_EXTRA_SYMBOLS={inside}/ntb.symvers")
        done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$@"', root, root,
                               "make", "-C", tree, f"M={inside}", *flags, "modules"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        subprocess.run(["strip", "-g", os.path.join(work, f"{module}.ko")], check=True)
        shutil.copy(os.path.join(work, f"{module}.ko"), path)
    finally:
        shutil.rmtree(work)
    return path


# What a machine boots into: a file system in memory (cpio, newc)

class Archive:
    def __init__(self):
        self.data, self.inode, self.names = bytearray(), 1, set()

    def add(self, name, content, mode):
        parent = os.path.dirname(name)
        if parent and parent not in self.names:
            self.add(parent, b"", 0o40755)
        self.names.add(name)
        fields = [self.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        self.inode += 1
        self.data += b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        self.data += b"\0" * (-len(self.data) % 4) + content
        self.data += b"\0" * (-len(self.data) % 4)

    def add_file(self, name, path, mode=0o100755):
        with open(path, "rb") as file:
            self.add(name, file.read(), mode)

    def add_program(self, path):
        self.add_linked("bin/" + os.path.basename(path), path)

    def add_linked(self, name, path):
        """With the libraries that it is linked to."""
        self.add_file(name, path)
        for line in subprocess.run(["ldd", path], capture_output=True, text=True).stdout.splitlines():
            words = line.split()
            library = words[2] if "=>" in words else words[0]
            name = (words[0] if words[0].startswith("/") else "lib/" + words[0]).lstrip("/")
            if library.startswith("/") and name not in self.names:
                self.add_file(name, library)

    def write(self, path):
        self.add("TRAILER!!!", b"", 0)
        with open(path, "wb") as file:
            file.write(self.data)


def make_file_system(path, build, test, programs, script):
    drivers, modules = drivers_of(test.chip), test.modules
    archive = Archive()
    archive.add_file("bin/busybox", os.path.join(BED, "busybox"))
    for module in (*drivers, *modules):
        is_failing = module == "quoit_ntb" and test.is_failing
        archive.add_file(f"lib/{module}.ko",
                         build_module(module, is_failing) if module in MODULES else os.path.join(KERNEL, f"modules/{module}.ko"))
    archive.add("drivers", "\n".join([*drivers, ""]).encode(), 0o100644)
    archive.add("modules", "\n".join([*modules, ""]).encode(), 0o100644)
    for module in ("tun", "e1000"):
        if os.path.exists(os.path.join(KERNEL, f"modules/{module}.ko")):
            archive.add_file(f"lib/{module}.ko", os.path.join(KERNEL, f"modules/{module}.ko"))
    for program in programs:
        archive.add_program(program)
    if test.has_ssh:
        add_ssh(archive, os.path.dirname(path))
    if test.has_rdma:
        add_rdma(archive, build)
    archive.add("init", INIT.encode(), 0o100755)
    archive.add("run.sh", script.encode(), 0o100755)
    archive.write(path)


# OpenSSH of this machine: one key, which lets everybody in everywhere

SSH_OPTIONS = "IdentityFile /etc/ssh/key\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
SSH_SERVER = "HostKey /etc/ssh/key\nAuthorizedKeysFile /etc/ssh/key.pub\nPidFile none\nUsePAM no\nStrictModes no\nUseDNS no\n"
SSH_USERS = "root:*:0:0::/root:/bin/sh\nsshd:*:100:100::/run/sshd:/bin/false\n"


def add_ssh(archive, folder):
    key = os.path.join(folder, "key")
    subprocess.run([find_program(folder, "ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True)
    archive.add_file("etc/ssh/key", key, 0o100600)
    archive.add_file("etc/ssh/key.pub", f"{key}.pub", 0o100644)
    for name, text in (("ssh/ssh_config", SSH_OPTIONS), ("ssh/sshd_config", SSH_SERVER), ("passwd", SSH_USERS)):
        archive.add(f"etc/{name}", text.encode(), 0o100644)
    for name in ("root", "run/sshd"):
        archive.add(name, b"", 0o40700)
    archive.add_file("bin/sh", os.path.join(BED, "busybox"))
    for program in ("ssh", "sshd"):
        archive.add_program(find_program(folder, program))


# Soft-RoCE: our drivers of networks, and what their libraries open by themselves

def find_library(pattern):
    paths = glob.glob(f"/usr/lib/*/{pattern}")
    return paths or skip(f"there is no {os.path.basename(pattern)} on this machine")


def add_rdma(archive, build):
    for driver in ("ofi", "ucx"):
        path = os.path.join(build, f"lib/quoit/libquoit-net-{driver}.so")
        if not os.path.exists(path):
            skip(f"{build} has no network driver {driver}")
        archive.add_linked(f"lib/quoit/{os.path.basename(path)}", path)
    for path in find_library("libibverbs/librxe-rdmav*.so"):
        archive.add_linked(path.lstrip("/"), path)
    archive.add("etc/libibverbs.d/rxe.driver", b"driver rxe\n", 0o100644)
    for path in find_library("ucx/libuct_ib.so.0"):
        archive.add_linked(f"lib/ucx/{os.path.basename(path)}", path)


# Machines

def qemu(preload):
    """QEMU of the bed, by its own loader, so that it needs nothing of this machine; or that of QUOIT_VM_QEMU."""
    if QEMU:
        return ["env", *([f"LD_PRELOAD={preload}"] if preload else []), QEMU]
    root, library = os.path.join(BED, "root"), "usr/lib/x86_64-linux-gnu"
    return [os.path.join(root, "lib64/ld-linux-x86-64.so.2"), "--library-path", os.path.join(root, library),
            *(["--preload", preload] if preload else []), os.path.join(root, "usr/bin/qemu-system-x86_64"),
            "-L", os.path.join(root, "usr/share/qemu"), "-L", os.path.join(root, "usr/share/seabios")]


@dataclasses.dataclass
class Test:
    programs: list
    script: str
    machines: dict  # name -> (ends of links, in the order of /dev/ntbN; link l has the ends 2l and 2l + 1), options
    chip: str = "amd"        # none: no bridge, nor its drivers
    has_iommu: bool = False
    is_guarded: bool = False  # by GUARDS
    is_failing: bool = False  # the module's calls of the kernel can be made to fail (failing.h)
    window_mib: int = 1
    is_mapped: bool = False  # windows are mappings, not messages
    has_network: bool = False  # host0 reaches each other machine hN by a network of their own, 10.78.N.1 to 10.78.N.2
    engine: list = None      # each end has a DMA engine in its switch, and these options of ntb_device
    engine_bytes: int = 0    # that each engine has copied, or more
    map_late_us: int = 0     # that the IOMMU takes for each page of a window
    modules: tuple = ("quoit_ntb",)  # beside Linux's ntb and the driver of the chip
    faults: object = None    # called with the Bed in a thread of its own, once all machines run
    dead: tuple = ()         # machines that the faults kill for good
    says: str = ""           # what a line of host0 matches
    limit_s: int = LIMIT_S
    parts: int = 0           # into which each port is divided
    has_rdma: bool = False   # with what soft-RoCE needs
    memory_mib: int = MEMORY_MIB
    has_ssh: bool = False    # each machine has a server of OpenSSH, and ssh logs in without a question
    lose: int = 0            # which of the doorbells' rings are lost: each that many; 0: none
    has_seconds: bool = False  # its first argument is how many it takes
    registers_max: int = 0   # accesses of one end by its machine; 0: any number


def processors_of(machine_count):
    """Two, where each has one of this machine's to itself. Else one: a processor that waits for the other one, for a
    lock or for the answer to an interrupt, would use up the time that the other one needs."""
    return 2 if 2 * machine_count <= len(os.sched_getaffinity(0)) else 1


class Bed:
    """The devices and machines of one test."""

    def __init__(self, folder, build, test):
        self.folder, self.build, self.test = folder, build, test
        self.processors = int(os.environ.get("QUOIT_VM_PROCESSORS", processors_of(len(test.machines))))
        self.devices, self.running = [], {}
        self.is_over = threading.Event()
        with open(f"{folder}/registers", "a") as counts:
            for link in range(1 + max((end for ends, _ in test.machines.values() for end in ends), default=-1) // 2):
                self.devices.append(subprocess.Popen(self.device_of((2 * link, 2 * link + 1)), stdout=counts))
        sockets = [self.socket, *([self.engine_socket] if test.engine is not None else [])]
        while not all(os.path.exists(socket(end)) for end in range(2 * len(self.devices)) for socket in sockets):
            time.sleep(0.05)

    def device_of(self, ends):
        """The command of the device of a link."""
        test = self.test
        if test.chip == "ivshmem":
            command = [os.path.join(self.build, "bin/vm_ivshmem_link"), str(test.window_mib)]
            for end in ends:
                name = self.machine_of(end)
                command += [self.socket(end), self.memory_file(name), self.map_socket(name)]
            return command
        maps = [self.map_socket(self.machine_of(end)) for end in ends] if test.is_mapped else []
        options = ["--chip", test.chip, "--lose", str(test.lose), "--map-late", str(test.map_late_us)]
        if test.engine is not None:
            options += ["--dma", ",".join(self.engine_socket(end) for end in ends), *test.engine]
        return [os.path.join(self.build, "bin/vm_ntb_device"), *options, str(test.window_mib),
                *[self.socket(end) for end in ends], *maps]

    def socket(self, end):
        return f"{self.folder}/end{end}"

    def engine_socket(self, end):
        return f"{self.folder}/engine{end}"

    def map_socket(self, name):
        return f"{self.folder}/{name}.windows"

    def memory_file(self, name):
        return f"{self.folder}/{name}.memory"

    def machine_of(self, end):
        return next(name for name, (ends, _) in self.test.machines.items() if end in ends)

    def start(self, name):
        ends, options = self.test.machines[name]
        preload = os.path.join(self.build, "lib/vm_window_map.so") if self.test.is_mapped else None
        memory = "intel_iommu=on,sm_off" if self.test.has_iommu else "hugepages=8"
        guards = GUARDS if self.test.is_guarded else ""
        command = qemu(preload) + [
            "-M", "q35,memory-backend=mem,kernel-irqchip=split",
            "-accel", os.environ.get("QUOIT_VM_ACCEL", "tcg,thread=multi"),
            "-cpu", "max", "-smp", str(self.processors), "-m", str(self.test.memory_mib), "-nodefaults", "-nographic", "-no-reboot",
            "-object", self.memory_of(name),
            "-chardev", f"file,id=console,path={self.folder}/{name}.log,append=on", "-serial", "chardev:console",
            "-kernel", os.path.join(KERNEL, "vmlinuz"), "-initrd", f"{self.folder}/system",
            "-append", f"console=ttyS0 quiet panic=-1 no_timer_check {CHECKS} {memory} {guards} q.PARTS={self.test.parts} "
                       f"{options}"]
        if self.test.has_iommu:
            command += ["-device", "intel-iommu,intremap=on,caching-mode=on"]
        for i, end in enumerate(ends):
            command += self.bridge_of(i, end)
        for i, other in enumerate(self.networks_of(name)):
            command += ["-netdev", f"stream,id=net{i},addr.type=unix,addr.path={self.folder}/net{other},"
                                   + ("server=on" if name == "host0" else "server=off,reconnect-ms=500"),
                        "-device", f"e1000,netdev=net{i},addr={16 + i},romfile=,mac=52:54:00:00:0{name[4:]}:0{i}"]
        environment = dict(os.environ, QEMU_MODULE_DIR=os.path.join(BED, "root/usr/lib/x86_64-linux-gnu/qemu"),
                           NTB_WINDOWS=self.map_socket(name))
        with open(f"{self.folder}/{name}.qemu", "a") as log:
            self.running[name] = subprocess.Popen(["nice", "-n", str(NICE)] + command, stdout=log, stderr=log,
                                                  stdin=subprocess.DEVNULL, env=environment)

    def memory_of(self, name):
        kind = f"file,mem-path={self.memory_file(name)}" if self.test.chip == "ivshmem" else "memfd"
        return f"memory-backend-{kind},id=mem,size={self.test.memory_mib}M,share=on"

    def bridge_of(self, i, end):
        """Options of QEMU for the bridge of /dev/ntbI."""
        if self.test.chip == "ivshmem":
            return ["-chardev", f"socket,id=link{i},path={self.socket(end)}",
                    "-device", f"ivshmem-doorbell,chardev=link{i},vectors=2,addr={i + 4}"]
        options = ["-device", f"pcie-root-port,id=port{i},chassis={i + 1},slot={i + 1},addr={i + 4}"]
        sockets = [self.socket(end), *([self.engine_socket(end)] if self.test.engine is not None else [])]
        for function, socket in enumerate(sockets):
            options += ["-device", '{"driver":"vfio-user-pci","bus":"port%d","addr":"0.%d","multifunction":%s,"rombar":0,'
                                   '"x-msg-timeout":%d,"socket":{"path":"%s","type":"unix"}}'
                                   % (i, function, "true" if len(sockets) > 1 else "false", DEVICE_MS, socket)]
        return options

    def networks_of(self, name):
        if not self.test.has_network:
            return []
        others = range(1, len(self.test.machines))
        return list(others) if name == "host0" else [int(name[4:])]

    def kill(self, name):
        """Power off, at once."""
        self.running[name].kill()
        self.running[name].wait()
        if os.path.exists(self.map_socket(name)):
            os.unlink(self.map_socket(name))

    def has_lost(self):
        """A machine has ended by itself and not in order; the others would wait for it."""
        return any(machine.poll() is not None and machine.returncode >= 0 and "\nended" not in self.text(name)
                   for name, machine in list(self.running.items()))

    def set_cable(self, link, is_in):
        self.devices[link].send_signal(signal.SIGUSR2 if is_in else signal.SIGUSR1)

    def text(self, name):
        text = ""
        for path in (f"{self.folder}/{name}.log", f"{self.folder}/{name}.qemu"):
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    text += file.read()
        return text

    def wait_for(self, name, words, limit_s=LIMIT_S):
        """False: the test ended before."""
        end = time.monotonic() + limit_s
        while words not in self.text(name):
            if self.is_over.wait(0.2) or time.monotonic() > end:
                return False
        return True

    def close(self):
        self.is_over.set()
        for process in self.running.values():
            process.kill()
            process.wait()
        for device in self.devices:
            device.terminate()  # it prints how often its registers were used
            device.wait()
        self.devices = []


def run(folder, build, test):
    """Returns the consoles' texts."""
    begin = time.monotonic()
    bed = Bed(folder, build, test)
    try:
        for name in test.machines:
            bed.start(name)
        if test.faults:
            threading.Thread(target=test.faults, args=(bed,), daemon=True).start()
        while any(machine.poll() is None for machine in list(bed.running.values())):
            time.sleep(0.1)
            if time.monotonic() - begin > test.limit_s or bed.has_lost():
                print(f"a machine crashed, or not ended in {test.limit_s} s")
                break
    finally:
        bed.close()
    print(f"{len(test.machines)} machines of {bed.processors} processors, {time.monotonic() - begin:.0f} s")
    return {name: bed.text(name) for name in test.machines}


def judge_registers(folder, test):
    """What ntb_device counted, a line for each end: reads, writes, interrupts; one for each engine; and one for the link."""
    is_good = True
    with open(f"{folder}/registers") as file:
        for line in file:
            print(line, end="")
            counts = [int(word) for word in line.split(":")[1].split() if word.isdigit()]
            if line.startswith("engine"):
                if counts[1] < test.engine_bytes:
                    print(f"fewer than {test.engine_bytes} bytes by this engine")
                    is_good = False
            elif line.startswith("link"):
                if test.lose and counts[1] == 0:
                    print("no doorbell was lost")
                    is_good = False
                if counts[2] and "quoit_ntb" in test.modules:
                    print("the peer could write elsewhere while a window was cleared")
                    is_good = False
            elif test.registers_max and counts[0] + counts[1] > test.registers_max:
                print(f"more than {test.registers_max} accesses to registers")
                is_good = False
    return is_good


LOCKDEP_RUNS = re.compile(r"\s*debug_locks:\s+1$")


def is_tainted(lines):
    """By more than modules that are not the kernel's own: what the log has lost meanwhile is seen here. The checked kernel
    has no sysctl, and a log of CHECKS that is long enough."""
    found = [int(line.split()[1]) for line in lines if line.startswith("tainted ")]
    return not found and not IS_CHECKED or any(taint & ~(1 << 12 | 1 << 13) for taint in found)


def judge(texts, test):
    is_good = not test.says or bool(re.search(test.says, texts["host0"]))
    if not is_good:
        print(f"host0 has not said {test.says}")
    for name, text in texts.items():
        if name in test.dead:
            continue
        lines = [line.rstrip() for line in text.splitlines()]
        begin = next((i for i, line in enumerate(lines) if "iommu" in line), 0)
        print(f"--- {name}")
        print("\n".join(lines[begin:]))
        faults = {"the IOMMU": test.has_iommu != any(line.startswith("iommu dmar") for line in lines),
                  "the status": "status 0" not in lines,
                  "the end of the modules": "unloaded 0" not in lines,
                  "the kernel's log": any(line.startswith("kernel: ") for line in lines),
                  "the kernel's taint": is_tainted(lines),
                  "lockdep, which has stopped": IS_CHECKED and not any(LOCKDEP_RUNS.match(line) for line in lines)}
        for what in (what for what, is_wrong in faults.items() if is_wrong):
            print(f"{name} failed by {what}")
            is_good = False
    return is_good


def ring(count):
    """Machine h has its left port first: link h joins its right, end 2h, to the left of the next, end 2h + 1."""
    return {f"host{h}": ([2 * ((h - 1) % count) + 1, 2 * h], f"q.HOST={h} q.HOSTS={count}") for h in range(count)}


def flap(bed):
    """One cable at a time, out for long enough that the kernel sees it. The doctor would see it too."""
    if all(bed.wait_for(name, "doctor has looked") for name in bed.test.machines):
        for turn in range(6):
            bed.set_cable(turn % 3, False)
            print(f"link {turn % 3} cut at {time.monotonic():.1f}", flush=True)
            bed.is_over.wait(1)
            bed.set_cable(turn % 3, True)
            if bed.is_over.wait(2):
                break


def cut_beside_job(bed):
    if bed.wait_for("host0", " PEs begin"):
        for turn in range(3):
            bed.set_cable(turn % 2, False)
            bed.is_over.wait(1.5)
            bed.set_cable(turn % 2, True)
            if bed.is_over.wait(4):
                break


def pull_when_asked(bed):
    """Once, by what port_beside prints."""
    for words, is_in in (("cable out", False), ("cable in", True)):
        if bed.wait_for("both", words):
            bed.set_cable(0, is_in)


def runs_program(bed):
    """Whether the PEs of a program are through shmem_init: it says so. Before, hosts must meet within --link-timeout."""
    text = bed.text("host0").rpartition("running ")[2]
    return " PEs begin" in text and ": status " not in text


def cut_at_random(bed):
    """Mostly one cable at a time, now and then two, out for up to two seconds. While two are out no host reaches all."""
    seed = int(os.environ.get("QUOIT_VM_SEED", time.time_ns() % 1000000))
    chance, cuts = random.Random(seed), [0] * len(bed.devices)
    print(f"cuts: QUOIT_VM_SEED={seed}", flush=True)
    while not bed.is_over.wait(1):
        while runs_program(bed) and not bed.is_over.is_set():
            links = chance.sample(range(len(cuts)), 2 if chance.random() < 0.2 else 1)
            for is_in in (False, True):
                for link in links:
                    bed.set_cable(link, is_in)
                    cuts[link] += not is_in
                if bed.is_over.wait(chance.uniform(1, 4) if is_in else chance.uniform(0.2, 2)):
                    break
    print(f"cuts of each link: {cuts}", flush=True)


def power_off(bed):
    """The last machine."""
    last = [*bed.test.machines][-1]
    if bed.wait_for("host0", " PEs begin"):
        bed.is_over.wait(5)
        bed.kill(last)
        print(f"{last} is off", flush=True)


BOTH = {"both": ([0, 1], "")}
PAIR = {"a": ([0], "q.END=a"), "b": ([1], "q.END=b")}
DMA_MODULES = ("plx_dma", "quoit_ntb")
LATE = ["--dma-late", "3000"]
SLOW = [*LATE, "--dma-fail", "7"]
RING_PROGRAMS = ["quoit", "vm_ring_traffic"]
TESTS = {
    "contract": Test(["vm_port_test"], "vm_port_test $ARGS", BOTH),
    "iommu": Test(["vm_port_test"], "vm_port_test $ARGS", BOTH, has_iommu=True),
    "contract_dma": Test(["vm_port_dma_test"], "vm_port_dma_test $ARGS", BOTH, engine=LATE, engine_bytes=1,
                         modules=DMA_MODULES),
    "iommu_dma": Test(["vm_port_dma_test"], "vm_port_dma_test $ARGS", BOTH, has_iommu=True, is_mapped=True, engine=LATE,
                      engine_bytes=1, modules=DMA_MODULES),
    "stress": Test(["vm_port_stress_test"], "vm_port_stress_test $ARGS", BOTH),
    "pair": Test(["vm_port_pair"], "vm_port_pair /dev/ntb0 $END", PAIR, registers_max=2 * NAPS + 6000),
    "beside": Test(["vm_port_beside"], "vm_port_beside /dev/ntb0 /dev/ntb1 $PART", BOTH, has_iommu=True, is_guarded=True,
                   window_mib=32, map_late_us=200, faults=pull_when_asked),
    "dma": Test(["vm_port_dma"], "vm_port_dma /dev/ntb0 $END late failing", PAIR, engine=SLOW, modules=DMA_MODULES),
    "dma_fast": Test(["vm_port_dma"], "vm_port_dma /dev/ntb0 $END", PAIR, engine=[], modules=DMA_MODULES),
    "dma_fuzz": Test(["vm_port_fuzz"], "vm_port_fuzz /dev/ntb0 /dev/ntb1 $ARGS", BOTH, is_guarded=True, engine=SLOW,
                     has_seconds=True, modules=DMA_MODULES),
    "copy": Test(["vm_port_copy"], "vm_port_copy $ARGS", BOTH, window_mib=4, is_mapped=True),
    "fuzz": Test(["vm_port_fuzz"], "vm_port_fuzz /dev/ntb0 /dev/ntb1 $ARGS", BOTH, has_iommu=True, is_guarded=True,
                 has_seconds=True),
    "failures": Test(["vm_port_fuzz"], FAILURES, BOTH, has_iommu=True, is_guarded=True, is_failing=True, is_mapped=True,
                     engine=SLOW, has_seconds=True, modules=DMA_MODULES),
    "ring2": Test(RING_PROGRAMS, RING, ring(2), has_iommu=True, window_mib=4, is_mapped=True),
    "ring3": Test(RING_PROGRAMS, RING, ring(3), has_iommu=True, window_mib=4, is_mapped=True),
    "flap": Test(RING_PROGRAMS, RING, ring(3), has_iommu=True, window_mib=4, is_mapped=True, faults=flap),
    "ethernet": Test(["quoit", "iperf3"], ETHERNET, ring(2), has_iommu=True, window_mib=4, is_mapped=True),
    "netdev": Test(["iperf3"], NETDEV, {f"host{h}": ([h], f"q.HOST={h}") for h in range(2)}, has_iommu=True, window_mib=4,
                   is_mapped=True, modules=("ntb_transport", "ntb_netdev")),
}
# Its translations start at multiples of the window's size: without an IOMMU those of a whole huge page.
for name, has_iommu in {"contract": True, "pair": False, "ring2": True}.items():
    TESTS[f"{name}.intel"] = dataclasses.replace(TESTS[name], chip="intel", has_iommu=has_iommu)
for name in ("stress", "pair", "ring2", "ring3", "flap"):
    TESTS[f"{name}.ivshmem"] = dataclasses.replace(TESTS[name], chip="ivshmem", is_mapped=True, registers_max=0)
# The same on the first of some parts of each port: they are ports like any other.
for name, parts in {"iommu": 1, "iommu_dma": 1, "stress": 1, "pair": 3, "fuzz": 3, "failures": 3, "ring2": 3,
                    "flap": 3, "beside": 1}.items():
    TESTS[f"{name}.part"] = dataclasses.replace(TESTS[name], has_iommu=True, parts=parts, registers_max=0,
                                                window_mib=(2 if parts == 1 else 4) * TESTS[name].window_mib,
                                                script=f"PART=part\n{TESTS[name].script}")
TESTS["parts"] = Test(["vm_port_parts"], "vm_port_parts /dev/ntb0 /dev/ntb1", BOTH, has_iommu=True, is_guarded=True, parts=3,
                      is_mapped=True, window_mib=4)
TESTS["pair.intel.part"] = dataclasses.replace(TESTS["pair.part"], chip="intel")
CONFORMANCE = os.environ["QUOIT_VM_ONLY"].split() if "QUOIT_VM_ONLY" in os.environ else [
    "rma", "strided", "edges", "values", "amo", "signal", "order", "p2p", "memory", "coll", "reduce", "lock",
               "teams", "generic", "again", "whole"]
JOB_PROGRAMS = ["oshrun", "vm_remote_shell"]


def job(programs, options="", count=HOSTS, heap_mib=2, window_mib=16, limit_s=300, fails=0, **more):
    """A program is its name, and its arguments behind colons."""
    script = (f"PROGRAMS='{' '.join(programs)}'\nOPTIONS='--driver linux {options} --timeout {limit_s}s'\nFAILS={fails}\n"
              f"export SHMEM_SYMMETRIC_SIZE={heap_mib}M\n{JOB}")
    return Test(JOB_PROGRAMS + [program.split(":")[0] for program in programs], script, ring(count), has_iommu=True,
                window_mib=window_mib, is_mapped=True, has_network=True, limit_s=120 + limit_s * len(programs), **more)


TESTS["shared"] = Test(["quoit", "oshrun", "vm_remote_shell", "vm_ring_traffic", "mix"],
                       f"export SHMEM_SYMMETRIC_SIZE=2M\n{SHARED}", ring(2), has_iommu=True, parts=3, window_mib=32,
                       is_mapped=True)
TESTS["shared_cut"] = dataclasses.replace(TESTS["shared"], script=f"CUT=1\n{TESTS['shared'].script}", faults=cut_beside_job)
TESTS["shared.intel"] = dataclasses.replace(TESTS["shared"], chip="intel")
TESTS["shared3"] = dataclasses.replace(TESTS["shared"], machines=ring(3), limit_s=900)
TESTS["ssh"] = dataclasses.replace(TESTS["shared"], programs=["quoit", "oshrun", "mix", "conformance_query"], has_ssh=True,
                                   script=f"export SHMEM_SYMMETRIC_SIZE=2M\n{SSH}")
TESTS["job"] = job(["conformance_query"])
TESTS["job_lost_doorbells"] = job(["conformance_signal"], lose=3)
TESTS["conformance"] = job([f"conformance_{name}" for name in CONFORMANCE], heap_mib=10, window_mib=32)
TESTS["job_dma"] = job(["mix:--seconds:20:--max-bytes:65536"], "--dma-bytes 1", modules=DMA_MODULES,
                       engine=["--dma-late", "500", "--dma-fail", "7"], engine_bytes=8192)
# PageRank and breadth-first search, which verify themselves; the programs of RING-19 and RING-22 by their protocol.
TESTS["graph"] = job(["pkggraph:/tmp/edges", "graph500:--scale:8:--roots:2"])
TESTS["graph"].script = ("awk 'BEGIN { for (i = 0; i < 3000; i++) print i * 7919 % 211, i * i * 31 % 197 }' > /tmp/edges\n"
                         + TESTS["graph"].script)
TESTS["papers"] = job(["ring_put:1:3", "ring_get:2:3", "ring_barrier:3"], "--protocol scratchpad --barrier papers")
TESTS["mix"] = job(["mix"])
TESTS["times"] = job(["vm_ring_times"])
TESTS["cuts"] = job([f"mix:--seconds:{SECONDS}:--max-bytes:16384", f"once:{SECONDS}"], limit_s=300 + 10 * SECONDS,
                    faults=cut_at_random)
TESTS["killed"] = job(["mix:--seconds:300:--max-bytes:16384"], "--link-limit 20s --network-limit 20s", fails=1, faults=power_off,
                      dead=(f"host{HOSTS - 1}",), says=rf"oshrun: .*10\.78\.{HOSTS - 1}\.2")
RDMA_MODULES = os.path.join(KERNEL, "modules/rdma")  # their names
ROCE_PROGRAMS = ["mix", *(f"conformance_{name}" for name in ("rma", "amo", "signal", "coll"))]
OFI = "--network:ofi:--network-provider:verbs;ofi_rxm:--network-direct"
UCX = "--network:ucx:--network-provider:rc_verbs:--network-direct"


def roce(programs, options="", fails=0, **more):
    """Two hosts with two PEs each; programs as in job(), behind options of oshrun."""
    modules = ()
    if os.path.exists(RDMA_MODULES):
        with open(RDMA_MODULES) as file:
            modules = tuple(file.read().split())
    script = (f"PROGRAMS='{' '.join(programs)}'\nOPTIONS='--timeout 100s {options}'\nFAILS={fails}\n"
              f"export SHMEM_SYMMETRIC_SIZE=8M\n{ROCE}")
    return Test(JOB_PROGRAMS + ["quoit", "rdma", *ROCE_PROGRAMS], script,
                {f"host{h}": ([], f"q.HOST={h} q.HOSTS=2") for h in range(2)}, chip="", modules=modules, has_network=True,
                has_rdma=True, memory_mib=640, limit_s=480, **more)


def mix_for(seconds):
    return f"mix:--seconds:{seconds}:--max-bytes:65536"


TESTS["roce"] = roce([*(f"{network}:{direct}:{mix_for(4)}" for network in (OFI, UCX) for direct in ("no", "yes")),
                      *(f"{network}:yes:{name}" for network in (OFI, UCX) for name in ROCE_PROGRAMS[1:])])
for name, network in {"ofi": OFI, "ucx": UCX}.items():
    TESTS[f"roce_killed.{name}"] = roce([f"{network}:yes:{mix_for(300)}"], "--network-limit 10s", fails=1, faults=power_off,
                                        dead=("host1",), says=r"oshrun: .*10\.78\.1\.2")
DEFAULTS = {"fuzz": ["60"], "dma_fuzz": ["30"], "failures": ["20"], "ring2": ["4096"], "ring3": ["4096"], "flap": ["2048"], "mix": ["--seconds", "15", "--max-bytes", "16384"]}


def find_program(build, name):
    paths = [os.path.join(build, "bin", name), os.path.join(build, "bin/examples", name)]
    return next(filter(os.path.exists, paths), None) or shutil.which(name) or skip(f"there is no {name} on this machine")


def drivers_of(chip):
    return ["ntb", f"ntb_hw_{chip}"] if chip else []


def check_modules(test):
    needed = [module for module in (*drivers_of(test.chip), *test.modules) if module not in MODULES]
    needed += ["tun"] if "quoit" in test.programs else ["e1000"] if test.has_network else []
    needed += ["rdma_rxe"] if test.has_rdma else []
    for module in needed:
        if not os.path.exists(os.path.join(KERNEL, f"modules/{module}.ko")):
            skip(f"the bed in {BED} has no {module}.ko: make it again with tests/vm/bed")


def run_test(name, build, arguments):
    """Whether it passed, and what the machines wrote."""
    test = TESTS[name]
    if test.has_seconds and arguments:
        test = dataclasses.replace(test, limit_s=test.limit_s + int(arguments[0]))
    check_modules(test)
    # The memory of a machine of ivshmem is a file, which is not to be written to a disk.
    folder = tempfile.mkdtemp(prefix="quoit-vm-", dir="/dev/shm" if test.chip == "ivshmem" else None)
    try:
        script = f"export ARGS='{' '.join(arguments or DEFAULTS.get(name.split('.')[0], []))}'\n{test.script}\n"
        programs = [find_program(build, program) for program in test.programs]
        make_file_system(f"{folder}/system", build, test, programs, script)
        texts = run(folder, build, test)
        is_good = judge(texts, test)
        return judge_registers(folder, test) and is_good, texts
    finally:
        shutil.rmtree(folder)


def compare(build):
    """Rates of both Ethernet devices, each the median of its runs."""
    rates = {}
    for name in ("netdev", "ethernet"):
        is_good, texts = run_test(name, build, [])
        found = sorted(float(rate) for rate in re.findall(r"^rate ([0-9.]+) Mbit/s", texts["host0"], re.MULTILINE))
        if not is_good or len(found) != IPERF_RUNS:
            print(f"{name}: no comparison; {len(found)} of {IPERF_RUNS} runs of iperf3 ended: {found} Mbit/s")
            return False
        rates[name] = found
    medians = {name: found[IPERF_RUNS // 2] for name, found in rates.items()}
    ratio = medians["ethernet"] / medians["netdev"]
    for name, found in rates.items():
        print(f"{name}: {' '.join(f'{rate:.1f}' for rate in found)} Mbit/s")
    print(f"our Ethernet device {medians['ethernet']:.1f} Mbit/s, ntb_netdev {medians['netdev']:.1f} Mbit/s, by the medians: "
          f"{ratio:.1f} x, at least {RATIO_LEAST}")
    return ratio >= RATIO_LEAST


def main():
    name, build, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
    check_bed()
    is_good = compare(build) if name == "compare" else run_test(name, build, arguments)[0]
    print(f"{name}: {'passed' if is_good else 'failed'}")
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
