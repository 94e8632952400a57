/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/handle.h"
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/check.h"

#include <pthread.h>
#include <stdlib.h>

#define WORLD_PIECE  0
#define SHARED_PIECE 1
#define FIRST_PIECE  2 /* for teams created by the program */

/* Serializes creation and destruction of contexts and teams. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static uintptr_t handle_of(size_t index, uint32_t use_count)
{
    return (uintptr_t)use_count << QUOIT_HANDLE_BITS | (index + 1);
}

/* Splits a handle; false if it is malformed. */
static bool split_handle(uintptr_t handle, size_t limit, size_t *index_out, uint32_t *use_count_out)
{
    *index_out = (handle & ((1u << QUOIT_HANDLE_BITS) - 1)) - 1;
    *use_count_out = (uint32_t)(handle >> QUOIT_HANDLE_BITS);
    return *index_out < limit;
}

/* --- teams --- */

static void fill_predefined(struct quoit_team_slot *teams)
{
    const struct quoit_layout *layout = &quoit_job.boot.layout;
    teams[0] = (struct quoit_team_slot){.state = quoit_job.world,
                                        .range = {.start = 0, .stride = 1, .size = quoit_job.pe_count},
                                        .piece = WORLD_PIECE,
                                        .rank = quoit_job.pe,
                                        .call_count = (uint64_t)quoit_job.init_number << 32};
    teams[1] = (struct quoit_team_slot){.range = {.start = layout->first_pe, .stride = 1, .size = layout->local_count},
                                        .piece = SHARED_PIECE,
                                        .rank = quoit_job.pe - layout->first_pe,
                                        .call_count = (uint64_t)quoit_job.init_number << 32};
}

static struct quoit_team_slot *team_table(const char *call)
{
    quoit_check_running(call);
    pthread_mutex_lock(&table_lock);
    if (!quoit_job.teams) {
        quoit_job.teams = calloc(QUOIT_TEAMS_MAX, sizeof *quoit_job.teams);
        if (!quoit_job.teams)
            quoit_boot_abort(&quoit_job.boot, 1, "no memory for the table of teams");
        fill_predefined(quoit_job.teams);
    }
    pthread_mutex_unlock(&table_lock);
    return quoit_job.teams;
}

struct quoit_team_slot *quoit_team_of(shmem_team_t team, const char *call)
{
    struct quoit_team_slot *teams = team_table(call);
    size_t index;
    uint32_t use_count;
    char place[QUOIT_AUDIT_PLACE_BYTES];
    if (team == SHMEM_TEAM_INVALID)
        quoit_wrong(QUOIT_WRONG_TEAM, call, "team is SHMEM_TEAM_INVALID, but a team that this PE is in is needed");
    if (!split_handle((uintptr_t)team, QUOIT_TEAMS_MAX, &index, &use_count))
        quoit_wrong(QUOIT_WRONG_TEAM, call, "team is %p, which is no team", (void *)team);
    if (use_count != teams[index].use_count || teams[index].range.size == 0)
        quoit_wrong(QUOIT_WRONG_TEAM, call, "team is %p, which was destroyed%s or never made", (void *)team,
                    quoit_audit_place(quoit_job.audit ? teams[index].ended_from : 0, place));
    return &teams[index];
}

struct quoit_team_slot *quoit_team_for_collective(shmem_team_t team, const char *call)
{
    struct quoit_team_slot *slot = quoit_team_of(team, call);
    if (!slot->state) /* SHARED: its workspace is reserved from the start, so creating it needs no agreement */
        slot->state = quoit_team_new(quoit_job.fabric, &slot->range, slot->piece, quoit_job_first_flag());
    if (!slot->state)
        quoit_boot_abort(&quoit_job.boot, 1, "no memory for a team");
    return slot;
}

QUOIT_API(int, team_my_pe, (shmem_team_t team))
{
    QUOIT_JOB_ENTER("shmem_team_my_pe");
    quoit_check_running("shmem_team_my_pe");
    return team == SHMEM_TEAM_INVALID ? -1 : (int)quoit_team_of(team, "shmem_team_my_pe")->rank;
}

