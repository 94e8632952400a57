/* SPDX-License-Identifier: BSD-3-Clause */
/* model.h - the cost model: the constants of the simulated hosts, links and adapters.
 *
 * One table with two columns of values. `public` is from data sheets and measurements of others alone, none of them a
 * sentence of RING-19 or RING-22; keys in brackets are in docs/sources.md, and assumed values say so. `fitted`, the
 * default, was chosen so that relations of those papers hold; the last column names them, or says that a first estimate
 * was kept. Every constant can be set by name. All are whole numbers of ns, of ps per byte, of bytes, or counts, so
 * that runs are exact.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

/* X(name, fitted value, value from public sources alone, what it is, public source, what the fitted value was chosen
 * by) */
#define SIM_MODEL_TABLE(X)                                                                                             \
    X(core_count, 6, 6, "cores of a host; threads beyond them take turns", "[i7-8700k]", "")                           \
    X(shared_core_count, 0, 0,                                                                                         \
      "processors that all hosts share, as on a machine that emulates them; 0: each has its own",                      \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(cache_bytes, 0, 0, "of each processor that hosts share: what it touched last is in its cache; 0: not modelled",  \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(far_read_ps_per_byte, 0, 0, "how much longer a byte of a copy takes whose source is in no cache",                \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(far_write_ps_per_byte, 0, 0, "likewise whose destination is in no cache",                                        \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(far_both_ps_per_byte, 0, 0, "likewise where neither is in a cache, since both are fetched at the same time",     \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(handed_read_ps_per_byte, 0, 0, "likewise for a source that another processor touched last",                      \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(handed_write_ps_per_byte, 0, 0, "likewise for a destination that another processor touched last",                \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(line_read_ns, 0, 0, "a PE reads a flag that another of the processors that hosts share wrote",                   \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(line_write_ns, 0, 0, "a PE writes through the window where another of the processors has the line",              \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(crossing_ns, 0, 0, "a lane takes a frame that was sent from another of the processors: its lines travel",        \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(flag_ns, 0, 0, "the code of a collective for each flag that it waits for, beside puts and waits",                \
      "not charged: 20-60 ns", "")                                                                                     \
    X(reads_stay, 0, 0, "1: a window is memory of the same machine, and a read through it crosses nothing",            \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(call_ns, 0, 0, "a call of the API: its checks, before it reaches the fabric", "not charged: 10-50 ns", "")       \
    X(posted_ns, 0, 0, "the code of a direct put beside its writes: route, journal, sequence, and of its quiet",       \
      "not charged: 30-60 ns", "")                                                                                     \
    X(journal_ps_per_byte, 79, 79, "the copy of a direct put into its journal", "as memory_ps_per_byte", "")           \
    X(look_ns, 0, 0, "a lane looks at its queues, in vain or not", "in poll_ns", "")                                   \
    X(link_ps_per_byte, 160, 168, "wire time of a byte, one direction of a link: 6.25 GB/s",                           \
      "[pcie-e2e] with 128 bytes of payload, the least that hosts agree on, 56.67 Gbit/s of a PCIe 3.0 x8 link are "   \
      "left for packets; [pcie-an708] 24 bytes of each are header and framing: 5.97 GB/s",                             \
      "22/4a: raw link over 6000 MB/s at 1 MB, one pair alone; kept for all hosts at once")                            \
    X(link_latency_ns, 700, 525, "from the last byte on the wire to the neighbour's memory",                           \
      "[pex8749] 126 ns a chip, two on the way; [pcie-e2e] half of a DMA read of 547 ns",                              \
      "the first estimate, kept; 22/5 changes with it")                                                                \
    X(posted_bytes, 4096, 4096, "posted writes under way before the processor has to wait for the wire",               \
      "assumed: no public figure", "")                                                                                 \
    X(write_call_ns, 60, 60, "each programmed copy: store fence and first flush of write combining",                   \
      "assumed: 30-100 ns", "")                                                                                        \
    X(write_ps_per_byte, 400, 194, "programmed copy through the window: 2.5 GB/s",                                     \
      "[pcie-e2e] [pcie-an708] a write-combining buffer of 64 bytes is one packet: 56.67 Gbit/s x 64 / 88",            \
      "19/9: DMA ahead of memcpy in put")                                                                              \
    X(word_ns, 80, 80, "one 8-byte store through the window, fenced",                                                  \
      "assumed: as write_call_ns, and an uncombined store", "")                                                        \
    X(read_call_ns, 200, 200, "each read through the window, beside two crossings and what is under way", "assumed",   \
      "")                                                                                                              \
    X(read_ps_per_byte, 20000, 20000, "reading through the window: 50 MB/s", "[ntsocks] 60 times slower than writing", \
      "")                                                                                                              \
    X(dma_submit_ns, 300, 300, "handing a descriptor to the engine",                                                   \
      "assumed: a descriptor in memory and a posted register write", "")                                               \
    X(dma_start_ns, 1094, 1094, "from there to the first byte: the engine fetches the descriptor",                     \
      "[pcie-e2e] two DMA reads of 547 ns, descriptor and data", "")                                                   \
    X(dma_descriptor_ns, 500, 547, "from the last byte of a descriptor to the first of the next",                      \
      "[pcie-e2e] one DMA read, as by an engine that fetches one descriptor at a time", "19/8: 20-30 Gbit/s")          \
    X(dma_ps_per_byte, 142, 0, "the engine's reading of memory: 7.04 GB/s",                                            \
      "[pex8749] the engine is as fast as its port",                                                                   \
      "22/4a: raw link over 6000 MB/s and put 80-85 % of it at 1 MB, all hosts at once")                               \
    X(dma_poll_ns, 40, 40, "taking completions", "assumed: a load from the own memory", "")                            \
    X(register_read_ns, 547, 547, "reading a register of the own adapter",                                             \
      "[pcie-e2e] a round trip between processor and adapter", "")                                                     \
    X(register_write_ns, 120, 120, "writing a register of the own adapter", "assumed: a posted, uncombined write", "") \
    X(scratchpad_read_ns, 1200, 1051, "reading a scratchpad",                                                          \
      "[pcie-e2e] a round trip of 547 ns, and [pex8749] two chips more, there and back",                               \
      "22/5: 4 -> 5 hosts, 1 thread; a put reads none, so no step of 22/4b has it")                                    \
    X(scratchpad_write_ns, 250, 250, "writing a scratchpad of the neighbour",                                          \
      "assumed: a posted, uncombined write by a driver", "")                                                           \
    X(doorbell_ring_ns, 250, 250, "ringing the neighbour: the processor's part",                                       \
      "assumed: a fenced, uncombined register write", "")                                                              \
    X(driver_call_ns, 6250, 0, "papers' protocol: a scratchpad or the doorbell by a call of their driver, read back",  \
      "no public figure, so nothing",                                                                                  \
      "22/4a: put 80-85 % of the raw link at 1 MB, one pair alone; kept for all hosts at once; most of scratchpads "   \
      "and doorbell in 22/4b")                                                                                         \
    X(interrupt_ns, 2500, 2500, "from a doorbell bit being set to its handler waking a thread",                        \
      "assumed: delivery of an MSI and entry to Linux", "")                                                            \
    X(wake_call_ns, 900, 900, "waking a sleeping thread: the waker's part", "assumed: futex(2)", "")                   \
    X(thread_wake_ns, 12000, 5800, "from being woken to running on a free core",                                       \
      "[intel_idle] the lightest idle state, C1, takes 2 us to leave; [switch] 3.8 us to run",                         \
      "22/5: 1 -> 2 threads, hosts; C1E (10 us) instead of C1, and 2 us to run")                                       \
    X(switch_ns, 6318, 3800, "one thread leaves a core and another takes it", "[switch] direct cost",                  \
      "22/5: 4 -> 8 threads; of fits with as many relations one nearer to the public value")                           \
    X(thread_switch_ns, 0, 0, "likewise between threads of one process; 0: as switch_ns",                              \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(switch_of_4_ns, 0, 0,                                                                                            \
      "likewise where hosts share processors and three processes ran there since this one; 0: as switch_ns",           \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(switch_of_8_ns, 0, 0, "likewise for seven processes or more; 0: as switch_of_4_ns",                              \
      "no hardware's: quoit sim --calibrate", "")                                                                      \
    X(slice_ns, 100000, 100000, "a thread that others wait for gives up its core after so long",                       \
      "assumed: much earlier than the 3 ms of the Linux scheduler, since woken threads preempt", "")                   \
    X(yield_ns, 300, 300, "sched_yield() with nobody waiting", "assumed: a system call", "")                           \
    X(sleep_call_ns, 1500, 1500, "announcing a sleep: membarrier(2) and futex(2)",                                     \
      "assumed: two system calls, one of them to all cores", "")                                                       \
    X(poll_ns, 60, 60, "one look of a waiting thread, pause included",                                                 \
      "[i7-8700k] a pause of 140 cycles at most, and a few cached loads", "")                                          \
    X(syscall_ns, 75, 75, "of a network program or the threads of our device: a call of the kernel",                   \
      "[lwn-10g] 75 ns", "")                                                                                           \
    X(ethernet_frame_ns, 350, 350, "a driver and the kernel send or receive a frame, below TCP",                       \
      "[veth] with tcp_segment_ns, an eighth of it for the copy", "")                                                  \
    X(tcp_segment_ns, 600, 600, "TCP and IP send or receive a segment or an acknowledgement, copies apart",            \
      "[veth] one stream of segments of 1448 bytes at 10.9 Gbit/s: 1063 ns each", "")                                  \
    X(checksum_ps_per_byte, 39, 39, "the checksum of a received segment where no adapter computes it: 25.4 GB/s",      \
      "[skylake-read] it reads each byte once", "")                                                                    \
    X(tcp_window_bytes, 1048576, 1048576, "bytes of a connection under way or not read yet",                           \
      "assumed: what Linux grows it to, and no limit here", "")                                                        \
    X(nic_interrupt_gap_ns, 50000, 50000,                                                                              \
      "a Gigabit Ethernet adapter interrupts no sooner than so long after the last",                                   \
      "[e1000e] 20000 interrupts a second", "")                                                                        \
    X(memory_ps_per_byte, 79, 79, "a copy in a host's memory by one core: 12.5 GB/s",                                  \
      "[skylake-read] one core reads 25.4 GB/s, and a copied byte moves twice", "")                                    \
    X(memory_bus_ps_per_byte, 55, 23, "what ports read and write takes turns at a host's memory: 18 GB/s",             \
      "[ddr4] two channels of DDR4-2666: 42.7 GB/s", "19/8: slightly diminished when all send")                        \
    X(memory_turn_ns, 40, 21, "the memory turns from what ports read to what they write, or back",                     \
      "[ddr4] tWTR_L 7.5, write latency 10.5, burst 3 ns", "19/8: slightly diminished when all send")                  \
    X(network_overhead_ns, 500, 500, "of a network: the sender's work for a message", "quoit perf --loggp", "")        \
    X(network_gap_ns, 500, 500, "of a network: from one message of a host to the next", "quoit perf --loggp", "")      \
    X(network_latency_ns, 10000, 10000, "of a network: until a message is there and noticed", "quoit perf --loggp",    \
      "")                                                                                                              \
    X(network_ps_per_byte, 200, 200, "of a network: from one byte of a message to the next", "quoit perf --loggp", "") \
    X(network_processor_count, 0, 0,                                                                                   \
      "processors that take turns with the latency and bytes of all hosts' messages, as where hosts are namespaces "   \
      "of one machine; 0: each host has its own",                                                                      \
      "no hardware's", "")                                                                                             \
    X(request_ns, 120, 120, "a PE makes and hands over a request", "measured on the production code: 90-150 ns", "")   \
    X(frame_ns, 100, 100, "a lane takes a frame or request, checks and executes it",                                   \
      "measured on the production code, as request_ns", "")                                                            \
    X(noise_ns, 0, 0, "each piece of work takes up to so much longer, by chance", "no hardware's: for ranges", "")     \
    X(jitter_percent, 0, 0, "each piece of work takes up to so many percent longer or shorter, by chance",             \
      "no hardware's: so that hosts do not run in step", "")                                                           \
    X(piece_bytes, 4096, 4096, "large writes travel in pieces of so much; also the grain of the simulation",           \
      "no hardware's: smaller is finer and slower", "")                                                                \
    X(window_memory_mib, 65536, 65536, "window into the neighbour's segments, MiB, a power of two",                    \
      "as the emulated port", "")

struct sim_model {
#define X(name, ...) uint64_t name;
    SIM_MODEL_TABLE(X)
#undef X
};

void sim_model_default(struct sim_model *model);
/* Sets "name=value", or "public" or "fitted" for a whole column. False if there is no such constant or the value is out
 * of range; *problem_out says which. */
bool sim_model_set(struct sim_model *model, const char *text, const char **problem_out);
/* The table with values, meanings and sources: for people, and as a JSON object. */
void sim_model_print(const struct sim_model *model, FILE *out);
void sim_model_write(const struct sim_model *model, struct quoit_json *json, const char *name);

static inline uint64_t sim_model_time(uint64_t ps_per_byte, uint64_t bytes)
{
    return ps_per_byte * bytes / 1000;
}

#endif
