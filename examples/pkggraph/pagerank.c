/* SPDX-License-Identifier: BSD-3-Clause */
/* pagerank.c - PageRank by power iteration, on all PEs and, for comparison, on one.
 *
 * In each round a vertex distributes its rank in equal parts to its targets. A PE first adds up the contributions of
 * its vertices to each vertex elsewhere, so that one put carries everything for another PE. These vertices never
 * change: their numbers are sent once, in the same order as the values later.
 */
#include "graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#define DAMPING    0.85
#define CHANGE_END 1e-10
#define ROUNDS_MAX 1000

struct piece { /* of an inbox: what one PE sends */
    uint64_t first, count;
};

struct post {
    uint32_t out_count;     /* vertices, on any PE, that receive rank from here */
    uint32_t *out_vertex;   /* [out_count], increasing, so those of one PE are contiguous */
    double *out_value;      /* [out_count] */
    uint32_t *out_of_edge;  /* where the contribution of each of this PE's edges is added */
    struct piece *out_of;   /* [PE] number of these on that PE */
    uint64_t *place;        /* [PE] their place in its inbox */
    uint32_t *inbox_vertex; /* symmetric */
    double *inbox_value;    /* symmetric */
    struct piece *inbox_of; /* symmetric, [PE] number of values from that PE */
    uint64_t sender_count;
};

static uint64_t reserved; /* symmetric: values of this PE's inbox reserved */
static uint64_t arrived;  /* symmetric: signal, puts that arrived in this PE's inbox */

/* Lists the targets of this PE's edges, each once. */
static void list_targets(const struct share *share, struct post *post)
{
    uint64_t edge_count = share->first[share->mine_count];
    uint32_t *number = private_zeroed(share->vertex_count, sizeof(*number)); /* 0: not a target */
    post->out_of_edge = private_zeroed(edge_count, sizeof(*post->out_of_edge));
    for (uint64_t e = 0; e < edge_count; e++) {
        post->out_count += number[share->target[e]] == 0;
        number[share->target[e]] = 1;
    }
    post->out_vertex = private_zeroed(post->out_count, sizeof(*post->out_vertex));
    post->out_value = private_zeroed(post->out_count, sizeof(*post->out_value));
    for (uint32_t v = 0, next = 0; v < share->vertex_count; v++) {
        if (number[v] != 0) {
            post->out_vertex[next] = v;
            number[v] = next++;
            post->out_of[share_owner(share->vertex_count, v)].count++;
        }
    }
    for (int pe = 1; pe < shmem_n_pes(); pe++)
        post->out_of[pe].first = post->out_of[pe - 1].first + post->out_of[pe - 1].count;
    for (uint64_t e = 0; e < edge_count; e++)
        post->out_of_edge[e] = number[share->target[e]];
    free(number);
}

/* The largest inbox of any PE. */
static uint64_t inbox_room(const struct post *post)
{
    size_t pe_count = (size_t)shmem_n_pes();
    uint64_t *wanted = symmetric_zeroed(2 * pe_count, sizeof(*wanted)), largest = 0;
    for (size_t pe = 0; pe < pe_count; pe++)
        wanted[pe] = post->out_of[pe].count;
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, wanted + pe_count, wanted, pe_count);
    for (size_t pe = pe_count; pe < 2 * pe_count; pe++)
        largest = wanted[pe] > largest ? wanted[pe] : largest;
    shmem_free(wanted);
    return largest;
}

/* Agrees with every PE on the place of this PE's values in its inbox, and on their vertices. */
static struct post post_open(const struct share *share)
{
    int me = shmem_my_pe(), pe_count = shmem_n_pes();
    struct post post = {0};
    post.out_of = private_zeroed((size_t)pe_count, sizeof(*post.out_of));
    post.place = private_zeroed((size_t)pe_count, sizeof(*post.place));
    list_targets(share, &post);
    uint64_t room = inbox_room(&post);
    reserved = arrived = 0;
    post.inbox_vertex = symmetric_zeroed(room, sizeof(*post.inbox_vertex));
    post.inbox_value = symmetric_zeroed(room, sizeof(*post.inbox_value));
    post.inbox_of = symmetric_zeroed((size_t)pe_count, sizeof(*post.inbox_of));
    for (int pe = 0; pe < pe_count; pe++) {
        struct piece out = post.out_of[pe];
        if (out.count == 0)
            continue;
        post.place[pe] = shmem_uint64_atomic_fetch_add(&reserved, out.count, pe);
        struct piece in = {post.place[pe], out.count};
        shmem_uint32_put(post.inbox_vertex + in.first, post.out_vertex + out.first, out.count, pe);
        shmem_putmem(&post.inbox_of[me], &in, sizeof(in), pe);
    }
    shmem_barrier_all();
    for (int pe = 0; pe < pe_count; pe++)
        post.sender_count += post.inbox_of[pe].count > 0;
    return post;
}

