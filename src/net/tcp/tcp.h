/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp.h - what the files of the driver for TCP share: tcp.c the contract, connect.c connections, frames.c what crosses
 * them. Included by them only.
 *
 * One connection between two ends carries both directions. What an end asks of another goes by its connection to it,
 * messages, puts, gets, and what it answers by the connection on which it was asked: so an end that is connected to
 * itself has two connections, and one that is asked only needs none of its own.
 *
 * Threads: as the driver, one at a time for one end.
 */
#ifndef QUOIT_NET_TCP_TCP_H
#define QUOIT_NET_TCP_TCP_H

#include <netinet/in.h>

#include "base/assert.h"
#include "net/address.h"
#include "net/driver.h"

#define SECRET_BYTES   16u
#define MESSAGE_BYTES  8192u
#define TRANSFER_COUNT (4 * QUOIT_NET_TRANSFERS_MAX)
#define SEND_COUNT     128u
#define SENDS_MAX      (SEND_COUNT / 4) /* to one host, so that one that hangs leaves some for the others */
#define HELD_BYTES     16384u           /* received in one call: headers, and payload that they name */
#define OUT_COUNT      8u               /* frames that are sent in one call */

/* Not believed unless it arrived whole. Where the end is called stands beside it. */
struct wire_address {
    uint32_t digest; /* of the rest */
    uint8_t secret[SECRET_BYTES];
};

/* Of an end that calls. */
struct hello {
    uint8_t secret[SECRET_BYTES]; /* of the end that is called */
    uint32_t host;                /* that calls */
    uint32_t version;
    uint32_t probe_bytes;   /* that cross both ways before the end is let in; 0: none do */
    uint32_t segment_bytes; /* of the connection, at most; 0: no limit is known */
};
_Static_assert(sizeof(struct hello) == 32, "no padding crosses the network");

/* Bytes from the end that was called. */
#define WELCOME 'q'
#define PROBE   'p' /* probe_bytes follow, and as many are to be sent */

struct tcp;

enum op_kind { OP_FREE, OP_PUT, OP_GET, OP_SEND };

struct op {
    enum op_kind kind;
    uint32_t host;
    uint32_t round; /* how often it was in use: an answer to an earlier get is none to this one */
    uint64_t cookie;
    uint64_t bytes;
    char *local;         /* of a message its buffer */
    uint64_t remote;     /* its address there */
    uint64_t done_bytes; /* given to the connection (put), or arrived (get) */
    struct op *next;
};

struct op_list {
    struct op *first;
    struct op **end; /* where the next one goes; not used while the list is empty */
};

/* A get of another host, while its bytes leave. */
struct answer {
    struct answer *next;
    const char *from;
    uint64_t bytes;
    uint64_t done_bytes;
    uint64_t id;
};

enum frame_kind { FRAME_MESSAGE = 1, FRAME_PUT, FRAME_GET, FRAME_ANSWER, FRAME_LANDED, FRAME_KIND_COUNT };

struct frame {
    uint64_t bytes;   /* of the payload; GET: that are asked for; LANDED: puts */
    uint64_t address; /* PUT, GET: in the receiver's memory; ANSWER: offset in what was asked for */
    uint64_t id;      /* GET, ANSWER: the get */
    uint8_t kind;     /* enum frame_kind */
    uint8_t is_last;  /* PUT: nothing of it follows */
    uint8_t zero[6];
};
_Static_assert(sizeof(struct frame) == 32, "no padding crosses the network");

/* A frame that leaves. */
struct out {
    struct frame frame;
    const char *payload;
    uint64_t bytes;        /* of it */
    struct op *op;         /* MESSAGE, or the last of a PUT */
    struct answer *answer; /* the last of it */
};

enum connection_state {
    CONNECTING, /* by this end: to be let in */
    COMING,     /* to this end, and has not said who it is */
    OPEN,
    CLOSED
};

/* Of a call. */
enum call_step {
    CALL_BEGUN,
    CALL_GREETED, /* hello is said */
    CALL_PROBED,  /* the probe of the other end comes */
    CALL_PROBES,  /* and has come; the own one leaves */
};

struct connection {
    enum connection_state state;
    enum call_step step; /* CONNECTING */
    int fd;
    uint32_t host;           /* the other end; PE endpoints follow the hosts */
    bool wants_room;         /* epoll tells when there is */
    bool is_watched;         /* by epoll */
    bool is_probed;          /* COMING: its hello was right, and its probe comes */
    uint32_t probe_bytes;    /* CONNECTING: of both probes */
    uint64_t until_ns;       /* COMING; CALL_PROBED: when bytes of the probe are lost that have not come */
    uint64_t number;         /* of those that have come, in their order */
    struct connection *next; /* of all */
    /* Sending. */
    struct out outs[OUT_COUNT];
    uint32_t out_count;
    uint64_t sent_bytes; /* of outs[0] */
    struct answer *answers;
    struct answer **answers_end;
    uint32_t answer_count;
    uint32_t landed_count; /* puts that arrived here and were not confirmed */
    bool answers_last;     /* an answer's turn was the last one */
    /* Receiving. */
    struct frame frame; /* whose payload is coming */
    bool has_frame;
    char *to; /* where it goes; NULL: nowhere */
    uint64_t come_bytes;
    uint32_t held_from, held_to; /* received and not used */
    char held[HELD_BYTES];
    _Alignas(8) char message[MESSAGE_BYTES];
};

