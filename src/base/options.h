/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - every setting of Quoit in one table, from which the parser, the help, `oshrun --options`, the man page,
 * the shell completion and SHMEM_INFO are made.
 *
 * An option has a name on oshrun's command line (`--name`), an environment variable, or both. The command line
 * overrides the environment, and the environment overrides the default. A variable SHMEM_X may also be set as SMA_X,
 * its name before OpenSHMEM 1.4; SHMEM_X takes precedence. A variable that begins with SHMEM_, SMA_ or QUOIT_ and is
 * not in the table is a misspelling: quoit_options_unknown() reports it with the closest known name.
 *
 * Types: UINT 0..2^32-1. BYTES a number, decimals and exponents (1e6) allowed, with suffix K, M, G or T (powers of
 * 1024; KiB and KB are K), rounded up. SHMEM_BYTES as BYTES, but text after the suffix is ignored, as the
 * specification says of SHMEM_SYMMETRIC_SIZE. DURATION a number, decimals allowed, with suffix ns, us, ms, s, min or h;
 * without a suffix it is in seconds. FROM_BYTES as BYTES, or the word auto (0) or never (2^64-1). STRING. BOOL 0 1 no
 * yes off on false true. ANY is on when the variable is set, whatever its value. FLAG is an option without a value.
 *
 * Threads: one thread sets the values at start; afterwards they are read-only.
 * Errors: a wrong value is described to the user in one line; the option keeps its previous value.
 */
#ifndef QUOIT_BASE_OPTIONS_H
#define QUOIT_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

enum quoit_option_type {
    QUOIT_OPTION_UINT,
    QUOIT_OPTION_BYTES,
    QUOIT_OPTION_SHMEM_BYTES,
    QUOIT_OPTION_FROM_BYTES,
    QUOIT_OPTION_DURATION,
    QUOIT_OPTION_STRING,
    QUOIT_OPTION_BOOL,
    QUOIT_OPTION_ANY,
    QUOIT_OPTION_FLAG,
};

/* X(section, title) */
#define QUOIT_OPTION_SECTIONS(X)                                                                                       \
    X(LAUNCH, "Launch")                                                                                                \
    X(OUTPUT, "Output and ending")                                                                                     \
    X(MEMORY, "Memory")                                                                                                \
    X(RING, "Ring of hosts")                                                                                           \
    X(NETWORK, "Networks")                                                                                             \
    X(EMULATED, "Emulated links")                                                                                      \
    X(EXPLAIN, "Explaining")

/* X(reader, what it is): where an option goes. */
#define QUOIT_OPTION_READERS(X)                                                                                        \
    X(LAUNCHER, "oshrun")                                                                                              \
    X(JOB, "every process of the job")                                                                                 \
    X(LINKS, "the driver of the emulated links")                                                                       \
    X(PES, "the PEs, one value for all")                                                                               \
    X(PE, "each PE; -x may set it for one program")

/* X(id, name or NULL, variable or NULL, type, default, placeholder, smallest, largest, section, reader, sentence,
 *   paragraph)
 * Limits are in the value's unit (bytes, ns); largest 0: unlimited. The manual prints the paragraph after the sentence.
 */
