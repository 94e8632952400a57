/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver for UCX: one worker a host and one endpoint a peer, progressed by its caller.
 *
 * UCX says that a put is complete when its source may change. It is in the target's memory when a flush of the endpoint
 * that began after it ends, so each progress begins one flush for all puts since the last, and the puts are done with
 * it. Messages are eager active messages below one segment, which keep their order. Over TCP, puts and gets are frames
 * of our own (frames.c).
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include "base/digest.h"
#include "env/clock.h"
#include "env/signals.h"
#include "net/candidates.h"
#include "net/devices.h"
#include "net/interfaces.h"
#include "net/ucx/ucx.h"

#define SEND_COUNT  128u
#define SENDS_MAX   (SEND_COUNT / 4) /* to one host, so that one that hangs leaves some for the others */
#define BATCH_COUNT 32               /* steps of UCX in one progress */
#define CLOSE_NS    200000000u       /* what was sent may leave the host before the end closes */
#define DEVICES_MAX 64u
#define OPENING_NS  8000000u /* measured over tcp */

/* What this driver takes by itself, best first; others only if they are named. */
static const char *const ranking[] = {"dc_mlx5", "rc_mlx5", "rc_verbs", "tcp"};
#define RANK_COUNT (sizeof ranking / sizeof ranking[0])

/* Before an address or a key: neither is parsed unless it arrived whole. */
struct wire_header {
    uint64_t base; /* of the memory; the end's secret for an address */
    uint32_t bytes;
    uint32_t digest;
};

struct window {
    ucp_rkey_h key; /* NULL: frames need none */
    uint64_t base;
};

/* Choosing */

struct device {
    char transport[UCT_TL_NAME_MAX];
    char name[UCT_DEVICE_NAME_MAX];
    struct quoit_interface interface; /* its best address; no device: it has none */
};

static uint32_t list_domain(uct_component_h component, const char *name, struct device *devices_out, uint32_t count)
{
    uct_md_config_t *config = NULL;
    uct_md_h domain = NULL;
    uct_tl_resource_desc_t *resources = NULL;
    unsigned resource_count = 0;
    if (uct_md_config_read(component, NULL, NULL, &config) != UCS_OK)
        return count;
    if (uct_md_open(component, name, config, &domain) == UCS_OK) {
        if (uct_md_query_tl_resources(domain, &resources, &resource_count) != UCS_OK)
            resource_count = 0;
        for (unsigned i = 0; i < resource_count && count < DEVICES_MAX; i++) {
            if (resources[i].dev_type != UCT_DEVICE_TYPE_NET)
                continue;
            struct device *device = &devices_out[count++];
            memset(device, 0, sizeof *device);
            snprintf(device->transport, sizeof device->transport, "%s", resources[i].tl_name);
            snprintf(device->name, sizeof device->name, "%s", resources[i].dev_name);
        }
        if (resources)
            uct_release_tl_resource_list(resources);
        uct_md_close(domain);
    }
    uct_config_release(config);
    return count;
}

/* The networks of this machine as UCX tells them. */
static uint32_t list_devices(struct device devices_out[DEVICES_MAX])
{
    uct_component_h *components = NULL;
    unsigned component_count = 0;
    uint32_t count = 0;
    if (uct_query_components(&components, &component_count) != UCS_OK)
        return 0;
    for (unsigned i = 0; i < component_count; i++) {
        uct_md_resource_desc_t domains[DEVICES_MAX];
        uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
        if (uct_component_query(components[i], &attr) != UCS_OK || attr.md_resource_count > DEVICES_MAX)
            continue;
        unsigned domain_count = attr.md_resource_count;
        attr = (uct_component_attr_t){.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES, .md_resources = domains};
        if (uct_component_query(components[i], &attr) != UCS_OK)
            continue;
        for (unsigned j = 0; j < domain_count; j++)
            count = list_domain(components[i], domains[j].md_name, devices_out, count);
    }
    uct_release_component_list(components);
    return count;
}