struct peer {
    struct connection *connection; /* NULL: none. Of a PE endpoint that was taken, or of a host */
    struct connection *coming;     /* of a PE endpoint that was not taken yet */
    bool is_failed;
    int error; /* errno of the last call that ended without an answer; 0: none did, or the other end hung up */
    uint32_t send_count;
    uint32_t call_count;    /* in vain, one after the other */
    uint32_t segment_bytes; /* of the next call's packets, at most; 0: as of others */
    uint32_t lost_bytes;    /* what those carried that got lost; 0: none did */
    uint64_t call_at_ns;    /* when to call again; 0: not */
    struct quoit_wire_address at;
    struct sockaddr_storage address;
    uint8_t secret[SECRET_BYTES]; /* of that end */
    struct op_list messages;      /* that have not left */
    struct op_list posted;        /* transfers likewise */
    struct op_list flushed;       /* puts that have left */
};

struct region {
    uint64_t base;
    uint64_t bytes;
    struct region *next;
};

struct tcp {
    struct quoit_net_end end; /* first */
    struct quoit_net_events events;
    uint32_t host; /* this one, or the PE endpoint's number */
    uint32_t host_count;
    uint32_t peer_count; /* hosts, then PE endpoints */
    bool is_pe_endpoint;
    uint8_t secret[SECRET_BYTES];
    uint32_t place;                      /* of end.places, where it is called, or where a PE endpoint calls from */
    int listeners[QUOIT_NET_PLACES_MAX]; /* [place]; -1: none, as at all places of a PE endpoint */
    int events_fd;                       /* epoll, of the listeners and all connections */
    uint32_t look_count;
    uint32_t done_count; /* of one progress */
    struct region *regions;
    struct peer *peers; /* [peer_count] */
    struct connection *connections;
    uint32_t connection_count;
    uint32_t coming_count;
    uint32_t again_count;   /* peers that are to be called again */
    uint32_t probing_count; /* of those that connect */
    uint32_t segment_bytes; /* of the packets of connections that follow, at most; 0: no limit is known */
    uint64_t accepted_count;
    struct op *ops; /* transfers, then sends */
    struct op *free_transfers;
    struct op *free_sends;
    char *buffers;
};

static inline void quoit_tcp_append(struct op_list *list, struct op *op)
{
    op->next = NULL;
    if (!list->first)
        list->end = &list->first;
    *list->end = op;
    list->end = &op->next;
}

static inline struct op *quoit_tcp_take_first(struct op_list *list)
{
    struct op *first = list->first;
    list->first = first->next;
    return first;
}

static inline void quoit_tcp_release(struct tcp *tcp, struct op *op)
{
    struct op **list = op >= tcp->ops + TRANSFER_COUNT ? &tcp->free_sends : &tcp->free_transfers;
    op->kind = OP_FREE;
    op->next = *list;
    *list = op;
}

/* Releases the operation and reports it. */
static inline void quoit_tcp_finish(struct tcp *tcp, struct op *op, enum quoit_status status)
{
    uint32_t host = op->host;
    uint64_t cookie = op->cookie, bytes = op->bytes;
    bool is_transfer = op->kind != OP_SEND;
    tcp->peers[host].send_count -= !is_transfer;
    quoit_tcp_release(tcp, op);
    tcp->done_count++;
    if (is_transfer)
        tcp->events.done(tcp->events.arg, host, cookie, status, bytes);
}

static inline void quoit_tcp_break(struct tcp *tcp, uint32_t host)
{
    tcp->peers[host].is_failed = true;
    tcp->events.broken(tcp->events.arg, host);
}

/* connect.c */

/* Listens at the address, whose port is set. The socket, or -1. */
int quoit_tcp_listen(struct tcp *tcp, struct sockaddr_storage *address, struct quoit_ports ports);
/* Begins to connect, if no connection is there. False: that cannot be, the peer's error has why. */
bool quoit_tcp_join(struct tcp *tcp, uint32_t host);
/* A later progress does so. */
void quoit_tcp_call_later(struct tcp *tcp, uint32_t host);
/* The PE endpoint's connection is that of its number. False: it has none. */
bool quoit_tcp_take_pe_endpoint(struct tcp *tcp, uint32_t host);
/* Why the host is not reached; "": not known. */
void quoit_tcp_explain(const struct tcp *tcp, uint32_t host, char text_out[QUOIT_NET_PROBLEM_BYTES]);
/* Lets in who has come, and goes on with what connects. */
void quoit_tcp_meet(struct tcp *tcp);
/* The connection is closed, and its memory is the caller's no more after the next quoit_tcp_sweep(). */
void quoit_tcp_close(struct tcp *tcp, struct connection *connection);
void quoit_tcp_sweep(struct tcp *tcp);
/* epoll says when there is room again, or does not. */
void quoit_tcp_want_room(struct tcp *tcp, struct connection *connection, bool wants_room);

/* frames.c */

/* Sends what can be sent now. */
void quoit_tcp_send(struct tcp *tcp, struct connection *connection);
bool quoit_tcp_has_to_send(const struct tcp *tcp, const struct connection *connection);
/* Takes what has come, but not for ever. */
void quoit_tcp_receive(struct tcp *tcp, struct connection *connection);
/* What waits to leave by the connection is dropped; its operations are the caller's to report. */
void quoit_tcp_drop(struct connection *connection);

#endif
