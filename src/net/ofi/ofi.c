/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver for libfabric: one reliable-datagram endpoint a host, one completion queue, manual progress.
 *
 * A put completes when it is in the target's memory (FI_DELIVERY_COMPLETE): most providers would otherwise say that a
 * socket has taken it. Messages are of one buffer's size, below what providers send eagerly, so that they need no
 * handshake. They are matched in order (FI_ORDER_SAS); some providers report them in another.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "net/address.h"
#include "net/candidates.h"
#include "net/devices.h"
#include "net/driver.h"
#include "net/interfaces.h"

#define API_VERSION       FI_VERSION(1, 15)
#define MESSAGE_BYTES     8192u /* plugins.c sets the size of rxm's buffers by it */
#define SEND_COUNT        128u
#define RECEIVE_COUNT     256u
#define TRANSFER_COUNT    (4 * QUOIT_NET_TRANSFERS_MAX)
#define SENDS_MAX         (SEND_COUNT / 4) /* to one host, so that one that hangs leaves some for the others */
#define PE_ENDPOINT_COUNT 32u              /* messages of a PE endpoint, each way: it asks for little at a time */
#define BATCH_COUNT       32               /* completions read at once */
#define NETWORKS_MAX      64u
#define OPENING_NS        80000000u /* measured with tcp;ofi_rxm: it looks at all its providers */

/* What this driver takes by itself, best first. Others (sockets, net, udp, shm) only if they are named. */
static const char *const ranking[] = {"cxi", "efa", "psm3", "opx", "psm2", "verbs;ofi_rxm", "psm", "tcp;ofi_rxm"};
#define RANK_COUNT (sizeof ranking / sizeof ranking[0])

enum op_kind { OP_FREE, OP_TRANSFER, OP_ABANDONED, OP_SEND, OP_RECEIVE };

/* libfabric writes into the context, and gives its address back with the completion. */
struct op {
    struct fi_context2 context;
    enum op_kind kind;
    uint32_t host;
    uint64_t cookie;
    uint64_t bytes;
    char *buffer; /* of a message */
    struct op *next_free;
};

struct region {
    struct fid_mr *mr;
    uint64_t base; /* what the target's provider adds to offsets */
};

/* How a key looks to the other host. */
struct wire_key {
    uint64_t key;
    uint64_t base;
};

struct window {
    uint64_t key;
    uint64_t base;
};

struct peer {
    fi_addr_t address;   /* FI_ADDR_NOTAVAIL: not connected */
    uint32_t send_count; /* under way */
};

struct ofi {
    struct quoit_net_end end; /* first */
    struct quoit_net_events events;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *buffers_mr; /* NULL: the provider needs none */
    struct peer *peers;        /* of hosts and PE endpoints */
    struct op *ops;            /* transfers, sends, receives */
    struct op *free_transfers;
    struct op *free_sends;
    struct op *unposted; /* receives that are not offered to the provider */
    char *buffers;
    uint64_t
        next_key; /* where the provider leaves keys to us; the first by chance: unauthenticated peers must guess it */
    int wait_fd;
};

#define OP_COUNT (TRANSFER_COUNT + SEND_COUNT + RECEIVE_COUNT)

/* What libfabric and the libraries that it loads ask of libc, they ask this file first, since plugins.c binds it so,
 * and nobody else in the process does. */

/* libfabric's verbs provider reads all of /proc/kallsyms twice as the library is loaded, which takes 0.1 s and more,
 * whatever provider is used: it looks whether the kernel shares memory of GPUs, and there is none in a job. */
extern FILE *fopen(const char *path, const char *mode) __attribute__((visibility("default")));
FILE *fopen(const char *path, const char *mode)
{
    if (strcmp(path, "/proc/kallsyms") == 0) {
        errno = ENOENT;
        return NULL;
    }
    __typeof__(&fopen) next = (__typeof__(&fopen))dlsym(RTLD_NEXT, "fopen");
    return next ? next(path, mode) : NULL;
}