#define QUOIT_OPTIONS_TABLE(X)                                                                                         \
    X(PES, "n", NULL, UINT, "", "N", 1, 65536, LAUNCH, LAUNCHER, "number of PEs of this program (also -np)",           \
      "Default: one, or one per host with --hosts. More PEs than cores are allowed.")                                  \
    X(HOSTS, "hosts", "QUOIT_HOSTS", UINT, "1", "H", 1, 1024, LAUNCH, LAUNCHER,                                        \
      "number of hosts, emulated on this machine and joined into a ring",                                              \
      "PEs are placed on the hosts in blocks. Each host has memory of its own and a proxy process; all traffic "       \
      "between hosts goes through the links. With 1 there is no ring and no proxy.")                                   \
    X(HOST, "host", "QUOIT_HOST", STRING, "", "NAME[:N],...", 0, 0, LAUNCH, LAUNCHER,                                  \
      "machines to run on, with the PEs that each takes (also -H)",                                                    \
      "An agent is started on each of them by --rsh, and a network joins them (--network). PEs fill the machines in "  \
      "this order, and once more where -n is larger than all numbers; without a number they are spread evenly. "       \
      "Program and Quoit have the same path on all of them.")                                                          \
    X(HOSTFILE, "hostfile", "QUOIT_HOSTFILE", STRING, "", "FILE", 0, 0, LAUNCH, LAUNCHER,                              \
      "the same from a file, with a line \"name slots=N\" or \"name:N\" for each (also -machinefile)",                 \
      "# begins a comment. Machines of --host come before these.")                                                     \
    X(RSH, "rsh", "QUOIT_RSH", STRING, "", "COMMAND", 0, 0, NETWORK, LAUNCHER,                                         \
      "how to start a command on a machine: COMMAND name command...",                                                  \
      "A shell parses COMMAND. Default: ssh -x -o BatchMode=yes; for localhost and the name of this machine none. In " \
      "an allocation of Slurm srun --overlap, of OAR oarsh, of Grid Engine qrsh -inherit. "                            \
      "Input and output of the agent go through it, and nothing of the job listens for it.")                           \
    X(FAN_OUT, "fan-out", "QUOIT_FAN_OUT", UINT, "16", "N", 1, 1024, NETWORK, LAUNCHER,                                \
      "on how many machines oshrun, and each agent, starts agents",                                                    \
      "With more machines the agents start further ones, so --rsh must work between all machines; with a number as "   \
      "large as that of the machines oshrun starts all agents. It starts all by srun and qrsh.")                       \
    X(BRIDGES, "bridges", "QUOIT_BRIDGES", STRING, "/dev/ntb0,/dev/ntb1", "LEFT,RIGHT", 0, 0, NETWORK, LAUNCHER,       \
      "with --host and --driver linux: the two ports of each machine",                                                 \
      "The machines are a ring of bridges then, in the order of --host, without a network: the right port of each is " \
      "joined to the left one of the next. The job needs the ports for itself; beside quoit ring join it takes parts " \
      "of them, such as /dev/ntb0.1,/dev/ntb1.1, and --ring finds them.")                                              \
    X(RING, "ring", "QUOIT_RING", STRING, "", "[USER:]NAME", 0, 0, LAUNCH, LAUNCHER,                                   \
      "run on the hosts and links of a ring that stays, made by quoit ring up or join",                                \
      "The job has a share of each link beside other jobs and the Ethernet device: memory and windows of its own, "    \
      "and an equal part of the rate. The ring says how many hosts there are and what the links are like. On a ring "  \
      "of bridges it takes a free part of the ports, and --rsh starts it on the machines over their Ethernet.")        \
    X(ON, "on", "QUOIT_ON", STRING, "", "HOST[,HOST]...", 0, 0, LAUNCH, LAUNCHER,                                      \
      "place PEs on these hosts of the ring only, such as 1,3",                                                        \
      "PEs are placed in blocks, in the order of the ring. The other hosts have no PEs; they relay.")                  \
    X(EXPORT, "x", NULL, STRING, "", "VAR[=value]", 0, 0, LAUNCH, LAUNCHER,                                            \
      "set a variable in the environment of the PEs",                                                                  \
      "May be given many times. Without a value the variable must be set already.")                                    \
    X(WDIR, "wdir", NULL, STRING, "", "DIR", 0, 0, LAUNCH, LAUNCHER, "working directory of the PEs",                   \
      "A program named by a relative path is looked for there.")                                                       \
    X(BIND_TO, "bind-to", "QUOIT_BIND_TO", STRING, "none", "core|none", 0, 0, LAUNCH, LAUNCHER,                        \
      "bind each PE to one core, or to none",                                                                          \
      "PE i gets core i of those that oshrun may use, starting over when there are more PEs than cores.")              \
    X(DEBUGGER, "debugger", "QUOIT_DEBUGGER", STRING, "", "[PES:]COMMAND", 0, 0, LAUNCH, LAUNCHER,                     \
      "run PE 0, or those of a list, under a debugger: \"gdb --args\", \"0,2,5-7:...\"",                               \
      "A shell parses the command; program and arguments are appended, and QUOIT_PE is the number of the PE. PES is "  \
      "all, or numbers and ranges. The other PEs run as usual, and wait where they need these. One PE alone has the "  \
      "terminal; of several each must open one, as in \"all:xterm -e gdb --args\", or need none, as in "               \
      "\"all:gdbserver "                                                                                               \
      "localhost:$((2000 + QUOIT_PE)) --\". With --host none has the terminal. Without a debugger PE 0 gets the "      \
      "terminal when it first touches it.")                                                                            \
    X(LAUNCHER, NULL, "QUOIT_LAUNCHER", STRING, "auto", "auto|none|pmi|pmi2|pmix", 0, 0, LAUNCH, PE,                   \
      "launcher other than oshrun that a program asks for its place in the job",                                       \
      "auto: PMI if PMI_FD or PMI_PORT is there, otherwise PMIx if PMIX_NAMESPACE is. none: every process is a job "   \
      "of one PE. pmi2 is version 2 of PMI. Of no effect under oshrun.")                                               \
    X(DRY_RUN, "dry-run", NULL, FLAG, "", "", 0, 0, LAUNCH, LAUNCHER, "print what would run, and start nothing",       \
      "One line per PE: its number, host, core, and command.")                                                         \
    X(TAG, "tag", "QUOIT_TAG", BOOL, "0", "", 0, 0, OUTPUT, LAUNCHER,                                                  \
      "prefix each line of output with its PE and host",                                                               \
      "In colour on a terminal unless NO_COLOR is set. Lines are never mixed, with or without it.")                    \
    X(OUTPUT, "output", "QUOIT_OUTPUT", STRING, "", "DIR", 0, 0, OUTPUT, LAUNCHER,                                     \
      "write the output of PE i to DIR/pe<i>.out",                                                                     \
      "Standard output and error of a PE go to one file in the order in which they were written. The directory is "    \
      "created if it does not exist.")                                                                                 \
    X(STATS, "stats", "QUOIT_STATS", BOOL, "0", "", 0, 0, OUTPUT, LAUNCHER,                                            \
      "print what each link carried, after the job",                                                                   \
      "Bytes, messages, relays, doorbells, resends and outages of each link and direction, and how often the service " \
      "threads of its sending host slept, as a table and a picture of the ring, on standard error. With --protocol "   \
      "scratchpad also the time of each step of a put. With --network what each host sent and fetched instead: puts "  \
      "and gets from memory to memory, messages, which carry the rest, and hosts that it lost.")                       \
    X(STATS_JSON, "stats-json", "QUOIT_STATS_JSON", STRING, "", "FILE", 0, 0, OUTPUT, LAUNCHER,                        \
      "write what each link carried to FILE as JSON, after the job", "The same numbers as --stats.")                   \
    X(TIMEOUT, "timeout", "QUOIT_TIMEOUT", DURATION, "0", "TIME", 0, 0, OUTPUT, LAUNCHER,                              \
      "end the job after TIME with status 124 and report where each PE waits",                                         \
      "Such as 60s, 500ms or 2min. 0: no limit.")                                                                      \
    X(SYMMETRIC_SIZE, "symmetric-size", "SHMEM_SYMMETRIC_SIZE", SHMEM_BYTES, "0", "SIZE", 0, 1ull << 46, MEMORY, JOB,  \
      "limit of the symmetric heap of each PE",                                                                        \
      "Such as 512M or 1.5G. Memory is allocated as it is used. 0 is three quarters of the machine's memory, shared "  \
      "by the PEs. The old names SMA_SYMMETRIC_SIZE, SMA_INFO, SMA_VERSION and SMA_DEBUG are accepted, too.")          \
    X(CORE, "core", "QUOIT_CORE", STRING, "heap", "heap|none", 0, 0, MEMORY, PE,                                       \
      "symmetric memory in core files of PEs, beside the program's variables",                                         \
      "heap: the used part of the PE's own heap. none: none of it. A core file never has memory of other PEs or of "   \
      "the library.")                                                                                                  \
    X(PATH, "path", "QUOIT_PATH", STRING, "auto", "auto|memcpy|movsb|stream|cma|network", 0, 0, MEMORY, PE,            \
      "method of copying between PEs of one host",                                                                     \
      "auto: by size and kind of buffer, as measured by quoit tune on this machine, or as built in; quoit info paths " \
      "prints it. The others force one method: the C library's memcpy, rep movsb, non-temporal stores, "               \
      "process_vm_readv and process_vm_writev, which the kernel must allow, or the loopback of the network that "      \
      "--network names (auto where it names none), through the proxy. Single elements of a strided transfer, "         \
      "atomics and collectives always use the mapping.")                                                               \
    X(LANES, "lanes", "QUOIT_LANES", UINT, "2", "N", 1, 8, RING, JOB, "lanes of each link: 1, 2, 4 or 8",              \
      "A lane is a queue pair with a service thread of its own on each host.")                                         \
    X(SLOTS, "slots", "QUOIT_SLOTS", UINT, "16", "N", 2, 4096, RING, JOB, "slots of each queue of a lane",             \
      "A slot holds one message or one chunk of a large one. Two are enough for correctness.")                         \
    X(CHUNK, "chunk", "QUOIT_CHUNK", BYTES, "32K", "SIZE", 64, QUOIT_OPTION_CHUNK_BYTES_MAX, RING, JOB,                \
      "payload of a slot, a multiple of 64 bytes", "Large transfers travel in chunks of this size.")                   \
    X(DMA_BYTES, "dma-bytes", "QUOIT_DMA_BYTES", FROM_BYTES, "auto", "auto|never|SIZE", 0, 0, RING, JOB,               \
      "payload of this size and more goes by DMA, the rest by programmed copy",                                        \
      "auto: each host times both on its links at start; --stats prints the result. A part of a transfer is "          \
      "never larger than a chunk.")                                                                                    \
    X(PROTOCOL, "protocol", "QUOIT_PROTOCOL", STRING, "queue", "queue|scratchpad", 0, 0, RING, JOB,                    \
      "protocol between hosts: queues of slots, or that of the papers",                                                \
      "scratchpad: metadata in the scratchpads of a link, an interrupt bit for every transfer (one a lane), "          \
      "store-and-forward through bypass buffers, an acknowledgement around the ring. --lanes is the number of "        \
      "service "                                                                                                       \
      "threads, --slots has no meaning, and a link that goes down ends the job.")                                      \
    X(PAYLOAD, "payload", "QUOIT_PAYLOAD", STRING, "dma", "dma|copy", 0, 0, RING, JOB,                                 \
      "payload with --protocol scratchpad: by the DMA engine or by programmed copy",                                   \
      "Below 1 KiB it is always copied.")                                                                              \
    X(BARRIER, "barrier", "QUOIT_BARRIER", STRING, "auto", "auto|papers", 0, 0, RING, JOB,                             \
      "barrier of all PEs between hosts: the algorithm that suits the ring, or the papers' doorbells",                 \
      "papers: a start signal goes once around the ring, and an end signal follows it. A link that goes down ends "    \
      "the "                                                                                                           \
      "job.")                                                                                                          \
    X(DIRECT_PUTS, "direct-puts", "QUOIT_DIRECT_PUTS", STRING, "exact", "exact|always", 0, 0, RING, JOB,               \
      "puts that PEs write through a link themselves: only where each arrives exactly once, or always",                \
      "exact: where a link can be lost between the bytes of a small put and their mark, all puts go through the "      \
      "proxy. always: there such a put is written twice, which shows if its destination was overwritten meanwhile.")   \
    X(LINK_TIMEOUT, "link-timeout", "QUOIT_LINK_TIMEOUT", DURATION, "10s", "TIME", 1, 0, RING, JOB,                    \
      "how long a host waits at start for its neighbours", "")                                                         \
    X(LINK_LIMIT, "link-limit", "QUOIT_LINK_LIMIT", DURATION, "2s", "TIME", 1, 0, RING, JOB,                           \
      "how long two links may be down at once before the job is ended",                                                \
      "While one link is down traffic travels in the other direction and nothing is lost. Two links down partition "   \
      "the ring.")                                                                                                     \
    X(WINDOW_MEMORY, "window-memory", "QUOIT_WINDOW_MEMORY", BYTES, "64G", "SIZE", 4096, 1ull << 46, EMULATED, LINKS,  \
      "window of each link into the neighbour's symmetric memory, a power of two",                                     \
      "What does not fit the window goes through the proxy of the neighbour.")                                         \
    X(DRIVER, "driver", "QUOIT_DRIVER", STRING, "emulated", "NAME", 0, 0, RING, LAUNCHER,                              \
      "driver of the ports that join the hosts", "")                                                                   \
    X(NETWORK, "network", "QUOIT_NETWORK", STRING, "ring", "ring|auto|tcp|ofi|ucx", 0, 0, NETWORK, LAUNCHER,           \
      "what joins the hosts: the links of a ring, or an ordinary network by a driver",                                 \
      "auto: the first driver that finds a network, tcp where there is TCP alone; quoit info "                         \
      "networks prints it, and why. tcp: the kernel's sockets, no library. ofi: libfabric. ucx: UCX. Without "         \
      "--host the hosts are emulated all the same; with it, auto is the default.")                                     \
    X(NETWORK_LIMIT, "network-limit", "QUOIT_NETWORK_LIMIT", DURATION, "60s", "TIME", 1, 0, NETWORK, JOB,              \
      "how long a host that a network joins may give no sign before the job is ended",                                 \
      "A host whose process or connection has ended ends the job at once. One that is silent is named after 2 s and "  \
      "waited for: for TIME where nothing shows that its machine is there, else, where its machine acknowledges what " \
      "it is sent (tcp), as long as it takes. With --host the same holds for the agents; one whose machine the "       \
      "network reaches is waited for five times as long.")                                                             \
    X(RINGS, "rings", "QUOIT_RINGS", STRING, "", "COUNT|SIZES", 0, 0, NETWORK, LAUNCHER,                               \
      "several rings joined by a network: how many, or how many hosts each has, as in 3+2",                            \
      "Links join consecutive hosts, in as many rings of about one size as said, or in rings of the sizes said; all "  \
      "other pairs of hosts reach each other by the network, of which --network names the driver.")                    \
    X(NETWORK_PROVIDER, "network-provider", "QUOIT_NETWORK_PROVIDER", STRING, "", "NAME", 0, 0, NETWORK, LAUNCHER,     \
      "provider of the network's driver, as its library calls it: \"tcp;ofi_rxm\", \"rc_verbs\"",                      \
      "Default: the fastest that is there.")                                                                           \
    X(NETWORK_DEVICE, "network-device", "QUOIT_NETWORK_DEVICE", STRING, "", "NAME|SUBNET,...", 0, 0, NETWORK,          \
      LAUNCHER, "devices of the network, by name, address or subnet, ^ excludes: eth0,mlx5_0; 10.1.0.0/16; ^docker0",  \
      "All hosts take the best subnet common to all: fabrics before Ethernet, then by speed, what ssh used, IPv4; "    \
      "addresses that several hosts have are left out. This names the candidates. Default: all; the loopback device "  \
      "while all hosts are emulated on one machine. quoit info networks prints them.")                                 \
    X(NETWORK_PORTS, "network-ports", "QUOIT_NETWORK_PORTS", STRING, "", "LOW-HIGH", 0, 0, NETWORK, LAUNCHER,          \
      "ports of TCP at which processes of the job listen, as a firewall allows them: 50000-50100",                     \
      "Of a host its proxy takes one, and each of its PEs that sends messages by itself another. Default: any.")       \
    X(NETWORK_DIRECT, "network-direct", "QUOIT_NETWORK_DIRECT", STRING, "auto", "auto|yes|no", 0, 0, NETWORK, PES,     \
      "whether PEs begin small operations over a network by themselves, not through the proxy",                        \
      "auto: once a PE has done enough of them to gain by an end of its own. yes: from the first one on. Neither in "  \
      "jobs of more than 256 PEs, but for puts and gets by RDMA. Over TCP messages of collectives too.")               \
    X(SCHEDULES, "schedules", "QUOIT_SCHEDULES", STRING, "auto", "auto|rule|COLLECTIVE:SCHEDULE,...", 0, 0, NETWORK,   \
      LAUNCHER, "schedules of collectives between the hosts of a network",                                             \
      "auto: by size, as measured by quoit tune --hosts on these hosts, else by the built-in rules; quoit info "       \
      "schedules prints it. rule: the built-in rules. broadcast:tree or :around, reduce:halving, :around or :at-once " \
      "as far as there is room, exchange:dissemination or :around (also of barriers and collect) force one for all "   \
      "sizes.")                                                                                                        \
    X(WRITES, "writes", "QUOIT_WRITES", STRING, "posted", "posted|arrived", 0, 0, EMULATED, LINKS,                     \
      "whether a write through a window may return before it has arrived",                                             \
      "posted: as on hardware; a link that goes down loses what is in flight, even if the write has returned. "        \
      "arrived: a write returns when it has arrived.")                                                                 \
    X(LINK_RATE, "link-rate", "QUOIT_LINK_RATE", BYTES, "0", "SIZE", 0, 0, EMULATED, LINKS,                            \
      "bytes per second that one direction of a link carries; 0: as fast as this machine allows", "")                  \
    X(WEIGHT, "weight", "QUOIT_WEIGHT", UINT, "100", "N", 1, 100, EMULATED, LAUNCHER,                                  \
      "with --ring: weight of the job where jobs divide the rate of a link",                                           \
      "A job of weight 50 gets half of what one of 100 gets while both send; alone it gets all. Without a rate "       \
      "(quoit ring up --link-rate) the processors divide, not the links.")                                             \
    X(WRITE_LATENCY, "write-latency", "QUOIT_WRITE_LATENCY", DURATION, "0", "TIME", 0, 1000000000, EMULATED, LINKS,    \
      "time added to each write through a window", "")                                                                 \
    X(READ_LATENCY, "read-latency", "QUOIT_READ_LATENCY", DURATION, "0", "TIME", 0, 1000000000, EMULATED, LINKS,       \
      "time added to each read through a window", "")                                                                  \
    X(DOORBELL_LATENCY, "doorbell-latency", "QUOIT_DOORBELL_LATENCY", DURATION, "0", "TIME", 0, 1000000000, EMULATED,  \
      LINKS, "time from ringing a doorbell to its bit being set", "")                                                  \
    X(DMA_FAILURES, "dma-failures", "QUOIT_DMA_FAILURES", UINT, "0", "N", 0, 1000, EMULATED, LINKS,                    \
      "DMA descriptors that fail, of 1000",                                                                            \
      "At random, after a part of the data was written. The data is sent again.")                                      \
    X(CHECK, "check", "QUOIT_CHECK", BOOL, "0", "", 0, 0, EXPLAIN, PES, "find misuse of OpenSHMEM, at some cost",      \
      "Ranges past one block or variable, blocks used after they were freed, collectives called with different "       \
      "arguments, calls from threads that may not call, and leaks. The program need not be recompiled.")               \
    X(TRACE, "trace", "QUOIT_TRACE", STRING, "", "FILE", 0, 0, EXPLAIN, LAUNCHER,                                      \
      "record calls, service threads and links in FILE, for ui.perfetto.dev",                                          \
      "Arrows lead from each request through each hop to where it is executed, and back with the response. Every "     \
      "call takes the slow path then. See docs/trace.md.")                                                             \
    X(TRACE_BUFFER, "trace-buffer", "QUOIT_TRACE_BUFFER", BYTES, "4M", "SIZE", 8192, 512ull << 20, EXPLAIN, JOB,       \
      "memory for events of each PE and service thread that are not written yet",                                      \
      "Events that do not fit are dropped and counted. Rounded down to a power of two.")                               \
    X(PROFILE, "profile", "QUOIT_PROFILE", STRING, "", "FILE", 0, 0, EXPLAIN, LAUNCHER,                                \
      "say where the time went, and write it to FILE: JSON, or a page if it ends in .html",                            \
      "Calls, bytes, time and waiting of each routine, line and PE, bytes from PE to PE, who came late to "            \
      "collectives, links and memory. Lines need debug information (-g). Frequent calls are counted each and timed "   \
      "now and then. See docs/profile.md.")                                                                            \
    X(VIRTUAL, "virtual", "QUOIT_VIRTUAL", STRING, "", "MODEL", 0, 0, EMULATED, LAUNCHER,                              \
      "run in the virtual time of a model's machine: quoit model list",                                                \
      "One PE or thread of a proxy runs at a time, in the order of virtual time, which goes on by what the model "     \
      "charges for puts, gets, "                                                                                       \
      "atomics and waits; what a program computes takes none. So a run repeats to the byte, whatever this machine "    \
      "and its load are, and a deadlock is known at once. The time is printed after the job; --timeout is a limit of " \
      "virtual time. One host, or a ring (--hosts); one thread of each PE that waits. See docs/virtual.md.")           \
    X(COMPUTE, "compute", "QUOIT_COMPUTE", STRING, "zero", "zero|measured", 0, 0, EMULATED, LAUNCHER,                  \
      "with --virtual: what a program computes between its calls takes no time, or what it takes here",                \
      "measured: the processor time of each PE on this machine, so runs differ as that does.")                         \
    X(SET, "set", NULL, STRING, "", "NAME=VALUE,...", 0, 0, EMULATED, LAUNCHER,                                        \
      "change constants of the model of --virtual, as memory_rate=2x or line_latency=80ns",                            \
      "A number with x is a factor.")                                                                                  \
    X(FAULT, "fault", NULL, STRING, "", "WHAT", 0, 0, EMULATED, LAUNCHER,                                              \
      "make links or a host fail: \"link 2-3 down at 1s for 500ms\", \"host 2 dies at 1s\", or at random",             \
      "May be given many times. The forms: \"link A-B down at TIME for TIME\"; \"link A-B down at TIME\", for good; "  \
      "\"host H dies at TIME\"; \"links random every TIME for TIME\", one link at a time until the job ends; and the " \
      "same with \"seed N\" behind it, 1 without. Times count from when every PE is through shmem_init. Each change "  \
      "is reported on standard error; after the first hundred, ten a second are, with the number of the others.")      \
    X(DEBUG, "debug", "QUOIT_DEBUG", STRING, "warn", "LEVEL", 0, 0, EXPLAIN, PE,                                       \
      "log level of the library: error, warn, info or debug", "On standard error.")                                    \
    X(SHMEM_DEBUG, NULL, "SHMEM_DEBUG", ANY, "", "", 0, 0, EXPLAIN, PE, "if set, as QUOIT_DEBUG=debug", "")            \
    X(SHMEM_VERSION, NULL, "SHMEM_VERSION", ANY, "", "", 0, 0, EXPLAIN, PE,                                            \
      "if set, PE 0 prints the version at start", "")                                                                  \
    X(SHMEM_INFO, NULL, "SHMEM_INFO", ANY, "", "", 0, 0, EXPLAIN, PE,                                                  \
      "if set, PE 0 prints the output of quoit info at start", "")                                                     \
    X(OPTIONS, "options", NULL, FLAG, "", "", 0, 0, EXPLAIN, LAUNCHER,                                                 \
      "print every option with its variable and value now", "")                                                        \
    X(HELP, "help", NULL, FLAG, "", "", 0, 0, EXPLAIN, LAUNCHER, "print this (also -h)", "")                           \
    X(VERSION, "version", NULL, FLAG, "", "", 0, 0, EXPLAIN, LAUNCHER, "print the version (also -V)", "")              \
    X(MAN_OPTIONS, "man-options", NULL, FLAG, "", "", 0, 0, EXPLAIN, LAUNCHER,                                         \
      "print the options as a part of a man page", "")

