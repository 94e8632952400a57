/* SPDX-License-Identifier: BSD-3-Clause */
/* version.h - which version of Quoit this code is, and with which others it can share a job.
 *
 * The processes of a job, the program's library, oshrun, its proxies and agents, share messages and memory, whose
 * layout is a protocol with a number. Two files fit if they have a protocol in common; of several the newest is spoken.
 *
 * Every library, plugin and program of Quoit holds its version in an ELF note too, so that it can be read from a file
 * (env/elf_file.h): type QUOIT_VERSION_NOTE_TYPE of the owner QUOIT_VERSION_NOTE_OWNER, a struct quoit_version.
 *
 * Threads: any. Errors: none.
 */
#ifndef QUOIT_BASE_VERSION_H
#define QUOIT_BASE_VERSION_H

#include <stdbool.h>
#include <stdint.h>

/* Raised by every release in which something has changed that processes of a job share: messages over the boot socket,
 * between oshrun and its agents and proxies, memory of hosts. tests/abi has the layout of each number. The oldest one
 * is the lowest that this code still speaks. */
#define QUOIT_PROTOCOL_NEWEST 1u
#define QUOIT_PROTOCOL_OLDEST 1u

#define QUOIT_VERSION_BYTES       24
#define QUOIT_VERSION_FIELD_BYTES 48
#define QUOIT_VERSION_NOTE_OWNER  "Quoit"
#define QUOIT_VERSION_NOTE_TYPE   1u

/* The first thing that each side of a connection sends: it keeps this form in every version of Quoit. */
struct quoit_version {
    char text[QUOIT_VERSION_BYTES]; /* such as "0.9.0"; ends with a zero */
    uint32_t protocol_oldest;
    uint32_t protocol_newest;
};

/* Of this code. */
const struct quoit_version *quoit_version(void);
/* Whether the text is a version: what was received may be anything. */
bool quoit_version_is_valid(const struct quoit_version *version);
/* Whether code of two versions can share a job. */
bool quoit_versions_fit(const struct quoit_version *one, const struct quoit_version *other);
/* One word, such as "0.9.0:1-2", for messages in text. */
void quoit_version_write(const struct quoit_version *version, char word_out[QUOIT_VERSION_FIELD_BYTES]);
/* The version in a word. False: it is none, and *version_out is of no protocol; its text is the word up to a
 * colon if that is a version, else "". */
bool quoit_version_read(const char *word, struct quoit_version *version_out);

#endif