static void post_close(struct post *post)
{
    shmem_free(post->inbox_of);
    shmem_free(post->inbox_value);
    shmem_free(post->inbox_vertex);
    free(post->place);
    free(post->out_of);
    free(post->out_of_edge);
    free(post->out_value);
    free(post->out_vertex);
}

/* Sends the ranks of this PE's vertices to their targets. */
static void send_ranks(const struct share *share, struct post *post, const double *rank)
{
    int me = shmem_my_pe(), pe_count = shmem_n_pes();
    memset(post->out_value, 0, post->out_count * sizeof(*post->out_value));
    for (uint32_t v = 0; v < share->mine_count; v++) {
        uint64_t begin = share->first[v], end = share->first[v + 1];
        for (uint64_t e = begin; e < end; e++)
            post->out_value[post->out_of_edge[e]] += rank[v] / (double)(end - begin);
    }
    for (int i = 1; i <= pe_count; i++) {
        int pe = (me + i) % pe_count; /* each PE starts with another one */
        struct piece out = post->out_of[pe];
        if (out.count > 0)
            shmem_double_put_signal(post->inbox_value + post->place[pe], post->out_value + out.first, out.count,
                                    &arrived, 1, SHMEM_SIGNAL_ADD, pe);
    }
}

/* Adds the received values, always in the order of the senders, so that a run is reproducible to the last bit. */
static void receive_ranks(const struct share *share, const struct post *post, double *rank, uint64_t round)
{
    shmem_signal_wait_until(&arrived, SHMEM_CMP_GE, post->sender_count * round);
    for (int pe = 0; pe < shmem_n_pes(); pe++) {
        struct piece in = post->inbox_of[pe];
        for (uint64_t i = in.first; i < in.first + in.count; i++)
            rank[post->inbox_vertex[i] - share->mine_first] += DAMPING * post->inbox_value[i];
    }
}

int pagerank(const struct share *share, double *rank)
{
    static double here[2], all[2]; /* symmetric: the rank of vertices without edges, and the change of all ranks */
    double n = share->vertex_count;
    double *before = private_zeroed(share->mine_count, sizeof(*before));
    struct post post = post_open(share);
    for (uint32_t v = 0; v < share->mine_count; v++)
        rank[v] = 1 / n;
    int round = 0;
    do {
        here[0] = here[1] = 0;
        for (uint32_t v = 0; v < share->mine_count; v++) {
            here[0] += share->first[v] == share->first[v + 1] ? rank[v] : 0;
            here[1] += fabs(rank[v] - before[v]);
        }
        /* also synchronises the PEs: none writes into an inbox that is still being read */
        shmem_double_sum_reduce(SHMEM_TEAM_WORLD, all, here, 2);
        if (all[1] < CHANGE_END)
            break;
        send_ranks(share, &post, rank);
        memcpy(before, rank, share->mine_count * sizeof(*before));
        for (uint32_t v = 0; v < share->mine_count; v++)
            rank[v] = (1 - DAMPING + DAMPING * all[0]) / n;
        receive_ranks(share, &post, rank, (uint64_t)++round);
    } while (round < ROUNDS_MAX);
    shmem_barrier_all();
    post_close(&post);
    free(before);
    return round;
}

int pagerank_alone(const struct graph *graph, double *rank)
{
    double n = graph->vertex_count, change = 1;
    double *before = private_zeroed(graph->vertex_count, sizeof(*before));
    int round = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++)
        rank[v] = 1 / n;
    for (; round < ROUNDS_MAX && change >= CHANGE_END; round++) {
        double lost = 0;
        memcpy(before, rank, graph->vertex_count * sizeof(*before));
        memset(rank, 0, graph->vertex_count * sizeof(*rank));
        for (uint32_t v = 0; v < graph->vertex_count; v++) {
            uint64_t begin = graph->first[v], end = graph->first[v + 1];
            for (uint64_t e = begin; e < end; e++)
                rank[graph->target[e]] += before[v] / (double)(end - begin);
            lost += begin == end ? before[v] : 0;
        }
        change = 0;
        for (uint32_t v = 0; v < graph->vertex_count; v++) {
            rank[v] = (1 - DAMPING + DAMPING * lost) / n + DAMPING * rank[v];
            change += fabs(rank[v] - before[v]);
        }
    }
    free(before);
    return round;
}