#define QUOIT_OPTION_CHUNK_BYTES_MAX (1u << 20)

enum quoit_option_id {
#define X(id, ...) QUOIT_OPT_##id,
    QUOIT_OPTIONS_TABLE(X)
#undef X
        QUOIT_OPT_COUNT
};

/* LAUNCHER: stays in oshrun. JOB: travels in the job config, or in the response to HELLO. LINKS: in the knobs of the
 * ports. PES, PE: travel in the environment of the PEs, which read them; programs of one job may differ in those of PE.
 */
enum quoit_option_reader {
#define X(reader, words) QUOIT_READER_##reader,
    QUOIT_OPTION_READERS(X)
#undef X
        QUOIT_READER_COUNT
};

enum quoit_option_section {
#define X(section, title) QUOIT_SECTION_##section,
    QUOIT_OPTION_SECTIONS(X)
#undef X
        QUOIT_SECTION_COUNT
};

struct quoit_option {
    const char *name;     /* on the command line, without dashes; NULL: environment only */
    const char *variable; /* NULL: command line only */
    enum quoit_option_type type;
    const char *fallback; /* the default, as text */
    const char *placeholder;
    uint64_t smallest;
    uint64_t largest; /* 0: unlimited */
    enum quoit_option_section section;
    enum quoit_option_reader reader;
    const char *sentence;
    const char *paragraph;
};