/* One for each device. */
static uint32_t list(const char *provider, const char *wanted, struct device devices_out[DEVICES_MAX],
                     struct quoit_net_candidate candidates_out[DEVICES_MAX])
{
    struct quoit_interface interfaces[QUOIT_INTERFACES_MAX];
    uint32_t count = list_devices(devices_out), interface_count = quoit_interfaces_list(interfaces);
    for (uint32_t i = 0; i < count; i++) {
        struct device *device = &devices_out[i];
        const struct quoit_interface *best = quoit_interface_best(interfaces, interface_count, device->name);
        if (best)
            device->interface = *best;
        struct quoit_net_choice *choice = &candidates_out[i].choice;
        uint64_t rank = 0;
        while (rank < RANK_COUNT && strcmp(ranking[rank], device->transport) != 0)
            rank++;
        const struct quoit_net_place *place = &device->interface.place;
        candidates_out[i] = (struct quoit_net_candidate){
            .choice = {.driver = "ucx"}, .cost = rank * QUOIT_NET_PLACE_COSTS + quoit_net_place_cost(place)};
        snprintf(choice->provider, sizeof choice->provider, "%s", device->transport);
        snprintf(choice->device, sizeof choice->device, "%s", device->name);
        bool is_device = quoit_devices_take(wanted, device->name, &place->address);
        if (is_device && (provider ? strcmp(device->transport, provider) == 0 : rank < RANK_COUNT))
            quoit_net_say_usable(choice, device->interface.text, place->kind == QUOIT_NET_PLACE_LOOPBACK);
        else
            quoit_net_say_unusable(choice, provider, wanted);
    }
    return count;
}

static uint32_t survey(const char *provider, const char *wanted, struct quoit_net_choice *choices_out,
                       uint32_t max_count)
{
    struct device devices[DEVICES_MAX];
    struct quoit_net_candidate candidates[DEVICES_MAX];
    return quoit_net_survey_candidates(candidates, list(provider, wanted, devices, candidates), "ucx", provider, wanted,
                                       choices_out, max_count);
}

/* Reports */

static void on_complete(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
    quoit_ucx_finish(user_data, status);
}

static void end_flush(struct peer *peer, ucs_status_t status)
{
    peer->is_flushing = false;
    quoit_ucx_finish_all(quoit_ucx_take_all(&peer->flushed), status);
}

static void on_flushed(void *request, ucs_status_t status, void *user_data)
{
    ucp_request_free(request);
    end_flush(user_data, status);
}

static void on_failed(void *arg, ucp_ep_h endpoint, ucs_status_t status)
{
    struct peer *peer = arg;
    (void)status;
    if (peer->coming || (peer->endpoint && endpoint != peer->endpoint))
        return; /* of a PE endpoint that has gone, and another one has come */
    peer->is_failed = true;
    peer->ucx->events.broken(peer->ucx->events.arg, peer->host);
}

static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes, void *data, size_t bytes,
                               const ucp_am_recv_param_t *param)
{
    struct ucx *ucx = arg;
    _Alignas(8) char aligned[MESSAGE_BYTES];
    (void)header;
    ucx->done_count++;
    if (header_bytes != 0 || bytes > MESSAGE_BYTES || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0)
        return UCS_OK; /* an unauthenticated peer's */
    if ((uintptr_t)data % 8 != 0)
        data = memcpy(aligned, data, bytes);
    ucx->events.message(ucx->events.arg, data, (uint32_t)bytes);
    return UCS_OK;
}

/* Opening */

static enum quoit_status refuse(char problem[QUOIT_NET_PROBLEM_BYTES], const char *what, ucs_status_t status)
{
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "UCX: %s: %s", what, ucs_status_string(status));
    return QUOIT_SYSTEM;
}

/* Ends of rc agree on their numbers over ud, which UCX's names rc_v and rc_x have with them. */
static const char *transports_of(const struct device *device)
{
    if (strcmp(device->transport, "rc_verbs") == 0)
        return "rc_v";
    return strcmp(device->transport, "rc_mlx5") == 0 ? "rc_x" : device->transport;
}