#if defined(__x86_64__) /* as psm */
static bool is_of_idle_psm(void *code)
{
    Dl_info caller;
    if (dladdr(code, &caller) == 0)
        return false;
    return (strstr(caller.dli_fname, "/libpsm2.so") && access("/sys/module/hfi1", F_OK) != 0) ||
           (strstr(caller.dli_fname, "/libinfinipath.so") && access("/sys/module/ib_qib", F_OK) != 0);
}

/* Debian's libfabric is linked with both libraries of psm, and each measures the processor's clock for 0.1 s as it is
 * loaded, on processor 0, where all proxies of the machine meet. Without psm's adapters nobody uses the result: there a
 * cycle is a nanosecond, the longest that psm believes, and the time is over two to four times as soon. The kernel's
 * drivers say whether there may be any; their adapters may have other names than the first. */
extern int gettimeofday(struct timeval *restrict now_out, void *restrict zone) __attribute__((visibility("default")));
int gettimeofday(struct timeval *restrict now_out, void *restrict zone)
{
    struct timespec now;
    (void)zone; /* obsolete */
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    *now_out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    if (is_of_idle_psm(__builtin_return_address(0))) {
        uint64_t us = __builtin_ia32_rdtsc() / 1000;
        *now_out = (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
    }
    return 0;
}
#endif

static bool is_of_libfabric(void *code)
{
    Dl_info caller, library;
    return dladdr(code, &caller) != 0 && dladdr((void *)(uintptr_t)fi_getinfo, &library) != 0 &&
           caller.dli_fbase == library.dli_fbase;
}

/* libfabric's tcp writes a byte to itself with its completions and reads it back, through a pair of sockets; a pipe
 * does that in a third of the time. All endpoints of the kind that this driver opens write to the second and read from
 * the first. The pairs of libraries that libfabric loads may be used both ways, and stay sockets. plugins.c binds this
 * as it does fopen(). */
extern int socketpair(int domain, int type, int protocol, int fds[2]) __attribute__((visibility("default")));
int socketpair(int domain, int type, int protocol, int fds[2])
{
    if (domain == AF_UNIX && type == SOCK_STREAM && is_of_libfabric(__builtin_return_address(0)))
        return pipe(fds);
    __typeof__(&socketpair) next = (__typeof__(&socketpair))dlsym(RTLD_NEXT, "socketpair");
    if (next)
        return next(domain, type, protocol, fds);
    errno = ENOSYS;
    return -1;
}

/* Choosing */

static struct fi_info *make_hints(const char *provider)
{
    struct fi_info *hints = fi_allocinfo();
    if (!hints)
        return NULL;
    hints->caps = FI_MSG | FI_RMA;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->tx_attr->msg_order = FI_ORDER_SAS;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->av_type = FI_AV_TABLE;
    if (provider)
        hints->fabric_attr->prov_name = strdup(provider);
    return hints;
}

/* The source address; of no family, if it is no Internet address. */
static struct quoit_wire_address address_of(const struct fi_info *info)
{
    struct sockaddr_storage source = {.ss_family = AF_UNSPEC};
    if (info->src_addr && info->addr_format == FI_SOCKADDR_IN)
        memcpy(&source, info->src_addr, sizeof(struct sockaddr_in));
    else if (info->src_addr && info->addr_format == FI_SOCKADDR_IN6)
        memcpy(&source, info->src_addr, sizeof(struct sockaddr_in6));
    return quoit_address_tell(&source);
}

static bool is_loopback(const struct fi_info *info)
{
    const struct quoit_wire_address address = address_of(info);
    return quoit_address_is_loopback(&address);
}

static size_t rank_of(const struct fi_info *info)
{
    size_t rank = 0;
    while (rank < RANK_COUNT && strcmp(ranking[rank], info->fabric_attr->prov_name) != 0)
        rank++;
    return rank;
}

static void describe(const struct fi_info *info, struct quoit_net_choice *choice)
{
    char text[QUOIT_ADDRESS_TEXT_BYTES];
    const struct quoit_wire_address address = address_of(info);
    memset(choice, 0, sizeof *choice);
    quoit_address_print(&address, text);
    snprintf(choice->driver, sizeof choice->driver, "ofi");
    snprintf(choice->provider, sizeof choice->provider, "%s", info->fabric_attr->prov_name);
    snprintf(choice->device, sizeof choice->device, "%s", info->domain_attr->name);
    quoit_net_say_usable(choice, text, is_loopback(info));
}

static void say_no_network(int error, const char *provider, const char *device, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "libfabric has no reliable network%s%.40s%s%.40s with puts and gets%s%s",
             provider ? " by provider " : "", provider ? provider : "", device ? " on device " : "",
             device ? device : "", error ? ": " : "", error ? fi_strerror(error) : "");
}