extern const struct quoit_option quoit_options_table[QUOIT_OPT_COUNT];
extern const char *const quoit_option_sections[QUOIT_SECTION_COUNT];
extern const char *const quoit_option_readers[QUOIT_READER_COUNT];

enum quoit_option_source { QUOIT_FROM_DEFAULT, QUOIT_FROM_ENVIRONMENT, QUOIT_FROM_COMMAND_LINE };

struct quoit_option_value {
    uint64_t number;  /* UINT, BYTES, DURATION in ns, BOOL, ANY, FLAG */
    const char *text; /* as given; owned by the caller, the environment or the table */
    enum quoit_option_source source;
};

struct quoit_options {
    struct quoit_option_value values[QUOIT_OPT_COUNT];
};

#define QUOIT_OPTION_PROBLEM_BYTES 256

void quoit_options_default(struct quoit_options *options);
/* Reads the variables of `environment` (as environ(7)). Returns false at the first wrong value, described in
 * problem_out. */
bool quoit_options_from_environment(struct quoit_options *options, char *const *environment,
                                    char problem_out[QUOIT_OPTION_PROBLEM_BYTES]);
/* Sets one option from text; messages call it `shown_as` ("--lanes", "QUOIT_LANES"). */
bool quoit_options_set(struct quoit_options *options, enum quoit_option_id id, const char *text,
                       enum quoit_option_source source, const char *shown_as,
                       char problem_out[QUOIT_OPTION_PROBLEM_BYTES]);