/* What UCX takes for granted of Mellanox's adapters, and others do not have. */
static ucs_status_t configure_verbs(ucp_config_t *config)
{
    /* Until UCX 1.19 ud has the kind of a packet from its service level: over IPv4 it dropped every datagram. */
    ucs_status_t status = ucp_config_modify(config, "UD_ETH_DGID_CHECK", "n");
    /* Soft-RoCE tells more than once that a queue pair has ended, which trips an assertion of UCX. Without events it
       frees them with its worker. */
    return status == UCS_OK ? ucp_config_modify(config, "ASYNC_EVENTS", "n") : status;
}

static ucs_status_t configure_ports(struct quoit_ports ports, ucp_config_t *config)
{
    char text[QUOIT_PORTS_BYTES];
    snprintf(text, sizeof text, "%u-%u", ports.low, ports.high);
    return ports.low == 0 ? UCS_OK : ucp_config_modify(config, "TCP_PORT_RANGE", text);
}

static ucs_status_t configure(const struct ucx *ucx, const struct device *device, struct quoit_ports ports,
                              ucp_config_t *config)
{
    ucs_status_t status = ucp_config_modify(config, "TLS", transports_of(device));
    if (status == UCS_OK)
        status = ucp_config_modify(config, "NET_DEVICES", device->name);
    if (status == UCS_OK && strcmp(device->transport, "rc_verbs") == 0)
        status = configure_verbs(config);
    if (status == UCS_OK && ucx->has_frames)
        status = quoit_ucx_configure_frames(config);
    if (status == UCS_OK && ucx->has_frames)
        status = configure_ports(ports, config);
    return status;
}

/* A PE endpoint does not sleep on its worker. */
static enum quoit_status open_context(struct ucx *ucx, const struct device *device,
                                      const struct quoit_net_driver_config *own, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    ucp_config_t *config;
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                                               UCP_PARAM_FIELD_NAME,
                                 .features = UCP_FEATURE_AM | (own->is_pe_endpoint ? 0 : UCP_FEATURE_WAKEUP) |
                                             (ucx->has_frames ? 0 : UCP_FEATURE_RMA),
                                 .estimated_num_eps = ucx->host_count,
                                 .name = "quoit"};
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return refuse(problem, "ucp_config_read", status);
    status = configure(ucx, device, own->ports, config);
    if (status == UCS_OK)
        status = ucp_init(&params, config, &ucx->context);
    ucp_config_release(config);
    return status == UCS_OK ? QUOIT_OK : refuse(problem, "ucp_init", status);
}

/* An address or a key with its header in front. */
static bool wrap(uint64_t base, const void *text, size_t bytes, unsigned char *data_out, uint32_t *bytes_out,
                 size_t max_bytes)
{
    const struct wire_header header = {.base = base, .bytes = (uint32_t)bytes, .digest = quoit_digest(text, bytes)};
    if (sizeof header + bytes > max_bytes)
        return false;
    memcpy(data_out, &header, sizeof header);
    memcpy(data_out + sizeof header, text, bytes);
    *bytes_out = (uint32_t)(sizeof header + bytes);
    return true;
}

/* What follows the header; NULL: it did not arrive whole. */
static const void *unwrap(const unsigned char *data, uint32_t bytes, struct wire_header *header_out)
{
    if (bytes < sizeof *header_out)
        return NULL;
    memcpy(header_out, data, sizeof *header_out);
    data += sizeof *header_out;
    if (header_out->bytes != bytes - sizeof *header_out || header_out->digest != quoit_digest(data, header_out->bytes))
        return NULL;
    return data;
}

static ucs_status_t set_handler(struct ucx *ucx, unsigned id, ucp_am_recv_callback_t callback)
{
    const ucp_am_handler_param_t handler = {.field_mask =
                                                UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
                                            .id = id,
                                            .flags = UCP_AM_FLAG_WHOLE_MSG,
                                            .cb = callback,
                                            .arg = ucx};
    return ucp_worker_set_am_recv_handler(ucx->worker, &handler);
}

