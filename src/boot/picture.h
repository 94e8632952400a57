/* SPDX-License-Identifier: BSD-3-Clause */
/* picture.h - a ring of hosts drawn in characters, with a text from the caller at each direction of each link. */
#ifndef QUOIT_BOOT_PICTURE_H
#define QUOIT_BOOT_PICTURE_H

#include <stdint.h>
#include <stdio.h>

#include "host/job_config.h"
#include "ring/ring.h"

#define QUOIT_PICTURE_HOSTS_MAX  64 /* a larger ring is not drawn */
#define QUOIT_PICTURE_COLUMNS    84
#define QUOIT_PICTURE_TEXT_BYTES 48

struct quoit_picture {
    struct quoit_host_range hosts; /* of the ring: 2..QUOIT_PICTURE_HOSTS_MAX; otherwise nothing is drawn */
    const char *indent;            /* before each line */
    /* The text for the direction that leaves host `from` on `side`. */
    void (*describe)(void *arg, uint32_t from, enum quoit_side side, char text_out[QUOIT_PICTURE_TEXT_BYTES]);
    void *arg;
};

void quoit_picture_print(const struct quoit_picture *picture, FILE *out);

#endif