QUOIT_API(int, team_n_pes, (shmem_team_t team))
{
    QUOIT_JOB_ENTER("shmem_team_n_pes");
    quoit_check_running("shmem_team_n_pes");
    return team == SHMEM_TEAM_INVALID ? -1 : (int)quoit_team_of(team, "shmem_team_n_pes")->range.size;
}

QUOIT_API(int, team_get_config, (shmem_team_t team, long config_mask, shmem_team_config_t *config))
{
    const char *call = "shmem_team_get_config";
    QUOIT_JOB_ENTER(call);
    quoit_check_running(call);
    if (team == SHMEM_TEAM_INVALID)
        return -1;
    const struct quoit_team_slot *slot = quoit_team_of(team, call);
    if (config_mask == 0)
        return 0;
    quoit_check_private(config, sizeof *config, "config", call);
    *config = slot->config;
    return 0;
}

QUOIT_API(int, team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
{
    const char *call = "shmem_team_translate_pe";
    QUOIT_JOB_ENTER(call);
    quoit_check_running(call);
    if (src_team == SHMEM_TEAM_INVALID || dest_team == SHMEM_TEAM_INVALID)
        return -1;
    const struct quoit_team_slot *from = quoit_team_of(src_team, call);
    const struct quoit_team_range *to = &quoit_team_of(dest_team, call)->range;
    if (src_pe < 0 || (uint32_t)src_pe >= from->range.size)
        return -1;
    int64_t distance = (int64_t)quoit_team_pe(from, (uint32_t)src_pe) - (int64_t)to->start;
    int32_t stride = (int32_t)to->stride;
    if (distance == 0)
        return 0;
    if (stride == 0 || distance % stride != 0 || distance / stride < 0 || distance / stride >= (int64_t)to->size)
        return -1;
    return (int)(distance / stride);
}

static uint64_t team_flag(void)
{
    pthread_mutex_lock(&table_lock);
    uint64_t flag = quoit_job.team_flag;
    pthread_mutex_unlock(&table_lock);
    return flag;
}

/* Pieces of the workspace that this PE's teams hold, and those that its splits are about to take, as bits. */
static uint64_t used_pieces_locked(void)
{
    const struct quoit_team_slot *teams = quoit_job.teams;
    uint64_t used = (1u << FIRST_PIECE) - 1;
    _Static_assert(QUOIT_TEAM_PIECES < 64, "the pieces are bits of a word");
    used |= ~0ull << QUOIT_TEAM_PIECES | quoit_job.team_pieces;
    for (size_t i = FIRST_PIECE; i < QUOIT_TEAMS_MAX; i++)
        if (teams[i].range.size != 0)
            used |= 1ull << teams[i].piece;
    return used;
}

static uint64_t used_pieces(void)
{
    pthread_mutex_lock(&table_lock);
    uint64_t used = used_pieces_locked();
    pthread_mutex_unlock(&table_lock);
    return used;
}

/* Reserves a piece against splits of other threads; false: one of them has it. */
static bool reserve_piece(uint32_t piece)
{
    pthread_mutex_lock(&table_lock);
    bool is_free = (used_pieces_locked() & 1ull << piece) == 0;
    if (is_free)
        quoit_job.team_pieces |= 1ull << piece;
    pthread_mutex_unlock(&table_lock);
    return is_free;
}

static void release_piece(uint32_t piece)
{
    pthread_mutex_lock(&table_lock);
    quoit_job.team_pieces &= ~(1ull << piece);
    pthread_mutex_unlock(&table_lock);
}

/* A slot that holds the team, or NULL. */
static struct quoit_team_slot *fill_slot_locked(const struct quoit_team_slot *filled, uint64_t first_flag)
{
    struct quoit_team_slot *teams = quoit_job.teams;
    for (size_t i = FIRST_PIECE; i < QUOIT_TEAMS_MAX; i++) {
        if (teams[i].range.size != 0)
            continue;
        struct quoit_team_state *state = quoit_team_new(quoit_job.fabric, &filled->range, filled->piece, first_flag);
        if (!state)
            return NULL;
        uint32_t use_count = teams[i].use_count;
        teams[i] = *filled;
        teams[i].state = state;
        teams[i].use_count = use_count;
        return &teams[i];
    }
    return NULL;
}

/* On a reserved piece, which then belongs to the team. */
static shmem_team_t new_team(const struct quoit_team_slot *filled, uint64_t first_flag)
{
    pthread_mutex_lock(&table_lock);
    const struct quoit_team_slot *slot = fill_slot_locked(filled, first_flag);
    quoit_job.team_pieces &= ~(1ull << filled->piece);
    pthread_mutex_unlock(&table_lock);
    return slot ? (shmem_team_t)handle_of((size_t)(slot - quoit_job.teams), slot->use_count) : SHMEM_TEAM_INVALID;
}

static void release_team(struct quoit_team_slot *slot)
{
    pthread_mutex_lock(&table_lock);
    uint64_t next = quoit_team_next_flag(slot->state);
    next = next > slot->call_count ? next : slot->call_count + 1; /* counts start at the flags */
    if (quoit_job.team_flag < next)
        quoit_job.team_flag = next;
    quoit_team_delete(slot->state);
    slot->state = NULL;
    slot->range.size = 0;
    slot->made_by = NULL;
    slot->ended_from = quoit_audit_from();
    slot->use_count++;
    pthread_mutex_unlock(&table_lock);
}

struct split {
    int start;
    int stride;
    int size;
};

/* The first free piece from a start that differs between parents, so that concurrent splits rarely choose the same one.
 */
static uint32_t choose_piece(uint64_t used, uint32_t parent_piece, uint32_t turn)
{
    uint32_t piece = (parent_piece * 5 + turn * (parent_piece + 1)) % QUOIT_TEAM_PIECES;
    while (used & 1ull << piece)
        piece = (piece + 1) % QUOIT_TEAM_PIECES;
    return piece;
}

/* Finds a piece that is free on all members of the part, reserves it on each, and finds the first flag of the new team.
 * False: there is none. Threads of a PE may split different teams at once: if another thread took the piece on some
 * member meanwhile, all members try again. */
static bool agree_on_piece(struct quoit_team_slot *parent, bool is_member, uint32_t *piece_out, uint64_t *flag_out,
                           const char *call)
{
    for (uint32_t turn = 0;; turn++) {
        uint64_t used = quoit_coll_agree(parent->state, is_member ? used_pieces() : 0, call);
        if (used == ~0ull)
            return false;
        *piece_out = choose_piece(used, parent->piece, turn);
        bool is_mine = !is_member || reserve_piece(*piece_out);
        *flag_out = quoit_coll_largest(parent->state, is_mine ? team_flag() : UINT64_MAX, call);
        if (*flag_out != UINT64_MAX)
            return true;
        if (is_member && is_mine)
            release_piece(*piece_out);
    }
}

/* Collective over the parent. Each PE gives its part, disjoint from the parts of others, or none (size 0). The PEs
 * agree on a piece that is free on all members, on its first flag, then on success; the last agreement is also the sync
 * after which the new teams may be used. */
static int split_parent(struct quoit_team_slot *parent, struct split part, uint32_t rank,
                        const shmem_team_config_t *config, shmem_team_t *team_out, const char *call)
{
    uint32_t piece;
    uint64_t first_flag;
    bool is_member = part.size != 0;
    *team_out = SHMEM_TEAM_INVALID;
    if (!agree_on_piece(parent, is_member, &piece, &first_flag, call))
        return -1;
    const struct quoit_team_slot filled = {.range = {.start = quoit_team_pe(parent, (uint32_t)part.start),
                                                     .stride = (uint32_t)part.stride * parent->range.stride,
                                                     .size = (uint32_t)part.size},
                                           .piece = piece,
                                           .rank = rank,
                                           .config = *config,
                                           .call_count = first_flag,
                                           .made_by = call,
                                           .made_from = quoit_audit_from()};
    shmem_team_t made = is_member ? new_team(&filled, first_flag) : SHMEM_TEAM_INVALID;
    uint64_t is_failed = quoit_coll_agree(parent->state, is_member && made == SHMEM_TEAM_INVALID, call);
    if (is_failed && made != SHMEM_TEAM_INVALID) {
        release_team(quoit_team_of(made, call));
        made = SHMEM_TEAM_INVALID;
    }
    *team_out = made;
    return is_failed ? -1 : 0;
}

/* The rank in the part of a PE of the parent, or -1. */
static int rank_in_part(struct split part, int pe)
{
    int distance = pe - part.start;
    if (part.size == 1)
        return distance == 0 ? 0 : -1;
    if (distance % part.stride != 0 || distance / part.stride < 0 || distance / part.stride >= part.size)
        return -1;
    return distance / part.stride;
}

static bool is_valid_split(const struct quoit_team_slot *parent, struct split split)
{
    int64_t last = split.start + (int64_t)split.stride * (split.size - 1);
    return split.size >= 1 && split.start >= 0 && (uint32_t)split.start < parent->range.size && last >= 0 &&
           last < (int64_t)parent->range.size && (split.stride != 0 || split.size == 1);
}

static shmem_team_config_t chosen_config(const shmem_team_config_t *config, long mask, const char *call)
{
    if ((mask & ~SHMEM_TEAM_NUM_CONTEXTS) != 0)
        quoit_wrong(QUOIT_WRONG_CHOICE, call, "config_mask is %ld, but only SHMEM_TEAM_NUM_CONTEXTS (%ld) exists", mask,
                    SHMEM_TEAM_NUM_CONTEXTS);
    if (mask == 0)
        return (shmem_team_config_t){.num_contexts = 0};
    quoit_check_private(config, sizeof *config, "config", call);
    return *config;
}

QUOIT_API(int, team_split_strided,
          (shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config,
           long config_mask, shmem_team_t *new_team_out))
{
    const char *call = "shmem_team_split_strided";
    struct split split = {start, stride, size};
    QUOIT_JOB_ENTER(call);
    quoit_check_running(call);
    quoit_check_private(new_team_out, sizeof *new_team_out, "new_team", call);
    *new_team_out = SHMEM_TEAM_INVALID;
    if (parent_team == SHMEM_TEAM_INVALID)
        return -1;
    struct quoit_team_slot *parent = quoit_team_for_collective(parent_team, call);
    shmem_team_config_t chosen = chosen_config(config, config_mask, call);
    QUOIT_SPAN(call);
    quoit_span_group(&call_span, &parent->range, 0);
    QUOIT_AUDIT_COLLECTIVE(parent, call, {"start", (uint64_t)start, QUOIT_AUDIT_NUMBER},
                           {"stride", (uint64_t)stride, QUOIT_AUDIT_NUMBER},
                           {"size", (uint64_t)size, QUOIT_AUDIT_NUMBER});
    if (!is_valid_split(parent, split))
        return -1;
    int rank = rank_in_part(split, (int)parent->rank);
    if (rank < 0)
        split.size = 0;
    return split_parent(parent, split, (uint32_t)rank, &chosen, new_team_out, call);
}

/* Rows of xrange PEs: a PE's x team is its row, its y team its column. Rows are disjoint, so all are made at once;
 * columns likewise. */
QUOIT_API(int, team_split_2d,
          (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,
           shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,
           shmem_team_t *yaxis_team))
{
    const char *call = "shmem_team_split_2d";
    QUOIT_JOB_ENTER(call);
    quoit_check_running(call);
    quoit_check_private(xaxis_team, sizeof *xaxis_team, "xaxis_team", call);
    quoit_check_private(yaxis_team, sizeof *yaxis_team, "yaxis_team", call);
    *xaxis_team = SHMEM_TEAM_INVALID;
    *yaxis_team = SHMEM_TEAM_INVALID;
    if (parent_team == SHMEM_TEAM_INVALID || xrange < 1)
        return -1;
    struct quoit_team_slot *parent = quoit_team_for_collective(parent_team, call);
    shmem_team_config_t x_config = chosen_config(xaxis_config, xaxis_mask, call);
    shmem_team_config_t y_config = chosen_config(yaxis_config, yaxis_mask, call);
    QUOIT_SPAN(call);
    quoit_span_group(&call_span, &parent->range, 0);
    QUOIT_AUDIT_COLLECTIVE(parent, call, {"xrange", (uint64_t)xrange, QUOIT_AUDIT_NUMBER});
    int total = (int)parent->range.size;
    int width = xrange < total ? xrange : total;
    int x = (int)parent->rank % width, y = (int)parent->rank / width;
    struct split row = {y * width, 1, (y + 1) * width <= total ? width : total - y * width};
    struct split column = {x, width, (total - x + width - 1) / width};
    if (split_parent(parent, row, (uint32_t)x, &x_config, xaxis_team, call) != 0)
        return -1;
    if (split_parent(parent, column, (uint32_t)y, &y_config, yaxis_team, call) == 0)
        return 0;
    release_team(quoit_team_of(*xaxis_team, call));
    *xaxis_team = SHMEM_TEAM_INVALID;
    return -1;
}

static void end_ctx(struct quoit_ctx_slot *slot)
{
    quoit_fabric_quiet(quoit_job.fabric, &slot->context);
    pthread_mutex_lock(&table_lock);
    quoit_job.fast.contexts[slot - quoit_job.contexts].handle = 0;
    __atomic_store_n(&slot->team, NULL, __ATOMIC_RELAXED);
    slot->use_count++;
    slot->ended_from = quoit_audit_from();
    pthread_mutex_unlock(&table_lock);
}

/* Destroying a team destroys its contexts. Contexts of other teams may be created and destroyed meanwhile. */
static void end_contexts_of(const struct quoit_team_slot *team)
{
    pthread_mutex_lock(&table_lock);
    struct quoit_ctx_slot *contexts = quoit_job.contexts;
    pthread_mutex_unlock(&table_lock);
    for (size_t i = 1; contexts && i < QUOIT_CONTEXTS_MAX; i++)
        if (__atomic_load_n(&contexts[i].team, __ATOMIC_RELAXED) == team)
            end_ctx(&contexts[i]);
}

QUOIT_API(void, team_destroy, (shmem_team_t team))
{
    const char *call = "shmem_team_destroy";
    QUOIT_JOB_ENTER(call);
    quoit_check_running(call);
    if (team == SHMEM_TEAM_INVALID)
        return;
    struct quoit_team_slot *slot = quoit_team_of(team, call);
    if (slot->piece < FIRST_PIECE)
        quoit_wrong(QUOIT_WRONG_TEAM, call, "team is %s, which cannot be destroyed",
                    slot->piece == WORLD_PIECE ? "SHMEM_TEAM_WORLD" : "SHMEM_TEAM_SHARED");
    QUOIT_SPAN(call);
    quoit_span_group(&call_span, &slot->range, 0);
    QUOIT_AUDIT_COLLECTIVE(slot, call, {0});
    end_contexts_of(slot);
    quoit_coll_sync(slot->state, call); /* no member is inside any more when the workspace is reused */
    release_team(slot);
}

/* --- contexts --- */

static void check_owner(const struct quoit_ctx_slot *slot, const char *call)
{
    char place[QUOIT_AUDIT_PLACE_BYTES];
    if ((slot->options & SHMEM_CTX_PRIVATE) && slot->owner != (uint64_t)pthread_self())
        quoit_wrong(QUOIT_WRONG_THREAD, call,
                    "ctx is SHMEM_CTX_PRIVATE%s, so only the thread that made it may use it, but another does",
                    quoit_audit_place(slot->made_from, place));
}

static struct quoit_ctx_slot *find_ctx(shmem_ctx_t ctx, const char *call)
{
    char place[QUOIT_AUDIT_PLACE_BYTES];
    size_t index;
    uint32_t use_count;
    if (ctx == SHMEM_CTX_INVALID)
        quoit_wrong(QUOIT_WRONG_CONTEXT, call, "ctx is SHMEM_CTX_INVALID, but a context is needed");
    if (!split_handle((uintptr_t)ctx, QUOIT_CONTEXTS_MAX, &index, &use_count) || !quoit_job.contexts)
        quoit_wrong(QUOIT_WRONG_CONTEXT, call, "ctx is %p, which is no context", (void *)ctx);
    struct quoit_ctx_slot *slot = &quoit_job.contexts[index];
    if (!slot->team || slot->use_count != use_count)
        quoit_wrong(QUOIT_WRONG_CONTEXT, call, "ctx is %p, which was destroyed%s or never made", (void *)ctx,
                    quoit_audit_place(quoit_job.audit ? slot->ended_from : 0, place));
    if (__builtin_expect(quoit_job.audit != NULL, 0)) {
        check_owner(slot, call);
        quoit_audit_use(slot, call);
    }
    return slot;
}

struct quoit_context *quoit_ctx_of(shmem_ctx_t ctx, const char *call)
{
    quoit_check_running(call);
    return ctx == SHMEM_CTX_DEFAULT ? &quoit_job.fabric->default_context : &find_ctx(ctx, call)->context;
}

struct quoit_context *quoit_ctx_reach(shmem_ctx_t ctx, int *pe_inout, const char *call)
{
    int pe = *pe_inout;
    quoit_check_running(call);
    if (ctx == SHMEM_CTX_DEFAULT) {
        if ((uint32_t)pe >= quoit_job.pe_count)
            quoit_wrong_pe(call, "pe", pe, quoit_job.pe_count, "the job");
        return &quoit_job.fabric->default_context;
    }
    const struct quoit_fast_context *known = quoit_job_context((uintptr_t)ctx);
    if (__builtin_expect(known && (uint32_t)pe < known->size && !quoit_job.audit, 1)) {
        *pe_inout = (int)quoit_fast_context_pe(known, (uint32_t)pe);
        return known->context;
    }
    struct quoit_ctx_slot *slot = find_ctx(ctx, call);
    if ((uint32_t)pe >= slot->team->range.size)
        quoit_wrong_pe(call, "pe", pe, slot->team->range.size, "the team of ctx");
    *pe_inout = (int)quoit_team_pe(slot->team, (uint32_t)pe);
    return &slot->context;
}

uint32_t quoit_ctx_pe_count(shmem_ctx_t ctx, const char *call)
{
    return ctx == SHMEM_CTX_DEFAULT ? quoit_job.pe_count : find_ctx(ctx, call)->team->range.size;
}

/* The first free slot; slot 0 is the default context. */
static struct quoit_ctx_slot *take_ctx_slot(const struct quoit_team_slot *team, shmem_team_t handle)
{
    struct quoit_ctx_slot *taken = NULL;
    pthread_mutex_lock(&table_lock);
    if (!quoit_job.fast.contexts)
        quoit_job.fast.contexts = calloc(QUOIT_CONTEXTS_MAX, sizeof *quoit_job.fast.contexts);
    if (!quoit_job.contexts && quoit_job.fast.contexts)
        quoit_job.contexts = calloc(QUOIT_CONTEXTS_MAX, sizeof *quoit_job.contexts);
    for (size_t i = 1; quoit_job.contexts && i < QUOIT_CONTEXTS_MAX && !taken; i++) {
        struct quoit_ctx_slot *slot = &quoit_job.contexts[i];
        if (slot->team)
            continue;
        quoit_context_init(&slot->context, (uint32_t)i);
        __atomic_store_n(&slot->team, team, __ATOMIC_RELAXED);
        slot->team_handle = handle;
        taken = slot;
    }
    pthread_mutex_unlock(&table_lock);
    return taken;
}

static int create_ctx(shmem_team_t team, long options, shmem_ctx_t *ctx, const char *call)
{
    QUOIT_SPAN(call);
    const long known = SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE;
    quoit_check_running(call);
    quoit_check_private(ctx, sizeof *ctx, "ctx", call);
    *ctx = SHMEM_CTX_INVALID;
    if ((options & ~known) != 0)
        quoit_wrong(QUOIT_WRONG_CHOICE, call,
                    "options is %ld, but only SHMEM_CTX_SERIALIZED, _PRIVATE and _NOSTORE exist", options);
    if (team == SHMEM_TEAM_INVALID)
        return -1;
    struct quoit_ctx_slot *slot = take_ctx_slot(quoit_team_of(team, call), team);
    if (!slot)
        return -1;
    slot->options = options;
    slot->owner = (uint64_t)pthread_self();
    slot->made_by = call;
    slot->made_from = quoit_audit_from();
    size_t index = (size_t)(slot - quoit_job.contexts);
    *ctx = (shmem_ctx_t)handle_of(index, slot->use_count);
    quoit_job.fast.contexts[index] = (struct quoit_fast_context){.handle = (uintptr_t)*ctx,
                                                                 .context = &slot->context,
                                                                 .start = slot->team->range.start,
                                                                 .stride = slot->team->range.stride,
                                                                 .size = slot->team->range.size};
    return 0;
}

QUOIT_API(int, ctx_create, (long options, shmem_ctx_t *ctx))
{
    QUOIT_JOB_ENTER("shmem_ctx_create");
    return create_ctx(SHMEM_TEAM_WORLD, options, ctx, "shmem_ctx_create");
}

QUOIT_API(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx))
{
    QUOIT_JOB_ENTER("shmem_team_create_ctx");
    return create_ctx(team, options, ctx, "shmem_team_create_ctx");
}