/* Calls found(arg, text) for each variable with one of our prefixes that is not in the table; `text` is a whole
 * sentence. Also for those by which other libraries limit the heap, where ours is not set. */
void quoit_options_unknown(char *const *environment, void (*found)(void *arg, const char *text), void *arg);

/* The option called `name` on the command line. If there is none: QUOIT_OPT_COUNT, and *nearest_out (may be NULL) is
 * the closest name, or NULL if none is close. */
enum quoit_option_id quoit_option_find(const char *name, const char **nearest_out);

/* Formats the value for people (32K, 10s). */
void quoit_option_format(const struct quoit_options *options, enum quoit_option_id id, char *text_out,
                         size_t text_bytes);

/* The log level of DEBUG and SHMEM_DEBUG. */
enum quoit_log_level quoit_options_log_level(const struct quoit_options *options);

/* Parsers for values outside the table. False if any part of the text is not part of the value. */
bool quoit_parse_uint(const char *text, uint64_t *value_out);
bool quoit_parse_bytes(const char *text, uint64_t *bytes_out);
bool quoit_parse_from_bytes(const char *text, uint64_t *bytes_out);
/* A longer time is QUOIT_DURATION_NS_MAX, so that a limit's multiples, added to any clock, are in the range of 64 bits.
 */
#define QUOIT_DURATION_NS_MAX (1ull << 60) /* 36 years */
bool quoit_parse_duration(const char *text, uint64_t *ns_out);
bool quoit_parse_bool(const char *text, uint64_t *value_out);

#endif