static enum quoit_status open_worker(struct ucx *ucx, bool is_pe_endpoint, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    const ucp_worker_params_t params = {.field_mask =
                                            UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
                                        .am_alignment = 8};
    ucs_status_t status = ucp_worker_create(ucx->context, &params, &ucx->worker);
    if (status != UCS_OK)
        return refuse(problem, "ucp_worker_create", status);
    status = set_handler(ucx, MESSAGE_ID, on_message);
    if (status == UCS_OK && ucx->has_frames)
        status = set_handler(ucx, FRAME_ID, quoit_ucx_on_frame);
    if (status != UCS_OK)
        return refuse(problem, "ucp_worker_set_am_recv_handler", status);
    if (getrandom(&ucx->secret, sizeof ucx->secret, 0) != (ssize_t)sizeof ucx->secret)
        return refuse(problem, "getrandom", UCS_ERR_IO_ERROR);
    if (is_pe_endpoint || ucp_worker_get_efd(ucx->worker, &ucx->wait_fd) != UCS_OK)
        ucx->wait_fd = -1;
    ucp_address_t *address;
    size_t bytes;
    status = ucp_worker_get_address(ucx->worker, &address, &bytes);
    if (status != UCS_OK)
        return refuse(problem, "ucp_worker_get_address", status);
    struct quoit_net_address *own = &ucx->end.address;
    bool fits = wrap(ucx->secret, address, bytes, own->data, &own->bytes, sizeof own->data);
    ucp_worker_release_address(ucx->worker, address);
    return fits ? QUOIT_OK : refuse(problem, "the worker's address", UCS_ERR_BUFFER_TOO_SMALL);
}

static enum quoit_status make_ops(struct ucx *ucx)
{
    ucx->ops = calloc(TRANSFER_COUNT + SEND_COUNT, sizeof *ucx->ops);
    ucx->buffers = aligned_alloc(64, (size_t)SEND_COUNT * MESSAGE_BYTES);
    if (!ucx->ops || !ucx->buffers)
        return QUOIT_NO_MEMORY;
    for (uint32_t i = 0; i < TRANSFER_COUNT + SEND_COUNT; i++) {
        struct op *op = &ucx->ops[i];
        op->ucx = ucx;
        op->kind = i < TRANSFER_COUNT ? OP_PUT : OP_SEND;
        if (op->kind == OP_SEND)
            op->buffer = ucx->buffers + (size_t)(i - TRANSFER_COUNT) * MESSAGE_BYTES;
        quoit_ucx_release(op);
    }
    return QUOIT_OK;
}

/* Ends the connections: what was sent leaves first, unless the host is lost. */
static void close_endpoints(struct ucx *ucx)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + CLOSE_NS;
    void **requests = calloc(ucx->peer_count, sizeof *requests);
    bool is_open = true;
    for (uint32_t i = 0; i < ucx->peer_count; i++) {
        struct peer *peer = &ucx->peers[i];
        const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                           .flags = peer->is_failed || !requests ? UCP_EP_CLOSE_FLAG_FORCE : 0};
        if (!peer->endpoint)
            continue;
        void *request = ucp_ep_close_nbx(peer->endpoint, &param);
        if (requests)
            requests[i] = UCS_PTR_IS_PTR(request) ? request : NULL;
        else if (UCS_PTR_IS_PTR(request))
            ucp_request_free(request);
    }
    while (requests && is_open && quoit_clock_now_ns() < deadline_ns) {
        if (ucp_worker_progress(ucx->worker) == 0)
            sched_yield(); /* the other end, which may share the processor, has to answer */
        is_open = false;
        for (uint32_t i = 0; i < ucx->peer_count; i++)
            is_open |= requests[i] && ucp_request_check_status(requests[i]) == UCS_INPROGRESS;
    }
    for (uint32_t i = 0; requests && i < ucx->peer_count; i++)
        if (requests[i])
            ucp_request_free(requests[i]);
    free(requests);
}

/* While the end closes nobody listens. */
/* Frames that wait leave first. */
static void send_rest(struct ucx *ucx)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + CLOSE_NS;
    for (quoit_ucx_send_frames(ucx); ucx->waiting_count > 0 && quoit_clock_now_ns() < deadline_ns;) {
        ucp_worker_progress(ucx->worker);
        quoit_ucx_send_frames(ucx);
    }
}