QUOIT_API(void, ctx_destroy, (shmem_ctx_t ctx))
{
    const char *call = "shmem_ctx_destroy";
    QUOIT_JOB_ENTER(call);
    quoit_check_running(call);
    if (ctx == SHMEM_CTX_INVALID)
        return;
    if (ctx == SHMEM_CTX_DEFAULT)
        quoit_wrong(QUOIT_WRONG_CONTEXT, call, "ctx is SHMEM_CTX_DEFAULT, which cannot be destroyed");
    QUOIT_SPAN(call);
    end_ctx(find_ctx(ctx, call));
}

QUOIT_API(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team))
{
    const char *call = "shmem_ctx_get_team";
    QUOIT_JOB_ENTER(call);
    quoit_check_running(call);
    quoit_check_private(team, sizeof *team, "team", call);
    *team = SHMEM_TEAM_INVALID;
    if (ctx == SHMEM_CTX_INVALID)
        return -1;
    *team = ctx == SHMEM_CTX_DEFAULT ? SHMEM_TEAM_WORLD : find_ctx(ctx, call)->team_handle;
    return 0;
}

/* The specification permits a session on SHMEM_CTX_INVALID. */
static void check_session(shmem_ctx_t ctx, const char *call)
{
    quoit_check_running(call);
    if (ctx != SHMEM_CTX_INVALID)
        quoit_ctx_of(ctx, call);
}