/* The networks of this machine as libfabric tells them; to be freed. NULL: `error_out` says why. */
static struct fi_info *list_networks(const char *provider, int *error_out)
{
    struct fi_info *hints = make_hints(provider), *infos = NULL;
    *error_out = hints ? -fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &infos) : FI_ENOMEM;
    if (hints)
        fi_freeinfo(hints);
    return *error_out ? NULL : infos;
}

/* Of the address; an adapter with addresses of its own has none that costs anything. */
static uint64_t cost_of(const struct quoit_wire_address *address, const struct quoit_interface *interfaces,
                        uint32_t interface_count)
{
    for (uint32_t i = 0; i < interface_count; i++)
        if (quoit_address_agrees(address, &interfaces[i].place.address, quoit_address_bits(address)))
            return quoit_net_place_cost(&interfaces[i].place);
    return address->family == 0 ? 0 : QUOIT_NET_PLACE_COSTS - 1;
}

/* One for each provider and device, of its best address; infos_out has what libfabric knows of it. Returns the count.
 */
static uint32_t list(const struct fi_info *infos, const char *provider, const char *device,
                     struct quoit_net_candidate candidates_out[NETWORKS_MAX],
                     const struct fi_info *infos_out[NETWORKS_MAX])
{
    struct quoit_interface interfaces[QUOIT_INTERFACES_MAX];
    uint32_t interface_count = quoit_interfaces_list(interfaces), count = 0;
    for (const struct fi_info *info = infos; info; info = info->next) {
        struct quoit_net_candidate one;
        const struct quoit_wire_address address = address_of(info);
        size_t rank = rank_of(info);
        uint32_t same = 0;
        describe(info, &one.choice);
        one.cost = rank * QUOIT_NET_PLACE_COSTS + cost_of(&address, interfaces, interface_count);
        if ((rank == RANK_COUNT && !provider) || !quoit_devices_take(device, info->domain_attr->name, &address))
            quoit_net_say_unusable(&one.choice, provider, device);
        while (same < count && (strcmp(candidates_out[same].choice.provider, one.choice.provider) != 0 ||
                                strcmp(candidates_out[same].choice.device, one.choice.device) != 0))
            same++;
        if (same == NETWORKS_MAX)
            continue;
        const struct quoit_net_candidate *before = &candidates_out[same];
        if (same < count && (!one.choice.is_usable || (before->choice.is_usable && before->cost <= one.cost)))
            continue;
        count += same == count;
        candidates_out[same] = one;
        infos_out[same] = info;
    }
    return count;
}

static uint32_t survey(const char *provider, const char *device, struct quoit_net_choice *choices_out,
                       uint32_t max_count)
{
    struct quoit_net_candidate candidates[NETWORKS_MAX];
    const struct fi_info *of_candidates[NETWORKS_MAX];
    int error;
    struct fi_info *infos = list_networks(provider, &error);
    uint32_t count = list(infos, provider, device, candidates, of_candidates);
    count = quoit_net_survey_candidates(candidates, count, "ofi", provider, device, choices_out, max_count);
    if (count > 0 && !choices_out[0].is_usable)
        say_no_network(error, provider, device, choices_out[0].reason);
    if (infos)
        fi_freeinfo(infos);
    return count;
}

/* Opening */

static enum quoit_status refuse(char problem[QUOIT_NET_PROBLEM_BYTES], const char *what, int error)
{
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "libfabric: %s: %s", what, fi_strerror(error < 0 ? -error : error));
    return QUOIT_SYSTEM;
}