static void close_end(struct quoit_net_end *end)
{
    struct ucx *ucx = (struct ucx *)end;
    ucx->events = quoit_net_no_events;
    if (ucx->worker) {
        if (ucx->has_frames)
            send_rest(ucx);
        close_endpoints(ucx);
        ucp_worker_destroy(ucx->worker);
    }
    if (ucx->context)
        ucp_cleanup(ucx->context);
    for (uint32_t i = 0; ucx->peers && i < ucx->peer_count; i++) {
        quoit_ucx_drop_frames(&ucx->peers[i]);
        free(ucx->peers[i].coming);
    }
    free(ucx->peers);
    free(ucx->buffers);
    free(ucx->ops);
    free(ucx);
}

/* UCX starts a thread that accepts connections. */
static enum quoit_status open_library(struct ucx *ucx, const struct device *device,
                                      const struct quoit_net_driver_config *own, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    sigset_t before;
    quoit_signals_block(&before);
    enum quoit_status status = open_context(ucx, device, own, problem);
    if (status == QUOIT_OK)
        status = open_worker(ucx, own->is_pe_endpoint, problem);
    quoit_signals_restore(&before);
    return status;
}

static enum quoit_status open_end(const struct quoit_net_driver_config *config, struct quoit_net_end **end_out,
                                  char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct device devices[DEVICES_MAX];
    struct quoit_net_candidate candidates[DEVICES_MAX];
    const struct quoit_net_candidate *best =
        quoit_net_best(candidates, list(config->provider, config->device, devices, candidates), config->skip_count);
    if (!best) {
        quoit_net_say_none(config->provider, config->device, problem);
        return QUOIT_UNSUPPORTED;
    }
    const struct device *device = &devices[best - candidates];
    struct ucx *ucx = calloc(1, sizeof *ucx);
    if (!ucx)
        return QUOIT_NO_MEMORY;
    ucx->events = config->events;
    ucx->host = config->host;
    ucx->host_count = config->host_count;
    ucx->wait_fd = -1;
    ucx->has_frames = strcmp(device->transport, "tcp") == 0;
    ucx->peer_count = config->host_count + config->pe_endpoint_count;
    ucx->peers = calloc(ucx->peer_count, sizeof *ucx->peers);
    for (uint32_t i = 0; ucx->peers && i < ucx->peer_count; i++)
        ucx->peers[i] = (struct peer){.ucx = ucx, .host = i};
    enum quoit_status status = ucx->peers ? make_ops(ucx) : QUOIT_NO_MEMORY;
    if (status == QUOIT_OK)
        status = open_library(ucx, device, config, problem);
    if (status != QUOIT_OK) {
        close_end(&ucx->end);
        return status;
    }
    ucx->end.choice = best->choice;
    ucx->end.limits = (struct quoit_net_limits){.message_bytes = MESSAGE_BYTES,
                                                .alignment = 1,
                                                .transfer_bytes = UINT64_MAX / 2,
                                                .opening_ns = OPENING_NS,
                                                .is_rdma = !ucx->has_frames,
                                                .takes_pe_endpoints = ucx->has_frames,
                                                .knows_pe_endpoints = ucx->has_frames};
    *end_out = &ucx->end;
    return QUOIT_OK;
}

static bool make_endpoint(struct peer *peer, const void *address)
{
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                                  UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
                                    .address = address,
                                    .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                    .err_handler = {.cb = on_failed, .arg = peer}};
    return ucp_ep_create(peer->ucx->worker, &params, &peer->endpoint) == UCS_OK;
}

/* An endpoint to a worker takes over the connection that this one has made. Within the handler of a message of that
 * connection UCX 1.13 would then release the message's buffer twice, so the endpoint to a PE endpoint waits for the end
 * of progress. */
static enum quoit_status expect_pe_endpoint(struct peer *peer, const void *address, size_t bytes)
{
    void *copy = malloc(bytes);
    if (!copy)
        return QUOIT_NO_MEMORY;
    memcpy(copy, address, bytes);
    peer->ucx->coming_count += !peer->coming;
    free(peer->coming);
    peer->coming = copy;
    peer->is_failed = false;
    return QUOIT_OK;
}