QUOIT_API(void, ctx_session_start,
          (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask))
{
    QUOIT_JOB_ENTER("shmem_ctx_session_start");
    check_session(ctx, "shmem_ctx_session_start");
    (void)options; /* all options are hints, and none makes a difference here */
    (void)config;
    (void)config_mask;
}

QUOIT_API(void, ctx_session_stop, (shmem_ctx_t ctx))
{
    QUOIT_JOB_ENTER("shmem_ctx_session_stop");
    check_session(ctx, "shmem_ctx_session_stop");
}

void quoit_handles_quiet(void)
{
    for (size_t i = 1; quoit_job.contexts && i < QUOIT_CONTEXTS_MAX; i++)
        if (quoit_job.contexts[i].team)
            quoit_fabric_quiet(quoit_job.fabric, &quoit_job.contexts[i].context);
    for (size_t i = 0; quoit_job.teams && i < QUOIT_TEAMS_MAX; i++)
        if (quoit_job.teams[i].state)
            quoit_team_quiet(quoit_job.teams[i].state);
}

void quoit_handles_end(void)
{
    if (quoit_job.teams)
        quoit_team_delete(quoit_job.teams[1].state); /* SHARED: its flags are numbered by initializations */
    for (size_t i = FIRST_PIECE; quoit_job.teams && i < QUOIT_TEAMS_MAX; i++)
        if (quoit_job.teams[i].range.size != 0)
            release_team(&quoit_job.teams[i]); /* teams of a later initialization begin above its flags */
    free(quoit_job.teams);
    free(quoit_job.contexts);
    quoit_job.teams = NULL;
    quoit_job.contexts = NULL;
}