/* A provider's queues are made for so many connections; two hosts may begin one each at once. libfabric's own number,
 * 1024, asks for longer queues than some adapters have. It is read once, at the first question. */
static void expect_peers(uint32_t peer_count)
{
    char text[16];
    snprintf(text, sizeof text, "%u", 2 * peer_count);
    setenv("FI_UNIVERSE_SIZE", text, 0);
}

/* Likewise. */
static void set_ports(struct quoit_ports ports)
{
    char low[8], high[8];
    if (ports.low == 0)
        return;
    snprintf(low, sizeof low, "%u", ports.low);
    snprintf(high, sizeof high, "%u", ports.high);
    setenv("FI_TCP_PORT_LOW_RANGE", low, 1);
    setenv("FI_TCP_PORT_HIGH_RANGE", high, 1);
}

static enum quoit_status choose(struct ofi *ofi, const struct quoit_net_driver_config *config,
                                char problem[QUOIT_NET_PROBLEM_BYTES])
{
    int error;
    struct fi_info *infos = list_networks(config->provider, &error);
    struct quoit_net_candidate candidates[NETWORKS_MAX];
    const struct fi_info *of_candidates[NETWORKS_MAX];
    const struct quoit_net_candidate *best = quoit_net_best(
        candidates, list(infos, config->provider, config->device, candidates, of_candidates), config->skip_count);
    if (best)
        ofi->info = fi_dupinfo(of_candidates[best - candidates]);
    if (infos)
        fi_freeinfo(infos);
    if (!best) {
        say_no_network(error, config->provider, config->device, problem);
        return QUOIT_UNSUPPORTED;
    }
    return ofi->info ? QUOIT_OK : QUOIT_NO_MEMORY;
}

/* A PE endpoint does not sleep on it, and a descriptor costs libfabric's tcp two system calls a completion. */
static enum quoit_status open_queue(struct ofi *ofi, bool is_pe_endpoint, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct fi_cq_attr attr = {
        .format = FI_CQ_FORMAT_MSG, .size = 2 * OP_COUNT, .wait_obj = is_pe_endpoint ? FI_WAIT_NONE : FI_WAIT_FD};
    int error = fi_cq_open(ofi->domain, &attr, &ofi->cq, NULL);
    if (error != 0) { /* it has no descriptor: the end must be polled */
        attr.wait_obj = FI_WAIT_NONE;
        error = fi_cq_open(ofi->domain, &attr, &ofi->cq, NULL);
    }
    if (error != 0)
        return refuse(problem, "fi_cq_open", error);
    ofi->wait_fd = -1;
    if (attr.wait_obj == FI_WAIT_FD && fi_control(&ofi->cq->fid, FI_GETWAIT, &ofi->wait_fd) != 0)
        ofi->wait_fd = -1;
    return QUOIT_OK;
}

static enum quoit_status open_endpoint(struct ofi *ofi, bool is_pe_endpoint, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    int error = fi_fabric(ofi->info->fabric_attr, &ofi->fabric, NULL);
    if (error != 0)
        return refuse(problem, "fi_fabric", error);
    error = fi_domain(ofi->fabric, ofi->info, &ofi->domain, NULL);
    if (error != 0)
        return refuse(problem, "fi_domain", error);
    error = fi_av_open(ofi->domain, &av_attr, &ofi->av, NULL);
    if (error != 0)
        return refuse(problem, "fi_av_open", error);
    enum quoit_status status = open_queue(ofi, is_pe_endpoint, problem);
    if (status != QUOIT_OK)
        return status;
    error = fi_endpoint(ofi->domain, ofi->info, &ofi->ep, NULL);
    if (error != 0)
        return refuse(problem, "fi_endpoint", error);
    error = fi_ep_bind(ofi->ep, &ofi->av->fid, 0);
    if (error == 0)
        error = fi_ep_bind(ofi->ep, &ofi->cq->fid, FI_TRANSMIT | FI_RECV);
    if (error == 0)
        error = fi_enable(ofi->ep);
    size_t bytes = sizeof ofi->end.address.data;
    if (error == 0)
        error = fi_getname(&ofi->ep->fid, ofi->end.address.data, &bytes);
    ofi->end.address.bytes = (uint32_t)bytes;
    return error == 0 ? QUOIT_OK : refuse(problem, "fi_enable", error);
}