/* In the place of one that has gone, if there was one. */
static void take_pe_endpoint(struct peer *peer)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    void *request = peer->endpoint ? ucp_ep_close_nbx(peer->endpoint, &param) : NULL, *address = peer->coming;
    if (UCS_PTR_IS_PTR(request))
        ucp_request_free(request);
    peer->endpoint = NULL;
    peer->coming = NULL;
    peer->ucx->coming_count--;
    if (!peer->is_failed && !make_endpoint(peer, address)) {
        peer->endpoint = NULL;
        peer->is_failed = true;
        peer->ucx->events.broken(peer->ucx->events.arg, peer->host);
    }
    free(address);
}

static void take_pe_endpoints(struct ucx *ucx)
{
    for (uint32_t i = ucx->host_count; ucx->coming_count > 0 && i < ucx->peer_count; i++)
        if (ucx->peers[i].coming)
            take_pe_endpoint(&ucx->peers[i]);
}

static enum quoit_status connect_host(struct quoit_net_end *end, uint32_t host, const struct quoit_net_address *address)
{
    struct ucx *ucx = (struct ucx *)end;
    struct peer *peer = &ucx->peers[host];
    struct wire_header header;
    const void *text = unwrap(address->data, address->bytes, &header);
    if (!text)
        return QUOIT_INVALID;
    peer->secret = header.base;
    if (host >= ucx->host_count)
        return expect_pe_endpoint(peer, text, header.bytes);
    return make_endpoint(peer, text) ? QUOIT_OK : QUOIT_INVALID;
}

/* Memory */

static bool pack_key(struct ucx *ucx, struct region *region, struct quoit_net_key *key_out)
{
    void *key;
    size_t key_bytes;
    if (ucp_rkey_pack(ucx->context, region->memory, &key, &key_bytes) != UCS_OK)
        return false;
    bool fits = wrap(region->base, key, key_bytes, key_out->data, &key_out->bytes, sizeof key_out->data);
    ucp_rkey_buffer_release(key);
    return fits;
}

static enum quoit_status reg(struct quoit_net_end *end, void *memory, uint64_t bytes, struct quoit_net_key *key_out,
                             void **region_out)
{
    struct ucx *ucx = (struct ucx *)end;
    struct region *region = calloc(1, sizeof *region);
    const ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                         .address = memory,
                                         .length = bytes};
    if (!region)
        return QUOIT_NO_MEMORY;
    *region = (struct region){.base = (uint64_t)(uintptr_t)memory, .bytes = bytes};
    if (ucx->has_frames) {
        if (!wrap(region->base, "", 0, key_out->data, &key_out->bytes, sizeof key_out->data))
            goto free_region;
    } else {
        if (ucp_mem_map(ucx->context, &params, &region->memory) != UCS_OK)
            goto free_region;
        if (!pack_key(ucx, region, key_out))
            goto unmap;
    }
    region->next = ucx->regions;
    ucx->regions = region;
    *region_out = region;
    return QUOIT_OK;

unmap:
    ucp_mem_unmap(ucx->context, region->memory);
free_region:
    free(region);
    return QUOIT_SYSTEM;
}

static void unreg(struct quoit_net_end *end, void *region_of)
{
    struct ucx *ucx = (struct ucx *)end;
    struct region *region = region_of, **at = &ucx->regions;
    while (*at != region)
        at = &(*at)->next;
    *at = region->next;
    if (region->memory)
        ucp_mem_unmap(ucx->context, region->memory);
    free(region);
}

static enum quoit_status attach(struct quoit_net_end *end, uint32_t host, const struct quoit_net_key *key,
                                void **window_out)
{
    struct ucx *ucx = (struct ucx *)end;
    struct wire_header header;
    const void *text = unwrap(key->data, key->bytes, &header);
    if (!text || !ucx->peers[host].endpoint)
        return QUOIT_INVALID;
    struct window *window = calloc(1, sizeof *window);
    if (!window)
        return QUOIT_NO_MEMORY;
    window->base = header.base;
    if (!ucx->has_frames && ucp_ep_rkey_unpack(ucx->peers[host].endpoint, text, &window->key) != UCS_OK) {
        free(window);
        return QUOIT_INVALID;
    }
    *window_out = window;
    return QUOIT_OK;
}

