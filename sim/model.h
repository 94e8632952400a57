/* SPDX-License-Identifier: BSD-3-Clause */
/* model.h - what things cost: the constants of the simulated hosts, links and adapters.
 *
 * One table: name, default, what it is, where the default comes from. The defaults describe the hosts of the two ring
 * papers (Intel i7-8700K, PCIe 3.0 x8, PEX 8733 and 8749 adapters); "22" and "19" are RING-22 and RING-19. Any of them
 * can be set by name. All are whole numbers of ns, of ps a byte, of bytes, or counts, so that runs are exact.
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

/* X(name, default, what it is, source) */
#define SIM_MODEL_TABLE(X)                                                                                             \
    X(core_count, 6, "cores of a host; threads beyond them take turns",                                                \
      "22, 5: 'Each host PC consisted of an Intel i7-8700K', which has six cores")                                     \
    X(link_ps_per_byte, 160, "wire time of a byte, one direction of a link: 6.25 GB/s",                                \
      "PCIe 3.0 x8 carries 7.88 GB/s; packets of 128 bytes with 28 of header and framing leave 6.46, "                 \
      "acknowledgements "                                                                                              \
      "and credits 6.25; 22, 5.1: 'the throughput of 1 MB or more is over 6000 MB/s'")                                 \
    X(link_latency_ns, 700, "from the last byte on the wire to the neighbour's memory",                                \
      "PEX 8749 data book: 150 ns a chip, two on the way, and two root complexes; PEACH2 measured 800 ns")             \
    X(posted_bytes, 4096, "posted writes under way before the processor has to wait for the wire",                     \
      "posted credits of a PCIe port of this class")                                                                   \
    X(write_call_ns, 60, "each programmed copy: store fence and first flush of write combining",                       \
      "sfence on this processor takes 30-100 ns when lines are being combined")                                        \
    X(write_ps_per_byte, 400, "programmed copy through the window: 2.5 GB/s",                                          \
      "19, 4: DMA is ahead of memcpy in put; NTSocks reaches 1.3 GB/s through all of its socket layer")                \
    X(word_ns, 80, "one 8-byte store through the window, fenced", "an sfence and an uncombined store")                 \
    X(read_call_ns, 200, "each read through the window, beside two crossings and what is under way",                   \
      "HARDWARE: reads take 1-20 us, one after the other")                                                             \
    X(read_ps_per_byte, 20000, "reading through the window: 50 MB/s", "HARDWARE: 60 times slower than writing")        \
    X(dma_submit_ns, 300, "handing a descriptor to the engine", "a descriptor in memory and a posted register write")  \
    X(dma_start_ns, 1200, "from there to the first byte: the engine fetches the descriptor",                           \
      "HARDWARE: set-up costs as much as copying 2-4 KiB")                                                             \
    X(dma_descriptor_ns, 500, "from the last byte of a descriptor to the first of the next",                           \
      "HARDWARE: set-up costs as much as copying 2-4 KiB; 19, 4: '20Gbps to 30Gbps', a descriptor a page")             \
    X(dma_ps_per_byte, 162, "the engine's reading of memory: 6.17 GB/s",                                               \
      "22, 5.1: 'over 6000 MB/s' at 1 MB, start included")                                                             \
    X(dma_poll_ns, 40, "taking completions",                                                                           \
      "a load from the own memory, and the register that frees descriptors is posted")                                 \
    X(register_read_ns, 400, "reading a register of the own adapter", "a round trip to the chip, not over the link")   \
    X(register_write_ns, 120, "writing a register of the own adapter", "a posted, uncombined write")                   \
    X(scratchpad_read_ns, 1200, "reading a scratchpad",                                                                \
      "22, 5.1: 'the overhead for accessing the scratchpad registers ... relatively high'")                            \
    X(scratchpad_write_ns, 250, "writing a scratchpad of the neighbour", "a posted, uncombined write by a driver")     \
    X(doorbell_ring_ns, 250, "ringing the neighbour: the processor's part", "a fenced, uncombined register write")     \
    X(driver_call_ns, 6250, "papers' protocol: a scratchpad or the doorbell by a call of their driver, read back",     \
      "22, 5.1: 'overhead for accessing the scratchpad registers ... and the interrupt overhead ... relatively "       \
      "high'; "                                                                                                        \
      "four words and the doorbell are what makes put '80%-85%' of the link at 1 MB, so 31-40 us together")            \
    X(interrupt_ns, 2500, "from a doorbell bit being set to its handler waking a thread",                              \
      "22, 5.1: 'the interrupt overhead, using the doorbell register' is high; MSI delivery and entry to Linux")       \
    X(wake_call_ns, 900, "waking a sleeping thread: the waker's part", "futex(2) on this processor")                   \
    X(thread_wake_ns, 12000, "from being woken to running on a free core",                                             \
      "Linux 4.16 puts idle cores of this processor into C1E, which takes 10 us to leave (intel_idle), and 2 to run")  \
    X(switch_ns, 7000, "one thread leaves a core and another takes it",                                                \
      "Linux 4.16, 2 us, and caches cold; 22, 5.2: 'unfavorable interchange between threads'")                         \
    X(slice_ns, 100000, "a thread that others wait for gives up its core after so long",                               \
      "woken threads preempt much earlier than the slice of 3 ms of the Linux scheduler; ours")                        \
    X(yield_ns, 300, "sched_yield() with nobody waiting", "a system call on this processor")                           \
    X(sleep_call_ns, 1500, "announcing a sleep: membarrier(2) and futex(2)",                                           \
      "two system calls, one of them to all cores")                                                                    \
    X(poll_ns, 60, "one look of a waiting thread, pause included",                                                     \
      "a few cached loads and a pause of 140 cycles at most")                                                          \
    X(memory_ps_per_byte, 80, "a copy in a host's memory by one core: 12.5 GB/s",                                      \
      "a large copy streams, so a byte moves twice; the two channels of DDR4-2666 of this processor carry 42.6 GB/s, " \
      "of which one core has the line fill buffers to use 25")                                                         \
    X(memory_bus_ps_per_byte, 55, "what ports read and write takes turns at a host's memory: 18 GB/s",                 \
      "a channel of DDR4-2666 carries 21.3 GB/s, 85 % of it in use")                                                   \
    X(memory_turn_ns, 40, "the memory turns from what ports read to what they write, or back",                         \
      "DDR4-2666: write latency, burst and tWTR_L before a read; 19, 4: 'slightly diminished for the simultaneous "    \
      "transferring ... due to the connection overheads on both sides of the NTB ports'")                              \
    X(request_ns, 120, "a PE makes and hands over a request", "measured on the production code: 90-150 ns")            \
    X(frame_ns, 100, "a lane takes a frame or request, checks and executes it", "as request_ns")                       \
    X(piece_bytes, 4096, "large writes travel in pieces of so much; also the grain of the simulation",                 \
      "no hardware's: smaller is finer and slower")                                                                    \
    X(window_memory_mib, 65536, "window into the neighbour's segments, MiB, a power of two", "as the emulated port")

struct sim_model {
#define X(name, ...) uint64_t name;
    SIM_MODEL_TABLE(X)
#undef X
};

void sim_model_default(struct sim_model *model);
/* "name=value". False if there is no such constant or the value is no number in range; *problem_out says what. */
bool sim_model_set(struct sim_model *model, const char *text, const char **problem_out);
/* The table with values, meanings and sources: for people, and as a JSON object. */
void sim_model_print(const struct sim_model *model, FILE *out);
void sim_model_write(const struct sim_model *model, struct quoit_json *json, const char *name);
/* The same as a table of a report (docs/report.md). */
void sim_model_write_table(const struct sim_model *model, struct quoit_json *json);

static inline uint64_t sim_model_time(uint64_t ps_per_byte, uint64_t bytes)
{
    return ps_per_byte * bytes / 1000;
}

#endif