static bool has_mode(const struct ofi *ofi, int mode)
{
    return (ofi->info->domain_attr->mr_mode & mode) != 0;
}

static uint64_t take_key(struct ofi *ofi)
{
    size_t bytes = ofi->info->domain_attr->mr_key_size;
    uint64_t key = ofi->next_key++;
    return bytes < sizeof key ? key & ((UINT64_C(1) << 8 * bytes) - 1) : key;
}

static int register_memory(struct ofi *ofi, void *memory, uint64_t bytes, uint64_t access, struct fid_mr **mr_out)
{
    int error = fi_mr_reg(ofi->domain, memory, bytes, access, 0, take_key(ofi), 0, mr_out, NULL);
    if (error == 0 && has_mode(ofi, FI_MR_ENDPOINT)) {
        error = fi_mr_bind(*mr_out, &ofi->ep->fid, 0);
        if (error == 0)
            error = fi_mr_enable(*mr_out);
        if (error != 0)
            fi_close(&(*mr_out)->fid);
    }
    if (error != 0)
        *mr_out = NULL;
    return error;
}

static void *buffers_desc(const struct ofi *ofi)
{
    return ofi->buffers_mr ? fi_mr_desc(ofi->buffers_mr) : NULL;
}

/* Offers the buffers of received messages again. */
static void post_receives(struct ofi *ofi)
{
    while (ofi->unposted) {
        struct op *op = ofi->unposted;
        if (fi_recv(ofi->ep, op->buffer, MESSAGE_BYTES, buffers_desc(ofi), FI_ADDR_UNSPEC, &op->context) != 0)
            return; /* the queue is full: with the next progress */
        ofi->unposted = op->next_free;
    }
}

static enum quoit_status make_transfers(struct ofi *ofi)
{
    ofi->ops = calloc(OP_COUNT, sizeof *ofi->ops);
    if (!ofi->ops)
        return QUOIT_NO_MEMORY;
    for (uint32_t i = 0; i < TRANSFER_COUNT; i++) {
        ofi->ops[i].next_free = ofi->free_transfers;
        ofi->free_transfers = &ofi->ops[i];
    }
    return QUOIT_OK;
}

static enum quoit_status make_messages(struct ofi *ofi, uint32_t send_count, uint32_t receive_count,
                                       char problem[QUOIT_NET_PROBLEM_BYTES])
{
    uint64_t bytes = (uint64_t)(send_count + receive_count) * MESSAGE_BYTES;
    ofi->buffers = aligned_alloc(4096, bytes);
    if (!ofi->buffers)
        return QUOIT_NO_MEMORY;
    memset(ofi->buffers, 0, bytes);
    int error = 0;
    if (has_mode(ofi, FI_MR_LOCAL))
        error = register_memory(ofi, ofi->buffers, bytes, FI_SEND | FI_RECV, &ofi->buffers_mr);
    if (error != 0)
        return refuse(problem, "fi_mr_reg", error);
    for (uint32_t i = 0; i < send_count + receive_count; i++) {
        struct op *op = &ofi->ops[TRANSFER_COUNT + i];
        op->buffer = ofi->buffers + (uint64_t)i * MESSAGE_BYTES;
        if (i < send_count) {
            op->next_free = ofi->free_sends;
            ofi->free_sends = op;
            continue;
        }
        op->kind = OP_RECEIVE;
        op->next_free = ofi->unposted;
        ofi->unposted = op;
    }
    post_receives(ofi);
    return QUOIT_OK;
}