static void detach(struct quoit_net_end *end, void *window_of)
{
    struct window *window = window_of;
    (void)end;
    if (window->key)
        ucp_rkey_destroy(window->key);
    free(window);
}

/* Operations */

static struct op *take_transfer(struct ucx *ucx, const struct quoit_net_transfer *transfer, enum op_kind kind)
{
    struct op *op = ucx->free_transfers;
    ucx->free_transfers = op->next;
    op->kind = kind;
    op->is_abandoned = false;
    op->host = transfer->host;
    op->cookie = transfer->cookie;
    op->bytes = transfer->bytes;
    return op;
}

/* A put or get over frames. */
static enum quoit_status frame(struct ucx *ucx, const struct quoit_net_transfer *transfer, enum op_kind kind)
{
    const struct window *window = transfer->window;
    struct op *op = take_transfer(ucx, transfer, kind);
    op->local = transfer->local;
    op->remote = window->base + transfer->offset;
    op->done_bytes = 0;
    op->round++;
    quoit_ucx_queue_frames(op);
    return QUOIT_OK;
}

static enum quoit_status put(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    struct ucx *ucx = (struct ucx *)end;
    struct peer *peer = &ucx->peers[transfer->host];
    const struct window *window = transfer->window;
    const ucp_request_param_t param = {0};
    if (!ucx->free_transfers)
        return QUOIT_FULL;
    if (peer->is_failed)
        return QUOIT_GONE;
    if (ucx->has_frames)
        return frame(ucx, transfer, OP_PUT);
    void *request = ucp_put_nbx(peer->endpoint, transfer->local, transfer->bytes, window->base + transfer->offset,
                                window->key, &param);
    if (UCS_PTR_IS_ERR(request))
        return QUOIT_GONE;
    if (request)
        ucp_request_free(request); /* the flush waits for it */
    quoit_ucx_append(&peer->posted, take_transfer(ucx, transfer, OP_PUT));
    ucx->posted_count++;
    return QUOIT_OK;
}

static enum quoit_status get(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    struct ucx *ucx = (struct ucx *)end;
    struct peer *peer = &ucx->peers[transfer->host];
    const struct window *window = transfer->window;
    if (!ucx->free_transfers)
        return QUOIT_FULL;
    if (peer->is_failed)
        return QUOIT_GONE;
    if (ucx->has_frames)
        return frame(ucx, transfer, OP_GET);
    struct op *op = take_transfer(ucx, transfer, OP_GET);
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb.send = on_complete,
                                       .user_data = op};
    void *request = ucp_get_nbx(peer->endpoint, transfer->local, transfer->bytes, window->base + transfer->offset,
                                window->key, &param);
    if (UCS_PTR_IS_ERR(request)) {
        quoit_ucx_release(op);
        return QUOIT_GONE;
    }
    if (!request)
        quoit_ucx_append(&ucx->done, op);
    return QUOIT_OK;
}

static void *send_buffer(struct quoit_net_end *end)
{
    struct ucx *ucx = (struct ucx *)end;
    return ucx->free_sends ? ucx->free_sends->buffer : NULL;
}

static enum quoit_status send_message(struct quoit_net_end *end, uint32_t host, void *buffer, uint32_t bytes)
{
    struct ucx *ucx = (struct ucx *)end;
    struct peer *peer = &ucx->peers[host];
    struct op *op = ucx->free_sends;
    quoit_assert(op);
    quoit_assert(op->buffer == buffer);
    if (peer->is_failed)
        return QUOIT_GONE;
    if (peer->send_count >= SENDS_MAX)
        return QUOIT_FULL;
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                                                       UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_AM_SEND_FLAG_EAGER,
                                       .cb.send = on_complete,
                                       .user_data = op};
    ucx->free_sends = op->next;
    op->kind = OP_SEND;
    op->is_abandoned = false;
    op->host = host;
    op->bytes = bytes;
    if (ucx->has_frames) {
        peer->send_count++;
        quoit_ucx_queue_frames(op);
        return QUOIT_OK;
    }
    void *request = ucp_am_send_nbx(peer->endpoint, MESSAGE_ID, NULL, 0, buffer, bytes, &param);
    if (!UCS_PTR_IS_PTR(request))
        quoit_ucx_release(op);
    else
        peer->send_count++;
    return UCS_PTR_IS_ERR(request) ? QUOIT_GONE : QUOIT_OK;
}

