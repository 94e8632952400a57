/* SPDX-License-Identifier: BSD-3-Clause */
/* state.h - what the files of net.h share: net.c the contract, liveness.c heartbeats, silent and lost hosts. Included
 * by them only. Threads: as net.h, one at a time for one end.
 */
#ifndef QUOIT_NET_STATE_H
#define QUOIT_NET_STATE_H

#include "net/driver.h"

/* ASK: the receiver, which does not watch the sender, is to say something. LOST: the sender has lost a host. PE
 * ENDPOINT: the sender is one; nothing of it follows before the answer. */
enum message_kind {
    MESSAGE_PAYLOAD = 1,
    MESSAGE_HEARTBEAT,
    MESSAGE_LEAVING,
    MESSAGE_ASK,
    MESSAGE_LOST,
    MESSAGE_PE_ENDPOINT, /* who has come */
    MESSAGE_KIND_COUNT
};

/* The payload of LOST. */
struct loss {
    uint32_t host;
    uint32_t status; /* as on_lost receives it */
};

/* The payload of PE_ENDPOINT. */
struct arrival {
    uint64_t opened_ns; /* on its host's clock: of PE endpoints with one number the last one counts */
    struct quoit_net_address address;
};

/* Before the payload of every message. */
struct message_header {
    uint64_t tag;      /* of the job; of a PE endpoint's messages after PE_ENDPOINT, and when it was opened */
    uint32_t sequence; /* 1, 2, 3, ... from one host to another: each message arrives, once */
    uint16_t host;     /* the sender; PE endpoints follow the hosts */
    uint8_t kind;      /* enum message_kind */
    uint8_t version;   /* of the driver contract */
};
_Static_assert(sizeof(struct message_header) == 16, "the payload behind it stays aligned");

enum host_state { HOST_UNKNOWN, HOST_CONNECTED, HOST_LEFT, HOST_LOST };

/* A message that a driver reported before one that was sent earlier. */
struct held {
    struct held *next;
    uint32_t sequence;
    uint32_t bytes;
    _Alignas(8) char message[];
};

struct host {
    struct held *held; /* by sequence */
    uint8_t state;     /* enum host_state */
    uint8_t silence;   /* enum quoit_net_silence */
    bool is_heard;     /* it has said something */
    bool is_self;      /* this end: nothing is to be heard of it */
    bool is_watched;   /* heartbeats go and come */
    bool is_awaited;   /* quoit_net_await() */
    bool is_asked;     /* it has sent ASK and got no answer yet */
    bool is_met;       /* something went to it or came from it: it knows this end */
    bool is_farewell_sent;
    bool is_greeted; /* a PE endpoint has sent it PE_ENDPOINT */
    bool is_broken;  /* the driver said so, and on_lost has not been called */
    uint32_t sent_sequence;
    uint32_t heard_sequence;
    uint64_t beat_ns; /* when the next heartbeat to it is due; 0: now, nothing was sent yet */
    uint64_t heard_ns;
    uint64_t answered_ns; /* when its machine last gave a sign, as was seen while nothing came from the host */
    uint64_t silent_ns;   /* when it was last heard before it was silent */
    uint32_t told_count;  /* of the losses, so many were told to it */
    uint64_t outstanding_count;
    uint64_t outstanding_bytes;
    bool has_gone;      /* something was done with GONE since the last flush */
    uint64_t opened_ns; /* of the last PE endpoint that was taken */
};

struct quoit_net_region {
    struct quoit_net_key key;
    void *of_driver;
    char *memory; /* NULL: there is none */
};

struct quoit_net_window {
    struct quoit_net *net;
    uint32_t host;
    uint64_t bytes;
    void *of_driver;
    struct quoit_net_window *next;
};

struct quoit_net {
    struct quoit_net_config config;
    const struct quoit_net_driver *driver;
    struct quoit_net_end *end;
    struct quoit_net_limits limits; /* without what the header takes of a message */
    struct host *hosts;             /* [end_count] */
    struct loss *losses;            /* loss_count, in the order in which this end heard of them */
    struct quoit_net_region region;
    struct quoit_net_window *windows;
    uint64_t opened_ns; /* this end */
    uint64_t outstanding_count;
    uint32_t loss_count;
    uint32_t unheard_count;            /* watched hosts that have said nothing yet */
    uint64_t now_ns;                   /* of the last progress */
    uint64_t moved_ns;                 /* of the last progress that did something, or a connection */
    uint64_t next_watch_ns;            /* when heartbeats are looked after */
    uint64_t dropped_count;            /* messages of unauthenticated peers */
    char why[QUOIT_NET_PROBLEM_BYTES]; /* quoit_net_why() */
    bool has_broken;                   /* a host is_broken */
    bool is_inside;                    /* progress runs: callbacks must not call it */
    bool is_leaving;                   /* quoit_net_leave(): a connection that ends is a farewell */
};

/* Hosts, and PE endpoints behind them. */
static inline uint32_t end_count(const struct quoit_net *net)
{
    return net->config.host_count + net->config.pe_endpoint_count;
}

/* As others know this end. */
static inline uint32_t own_number(const struct quoit_net *net)
{
    return net->config.is_pe_endpoint ? net->config.host_count + net->config.pe_endpoint : net->config.host;
}

/* Of the messages of an end. */
static inline uint64_t tag_of(const struct quoit_net *net, const struct message_header *header, uint64_t opened_ns)
{
    return net->config.tag +
           (header->host >= net->config.host_count && header->kind != MESSAGE_PE_ENDPOINT ? opened_ns : 0);
}

/* The driver has found the connection of the host broken: the next progress loses it. */
static inline void quoit_net_break(struct quoit_net *net, uint32_t host)
{
    net->hosts[host].is_broken = true;
    net->has_broken = true;
}

/* net.c */

/* Messages that wait for those before them. */
void quoit_net_drop_held(struct host *host);

/* liveness.c */

/* Of the kind, with a header. FULL: later. GONE: the host is broken. */
QUOIT_MUST_USE enum quoit_status quoit_net_send_kind(struct quoit_net *net, uint32_t host_index, enum message_kind kind,
                                                     const void *payload, uint32_t bytes);
/* Whether this end looks after the host without being asked. */
bool quoit_net_watches(const struct quoit_net *net, uint32_t host_index);
/* Before the host is awaited, or a put or get begins: its silence counts from now on. */
void quoit_net_expect(struct quoit_net *net, struct host *host);
/* Reports it if it is another one than before. */
void quoit_net_note_silence(struct quoit_net *net, uint32_t host_index, enum quoit_net_silence silence);
/* Before the driver forgets the host: keeps what it knows of why it is not reached, for quoit_net_why(). */
void quoit_net_note_why(struct quoit_net *net, uint32_t host_index);
/* A host is lost, or a PE endpoint has gone, unless it was so before or has left. */
void quoit_net_lose(struct quoit_net *net, uint32_t host_index, enum quoit_status status);
/* Of progress, after the driver's: what is due. before_ns: of the progress before. */
void quoit_net_look_after(struct quoit_net *net, uint64_t before_ns);

#endif