static void set_limits(struct ofi *ofi)
{
    const struct fi_info *info = ofi->info;
    bool is_rxm_tcp = strncmp(info->fabric_attr->prov_name, "tcp", 3) == 0;
    ofi->end.limits = (struct quoit_net_limits){
        .message_bytes = MESSAGE_BYTES,
        .inline_bytes = (uint32_t)info->tx_attr->inject_size,
        .alignment = 1,
        .transfer_bytes = info->ep_attr->max_msg_size,
        .opening_ns = OPENING_NS,
        .needs_region = has_mode(ofi, FI_MR_LOCAL),
        .orders_puts = (info->tx_attr->msg_order & FI_ORDER_WAW) != 0 && info->ep_attr->max_order_waw_size > 0,
        .is_rdma = !is_rxm_tcp && info->domain_attr->data_progress == FI_PROGRESS_AUTO,
        .takes_pe_endpoints = true,
    };
    describe(info, &ofi->end.choice);
}

static void close_end(struct quoit_net_end *end)
{
    struct ofi *ofi = (struct ofi *)end;
    if (ofi->ep)
        fi_close(&ofi->ep->fid);
    if (ofi->buffers_mr)
        fi_close(&ofi->buffers_mr->fid);
    if (ofi->cq)
        fi_close(&ofi->cq->fid);
    if (ofi->av)
        fi_close(&ofi->av->fid);
    if (ofi->domain)
        fi_close(&ofi->domain->fid);
    if (ofi->fabric)
        fi_close(&ofi->fabric->fid);
    if (ofi->info)
        fi_freeinfo(ofi->info);
    free(ofi->peers);
    free(ofi->buffers);
    free(ofi->ops);
    free(ofi);
}

static enum quoit_status open_end(const struct quoit_net_driver_config *config, struct quoit_net_end **end_out,
                                  char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct ofi *ofi = calloc(1, sizeof *ofi);
    if (!ofi)
        return QUOIT_NO_MEMORY;
    ofi->events = config->events;
    ofi->wait_fd = -1;
    uint32_t peer_count = config->host_count + config->pe_endpoint_count;
    ofi->peers = calloc(peer_count, sizeof *ofi->peers);
    expect_peers(peer_count);
    set_ports(config->ports);
    enum quoit_status status = ofi->peers ? choose(ofi, config, problem) : QUOIT_NO_MEMORY;
    for (uint32_t i = 0; i < peer_count && ofi->peers; i++)
        ofi->peers[i].address = FI_ADDR_NOTAVAIL;
    if (status == QUOIT_OK && getrandom(&ofi->next_key, sizeof ofi->next_key, 0) != (ssize_t)sizeof ofi->next_key)
        status = refuse(problem, "getrandom", errno);
    if (status == QUOIT_OK)
        status = open_endpoint(ofi, config->is_pe_endpoint, problem);
    if (status == QUOIT_OK)
        status = make_transfers(ofi);
    if (status == QUOIT_OK)
        status = make_messages(ofi, config->is_pe_endpoint ? PE_ENDPOINT_COUNT : SEND_COUNT,
                               config->is_pe_endpoint ? PE_ENDPOINT_COUNT : RECEIVE_COUNT, problem);
    if (status != QUOIT_OK) {
        close_end(&ofi->end);
        return status;
    }
    set_limits(ofi);
    *end_out = &ofi->end;
    return QUOIT_OK;
}

static enum quoit_status connect_host(struct quoit_net_end *end, uint32_t host, const struct quoit_net_address *address)
{
    struct ofi *ofi = (struct ofi *)end;
    unsigned char name[QUOIT_NET_ADDRESS_BYTES_MAX + 1] = {0};
    if (address->bytes != end->address.bytes) /* a provider's addresses have one length */
        return QUOIT_INVALID;
    memcpy(name, address->data, address->bytes);
    if (ofi->peers[host].address != FI_ADDR_NOTAVAIL) /* of a PE endpoint that has gone */
        fi_av_remove(ofi->av, &ofi->peers[host].address, 1, 0);
    return fi_av_insert(ofi->av, name, 1, &ofi->peers[host].address, 0, NULL) == 1 ? QUOIT_OK : QUOIT_INVALID;
}

/* Memory */

