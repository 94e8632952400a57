/* SPDX-License-Identifier: BSD-3-Clause */
/* vfio_user.h - a PCI function of a virtual machine, served to QEMU (10.1 or newer, `-device vfio-user-pci`).
 *
 * What it is: the protocol. A device embeds a struct function as its first member, fills in the configuration space,
 * and gets each access of its machine to a BAR. Memory of the machine is mapped here, at the addresses at which the
 * function sees it: with an IOMMU only what that maps, else all of it.
 *
 * Threads: one. function_serve() returns when one message is done.
 * Errors: a machine that breaks the protocol is disconnected; what this process itself cannot do ends it.
 */
#ifndef TESTS_VM_VFIO_USER_H
#define TESTS_VM_VFIO_USER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define VECTORS_MAX      33u
#define MAPS_MAX         32768u
#define FILES_MAX        16
#define BARS             6u
#define FDS_MAX          16u
#define BODY_MAX         (1u << 16)
#define WRITE_MAX        (1u << 14) /* bytes of one function_write() */
#define CONFIG_BYTES     4096u
#define REGISTERS_BYTES  0x4000u /* BAR 0 at the least: the vectors' table and pending bits, which QEMU keeps */
#define REGISTERS_VECTOR 0x2000u
#define PAGE_BYTES       4096u

struct function;

struct function_ops {
    void (*reset)(struct function *function); /* to what it is at power-on; the configuration space too */
    void (*come)(struct function *function);  /* a machine has it. NULL: nothing to do */
    void (*leave)(struct function *function); /* its machine is gone, and the memory of it; reset comes next */
    void (*access)(struct function *function, uint32_t bar, uint64_t at, uint8_t *data, uint32_t bytes, bool is_write);
    /* Its machine has read that of the configuration space. NULL: nothing to do. */
    void (*config_read)(struct function *function, uint64_t at, uint32_t bytes);
    /* Memory at these addresses came or went. NULL: nothing to do. */
    void (*memory_changed)(struct function *function, uint64_t address, uint64_t bytes);
    void (*written)(struct function *function); /* what function_write() began is done. NULL: it begins none */
};

/* Memory of the machine, by the addresses at which the function sees it. */
struct map {
    uint64_t address, bytes;
    char *base; /* NULL: unused */
    int file;   /* and where it lies there */
    uint64_t file_offset;
};

/* A file of the machine's memory; many maps lie in one. */
struct memory_file {
    ino_t inode;
    int fd;
};

struct header {
    uint16_t id, command;
    uint32_t bytes, flags, error;
};

struct message {
    struct header header;
    uint8_t body[BODY_MAX];
    int fds[FDS_MAX];
    uint32_t fd_count;
    int reply_fd; /* -1: none */
};

struct function {
    const struct function_ops *ops;
    int listener, connection; /* -1: no machine has it */
    uint8_t config[CONFIG_BYTES];
    uint32_t bars[BARS]; /* where the machine has put them */
    uint64_t bar_bytes[BARS];
    int bar_files[BARS]; /* what QEMU maps for the BAR; -1: each access is a message */
    uint32_t vector_count;
    int vectors[VECTORS_MAX];
    struct map maps[MAPS_MAX];
    uint32_t map_late_us; /* that each takes */
    struct memory_file files[FILES_MAX];
    uint64_t read_count, write_count, interrupt_count; /* of BAR 0, by its machine */
    struct message message;
};

static inline uint64_t get(const void *from, size_t bytes)
{
    uint64_t value = 0;
    memcpy(&value, from, bytes);
    return value;
}

static inline void put(void *to, uint64_t value, size_t bytes)
{
    memcpy(to, &value, bytes);
}

_Noreturn void die(const char *what);

/* Waits at the socket `path`. Sizes and files of BARs are set by the caller before a machine comes. */
void function_open(struct function *function, const struct function_ops *ops, const char *path, uint32_t vector_count);
/* What poll() waits for, and what to do then. */
int function_fd(const struct function *function);
void function_serve(struct function *function);

/* For reset: an endpoint with BAR 0 and its vectors. `id`: vendor and device. `class`: with revision 0. */
void function_config(struct function *function, uint32_t id, uint32_t class);
/* Where a BAR of 64 bits stands; 0: nowhere yet. */
uint64_t function_bar(const struct function *function, uint32_t bar);
void function_fire(struct function *function, uint32_t vector);
/* NULL: it is not memory of the machine, or not in one piece. */
struct map *function_map_of(struct function *function, uint64_t address, uint64_t bytes);
char *function_memory(struct function *function, uint64_t address, uint64_t bytes);
/* Writes where the machine routes the address: to a window of another function, or nowhere. One at a time. */
void function_write(struct function *function, uint64_t address, const char *from, uint32_t bytes);
bool function_is_same_machine(const struct function *a, const struct function *b);

#endif