/* Progress */

static void begin_flush(struct peer *peer)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb.send = on_flushed,
                                       .user_data = peer};
    for (struct op *op = quoit_ucx_take_all(&peer->posted), *next; op; op = next) {
        next = op->next;
        quoit_ucx_append(&peer->flushed, op);
        peer->ucx->posted_count--;
    }
    peer->is_flushing = true;
    void *request = ucp_ep_flush_nbx(peer->endpoint, &param);
    if (!UCS_PTR_IS_PTR(request))
        end_flush(peer, UCS_PTR_STATUS(request));
}

static uint32_t progress(struct quoit_net_end *end)
{
    struct ucx *ucx = (struct ucx *)end;
    ucx->done_count = 0;
    for (uint32_t i = 0; ucx->posted_count > 0 && i < ucx->host_count; i++)
        if (ucx->peers[i].posted.first && !ucx->peers[i].is_flushing)
            begin_flush(&ucx->peers[i]);
    for (uint32_t i = 0; i < BATCH_COUNT && ucp_worker_progress(ucx->worker) != 0; i++)
        ; /* not for ever: the caller has heartbeats to send while others put to this host */
    take_pe_endpoints(ucx);
    if (ucx->has_frames)
        quoit_ucx_send_frames(ucx);
    quoit_ucx_finish_all(quoit_ucx_take_all(&ucx->done), UCS_OK);
    return ucx->done_count;
}

/* UCX keeps the operations that it knows: their requests stay in use until it gives them back. */
static void abandon(struct quoit_net_end *end, uint32_t host)
{
    struct ucx *ucx = (struct ucx *)end;
    ucx->peers[host].is_failed = true;
    quoit_ucx_drop_frames(&ucx->peers[host]);
    for (uint32_t i = 0; i < TRANSFER_COUNT; i++) {
        struct op *op = &ucx->ops[i];
        if (op->kind == OP_FREE || op->host != host || op->is_abandoned)
            continue;
        uint64_t cookie = op->cookie, bytes = op->bytes;
        if (ucx->has_frames)
            quoit_ucx_release(op);
        else
            op->is_abandoned = true;
        ucx->events.done(ucx->events.arg, host, cookie, QUOIT_GONE, bytes);
    }
}

static int wait_fd(const struct quoit_net_end *end)
{
    return ((const struct ucx *)end)->wait_fd;
}

static bool arm(struct quoit_net_end *end)
{
    struct ucx *ucx = (struct ucx *)end;
    if (ucx->wait_fd < 0 || ucx->done.first)
        return false;
    for (uint32_t i = 0; ucx->posted_count > 0 && i < ucx->host_count; i++)
        if (ucx->peers[i].posted.first && !ucx->peers[i].is_flushing)
            return false;
    return ucp_worker_arm(ucx->worker) == UCS_OK;
}

extern const struct quoit_net_driver quoit_net_driver_ucx __attribute__((visibility("default")));
const struct quoit_net_driver quoit_net_driver_ucx = {
    .version = QUOIT_NET_DRIVER_VERSION,
    .name = "ucx",
    .library = "UCX",
    .survey = survey,
    .open = open_end,
    .close = close_end,
    .connect = connect_host,
    .reg = reg,
    .unreg = unreg,
    .attach = attach,
    .detach = detach,
    .put = put,
    .get = get,
    .send_buffer = send_buffer,
    .send = send_message,
    .progress = progress,
    .abandon = abandon,
    .wait_fd = wait_fd,
    .arm = arm,
};