static enum quoit_status reg(struct quoit_net_end *end, void *memory, uint64_t bytes, struct quoit_net_key *key_out,
                             void **region_out)
{
    struct ofi *ofi = (struct ofi *)end;
    struct region *region = calloc(1, sizeof *region);
    uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    if (!region)
        return QUOIT_NO_MEMORY;
    if (register_memory(ofi, memory, bytes, access, &region->mr) != 0) {
        free(region);
        return QUOIT_SYSTEM;
    }
    region->base = has_mode(ofi, FI_MR_VIRT_ADDR) ? (uint64_t)(uintptr_t)memory : 0;
    const struct wire_key key = {.key = fi_mr_key(region->mr), .base = region->base};
    key_out->bytes = sizeof key;
    memcpy(key_out->data, &key, sizeof key);
    *region_out = region;
    return QUOIT_OK;
}

static void unreg(struct quoit_net_end *end, void *region_of)
{
    struct region *region = region_of;
    (void)end;
    fi_close(&region->mr->fid);
    free(region);
}

static enum quoit_status attach(struct quoit_net_end *end, uint32_t host, const struct quoit_net_key *key,
                                void **window_out)
{
    (void)end, (void)host;
    struct wire_key wire;
    if (key->bytes != sizeof wire)
        return QUOIT_INVALID;
    struct window *window = calloc(1, sizeof *window);
    if (!window)
        return QUOIT_NO_MEMORY;
    memcpy(&wire, key->data, sizeof wire);
    *window = (struct window){.key = wire.key, .base = wire.base};
    *window_out = window;
    return QUOIT_OK;
}

static void detach(struct quoit_net_end *end, void *window)
{
    (void)end;
    free(window);
}

/* Operations */

static enum quoit_status begin(struct ofi *ofi, const struct quoit_net_transfer *transfer, bool is_put)
{
    struct op *op = ofi->free_transfers;
    if (!op)
        return QUOIT_FULL;
    const struct window *window = transfer->window;
    const struct region *region = transfer->region;
    void *desc = region ? fi_mr_desc(region->mr) : NULL;
    struct iovec local = {.iov_base = transfer->local, .iov_len = transfer->bytes};
    struct fi_rma_iov remote = {.addr = window->base + transfer->offset, .len = transfer->bytes, .key = window->key};
    const struct fi_msg_rma message = {.msg_iov = &local,
                                       .desc = &desc,
                                       .iov_count = 1,
                                       .addr = ofi->peers[transfer->host].address,
                                       .rma_iov = &remote,
                                       .rma_iov_count = 1,
                                       .context = &op->context};
    uint64_t flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
    if (is_put && transfer->bytes <= ofi->end.limits.inline_bytes)
        flags |= FI_INJECT;
    ssize_t error = is_put ? fi_writemsg(ofi->ep, &message, flags) : fi_readmsg(ofi->ep, &message, FI_COMPLETION);
    if (error == -FI_EAGAIN)
        return QUOIT_FULL;
    if (error != 0)
        return QUOIT_GONE;
    ofi->free_transfers = op->next_free;
    op->kind = OP_TRANSFER;
    op->host = transfer->host;
    op->cookie = transfer->cookie;
    op->bytes = transfer->bytes;
    return QUOIT_OK;
}

static enum quoit_status put(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    return begin((struct ofi *)end, transfer, true);
}

static enum quoit_status get(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    return begin((struct ofi *)end, transfer, false);
}

static void *send_buffer(struct quoit_net_end *end)
{
    struct ofi *ofi = (struct ofi *)end;
    return ofi->free_sends ? ofi->free_sends->buffer : NULL;
}

static enum quoit_status send_message(struct quoit_net_end *end, uint32_t host, void *buffer, uint32_t bytes)
{
    struct ofi *ofi = (struct ofi *)end;
    struct op *op = ofi->free_sends;
    quoit_assert(op);
    quoit_assert(op->buffer == buffer);
    if (ofi->peers[host].send_count >= SENDS_MAX)
        return QUOIT_FULL;
    struct iovec piece = {.iov_base = buffer, .iov_len = bytes};
    void *desc = buffers_desc(ofi);
    const struct fi_msg message = {
        .msg_iov = &piece, .desc = &desc, .iov_count = 1, .addr = ofi->peers[host].address, .context = &op->context};
    ssize_t error = fi_sendmsg(ofi->ep, &message, FI_COMPLETION);
    if (error == -FI_EAGAIN)
        return QUOIT_FULL;
    if (error != 0)
        return QUOIT_GONE;
    ofi->free_sends = op->next_free;
    op->kind = OP_SEND;
    op->host = host;
    ofi->peers[host].send_count++;
    return QUOIT_OK;
}

