/* SPDX-License-Identifier: BSD-3-Clause */
/* silence.h - which hosts of a job are silent, by what the proxies of the others find (net/net.h), and what is printed
 * of it: one line when a host is silent, one when it is back.
 *
 * Several hosts report the same host, in any order; a report may be lost. Of one host the last report of each other one
 * counts. Of a host that is cut off all others are silent: so what a host finds that is silent itself, or is just back,
 * is no reason for a line. No I/O. Threads: one.
 */
#ifndef QUOIT_BOOT_SILENCE_H
#define QUOIT_BOOT_SILENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "boot/proxy_process.h"

#define QUOIT_SILENCE_TEXT_BYTES 512

struct quoit_silent {
    uint32_t silent_count; /* hosts to which it is silent, */
    uint32_t dark_count;   /* and whose driver sees no sign of its machine either */
    uint64_t since_ns;     /* while it is silent: when something last came from it, */
    uint64_t dark_ns;      /* and while its machine is, a sign of that */
    uint64_t back_ns;      /* when the last line was that it is back; 0: none was */
    bool is_reported;      /* to the user */
};

struct quoit_silences {
    uint32_t host_count;
    uint32_t silent_count;      /* hosts that are silent to some other one */
    struct quoit_silent *hosts; /* [host_count] */
    uint8_t *found;             /* [host_count][host_count]; enum quoit_net_silence: at whom, of whom */
};

enum quoit_silence_line { QUOIT_SILENCE_NO_LINE, QUOIT_SILENCE_BEGINS, QUOIT_SILENCE_IS_OVER };

/* The host whose agent prints the lines about `host`, where there is no oshrun. */
static inline uint32_t quoit_silence_reporter(uint32_t host)
{
    return host == 0 ? 1 : 0;
}

QUOIT_MUST_USE enum quoit_status quoit_silences_open(struct quoit_silences *silences, uint32_t host_count);
/* Also one that was not opened. */
void quoit_silences_close(struct quoit_silences *silences);
/* What `by` finds. Reports that no proxy sends are dropped. now_ns: of any clock, the same in all calls. */
void quoit_silences_take(struct quoit_silences *silences, uint32_t by, const struct quoit_control_silence *report,
                         uint64_t now_ns);
/* What `by` has found last, which is enum quoit_net_silence. */
static inline uint32_t quoit_silences_found(const struct quoit_silences *silences, uint32_t by, uint32_t host)
{
    return silences->found[(size_t)by * silences->host_count + host];
}
/* When some host last saw a sign of the host's machine. */
uint64_t quoit_silences_sign_ns(const struct quoit_silences *silences, uint32_t host, uint64_t now_ns);
/* The line that is to be printed now, once. is_silent: the host is so in another way, too, since since_ns. */
enum quoit_silence_line quoit_silences_due(struct quoit_silences *silences, uint32_t host, bool is_silent,
                                           uint64_t since_ns, uint64_t now_ns);
/* The text of the line. who: such as "host1"; limit: such as "--network-limit". */
void quoit_silence_text(const struct quoit_silent *silent, enum quoit_silence_line line, const char *who,
                        const char *limit, uint64_t limit_ns, uint64_t now_ns, char text_out[QUOIT_SILENCE_TEXT_BYTES]);

#endif