/* Completions */

static void release(struct ofi *ofi, struct op *op)
{
    struct op **list = op->kind == OP_SEND ? &ofi->free_sends : &ofi->free_transfers;
    op->kind = OP_FREE;
    op->next_free = *list;
    *list = op;
}

static void finish(struct ofi *ofi, struct op *op, enum quoit_status status)
{
    bool is_transfer = op->kind == OP_TRANSFER;
    uint32_t host = op->host;
    uint64_t cookie = op->cookie, bytes = op->bytes;
    quoit_assert(op->kind == OP_TRANSFER || op->kind == OP_ABANDONED || op->kind == OP_SEND);
    ofi->peers[host].send_count -= op->kind == OP_SEND;
    bool is_known = op->kind != OP_ABANDONED;
    release(ofi, op);
    if (status != QUOIT_OK && is_known)
        ofi->events.broken(ofi->events.arg, host);
    if (is_transfer)
        ofi->events.done(ofi->events.arg, host, cookie, status, bytes);
}

static void receive(struct ofi *ofi, struct op *op, size_t bytes)
{
    if (bytes > 0)
        ofi->events.message(ofi->events.arg, op->buffer, (uint32_t)bytes);
    op->next_free = ofi->unposted;
    ofi->unposted = op;
}

static uint32_t read_error(struct ofi *ofi)
{
    struct fi_cq_err_entry entry = {0};
    if (fi_cq_readerr(ofi->cq, &entry, 0) <= 0)
        return 0;
    struct op *op = entry.op_context;
    if (!op)
        return 1;
    if (op->kind == OP_RECEIVE)
        receive(ofi, op, 0);
    else
        finish(ofi, op, QUOIT_GONE);
    return 1;
}

static uint32_t progress(struct quoit_net_end *end)
{
    struct ofi *ofi = (struct ofi *)end;
    struct fi_cq_msg_entry entries[BATCH_COUNT];
    ssize_t count = fi_cq_read(ofi->cq, entries, BATCH_COUNT);
    if (count == -FI_EAVAIL)
        return read_error(ofi);
    for (ssize_t i = 0; i < count; i++) {
        struct op *op = entries[i].op_context;
        if (op->kind == OP_RECEIVE)
            receive(ofi, op, entries[i].len);
        else
            finish(ofi, op, QUOIT_OK);
    }
    post_receives(ofi);
    return count > 0 ? (uint32_t)count : 0;
}

/* libfabric keeps the operations: their contexts stay in use until it gives them back. */
static void abandon(struct quoit_net_end *end, uint32_t host)
{
    struct ofi *ofi = (struct ofi *)end;
    for (uint32_t i = 0; i < TRANSFER_COUNT; i++) {
        struct op *op = &ofi->ops[i];
        if (op->kind != OP_TRANSFER || op->host != host)
            continue;
        op->kind = OP_ABANDONED;
        ofi->events.done(ofi->events.arg, host, op->cookie, QUOIT_GONE, op->bytes);
    }
}

static int wait_fd(const struct quoit_net_end *end)
{
    return ((const struct ofi *)end)->wait_fd;
}

static bool arm(struct quoit_net_end *end)
{
    struct ofi *ofi = (struct ofi *)end;
    struct fid *fids[] = {&ofi->cq->fid};
    return ofi->wait_fd >= 0 && fi_trywait(ofi->fabric, fids, 1) == FI_SUCCESS;
}

extern const struct quoit_net_driver quoit_net_driver_ofi __attribute__((visibility("default")));
const struct quoit_net_driver quoit_net_driver_ofi = {
    .version = QUOIT_NET_DRIVER_VERSION,
    .name = "ofi",
    .library = "libfabric",
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
