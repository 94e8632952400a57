/* SPDX-License-Identifier: BSD-3-Clause */
/* Each figure of the papers: its runs, its plots, and the relations that the papers report of it. */
#include "figures.h"

#include <math.h>
#include <stdio.h>

#include "base/assert.h"

#define KIB      1024u
#define MIB      1048576u
#define HOSTS_19 3 /* RING-19's ring */
#define HOSTS_22 5
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const protocol_names[] = {"the papers' protocol", "our protocol"};
static const uint32_t host_counts[] = {3, 4, 5};
static const uint32_t thread_counts[] = {1, 2, 4, 8};

/* Sizes double; a quick book takes every second doubling, from the largest down. */
struct sizes {
    uint64_t values[16];
    uint32_t count;
};

static struct sizes sizes_of(const struct figures_book *book, uint64_t least, uint64_t largest)
{
    struct sizes sizes = {.count = 0};
    uint32_t step = book->is_quick ? 2 : 1, doublings = 0;
    while (least << (doublings + 1) <= largest)
        doublings++;
    for (uint32_t i = doublings % step; i <= doublings; i += step)
        sizes.values[sizes.count++] = least << i;
    return sizes;
}

static double mean(double sum, uint32_t count)
{
    return count ? sum / count : 0;
}

static double least_of(double a, double b)
{
    return a < b ? a : b;
}

static double most_of(double a, double b)
{
    return a > b ? a : b;
}

static double percent(double now, double before)
{
    return before > 0 ? 100 * (now / before - 1) : 0;
}

/* What is drawn */

static void open_lines(struct quoit_json *json, const char *x_label, bool is_bytes, const char *y_label,
                       const char *title, enum figures_protocol protocol)
{
    quoit_json_open_object(json, NULL);
    quoit_json_text(json, "kind", "lines");
    quoit_json_format(json, "title", "%s, %s", title, protocol_names[protocol]);
    quoit_json_text(json, "x_label", x_label);
    quoit_json_bool(json, is_bytes ? "x_is_bytes" : "x_is_log2", true);
    quoit_json_text(json, "y_label", y_label);
}

static void put_point(struct quoit_json *json, double x, double y)
{
    quoit_json_open_array(json, NULL);
    quoit_json_number(json, NULL, x);
    quoit_json_number(json, NULL, y);
    quoit_json_close(json);
}

static void put_range(struct quoit_json *json, double x, double low, double high)
{
    quoit_json_open_array(json, NULL);
    quoit_json_number(json, NULL, x);
    quoit_json_number(json, NULL, low);
    quoit_json_number(json, NULL, high);
    quoit_json_close(json);
}

static void open_points(struct quoit_json *json, const char *name)
{
    quoit_json_open_object(json, NULL);
    quoit_json_text(json, "name", name);
    quoit_json_open_array(json, "points");
}

static void close_points(struct quoit_json *json)
{
    quoit_json_close(json);
    quoit_json_close(json);
}

/* A metric of one kind of run against size; is_rate: bytes by it instead of the time. */
static void put_by_size(struct figures_book *book, struct quoit_json *json, const char *name, struct figures_key key,
                        const char *metric, const struct sizes *sizes, bool is_rate)
{
    open_points(json, name);
    for (uint32_t i = 0; i < sizes->count; i++) {
        key.bytes = sizes->values[i];
        double value = figures_value(book, &key, metric);
        put_point(json, (double)key.bytes, is_rate && value > 0 ? (double)key.bytes / value : value);
    }
    close_points(json);
}

/* A range for all x. */
static void put_band(struct quoit_json *json, const char *name, double low, double high)
{
    quoit_json_open_object(json, NULL);
    quoit_json_text(json, "name", name);
    quoit_json_number(json, "low", low);
    quoit_json_number(json, "high", high);
    quoit_json_close(json);
}

static double at(struct figures_book *book, struct figures_key key, uint64_t bytes, const char *metric)
{
    key.bytes = bytes;
    return figures_value(book, &key, metric);
}

/* 19/8 */

static const struct figures_key link_alone = {
    .workload = "link", .has_page_dma = true, .host_count = HOSTS_19, .lane_count = 1};
static const struct figures_key links_all = {
    .workload = "links", .has_page_dma = true, .host_count = HOSTS_19, .lane_count = 1};

static void draw_19_8(struct figures_book *book, struct quoit_json *json)
{
    struct sizes sizes = sizes_of(book, KIB, 512 * KIB);
    open_lines(json, "size", true, "MB/s of a link", "Rate of a link by DMA", FIGURES_PAPERS);
    quoit_json_text(json, "text", "The link below any protocol, so both figures are one. Each page is a descriptor.");
    quoit_json_open_array(json, "series");
    put_by_size(book, json, "one pair alone", link_alone, "link", &sizes, false);
    put_by_size(book, json, "all links at once", links_all, "link", &sizes, false);
    quoit_json_close(json);
    quoit_json_open_array(json, "bands");
    put_band(json, "reported at the largest: 20-30 Gbit/s", 2500, 3750);
    quoit_json_close(json);
    quoit_json_close(json);
}

static void relate_19_8(struct figures_book *book, const char *name)
{
    struct sizes sizes = sizes_of(book, KIB, 512 * KIB);
    struct figures_key five = links_all;
    five.host_count = HOSTS_22;
    double sum = 0;
    for (uint32_t i = 0; i < sizes.count; i++)
        sum += at(book, links_all, sizes.values[i], "link") / at(book, link_alone, sizes.values[i], "link");
    struct figures_relation *relation = figures_relate(book, name, "one link alone, 512 KB");
    relation->low = 20, relation->high = 30, relation->unit = "Gbit/s";
    relation->value = at(book, link_alone, 512 * KIB, "link") * 8 / 1000;
    relation->source = "19, 4: 'provides up to ranging from 20Gbps to 30Gbps'";
    relation = figures_relate(book, name, "all links at once against one alone, mean of sizes");
    relation->low = 0.85, relation->high = 0.999, relation->unit = "ratio", relation->value = mean(sum, sizes.count);
    relation->source = "19, 4: 'slightly diminished for the simultaneous transferring'";
    relation = figures_relate(book, name, "total of 5 hosts against total of 3, 512 KB");
    relation->low = 1.1, relation->unit = "ratio";
    relation->value = 5 * at(book, five, 512 * KIB, "link") / (3 * at(book, links_all, 512 * KIB, "link"));
    relation->source = "19, 4: 'overall network throughput increases as the number of nodes increases'";
}

/* 19/9. Ours goes the shortest way, so two hops need a larger ring. */

static struct figures_key put_get(enum figures_protocol protocol, bool is_copied)
{
    return (struct figures_key){.workload = "put-get",
                                .protocol = protocol,
                                .is_copied = is_copied,
                                .has_page_dma = protocol == FIGURES_PAPERS,
                                .host_count = protocol == FIGURES_PAPERS ? HOSTS_19 : HOSTS_22,
                                .lane_count = 1};
}

static void draw_put_get(struct figures_book *book, struct quoit_json *json, enum figures_protocol protocol,
                         const char *what, bool is_rate)
{
    static const char *const kinds[] = {"DMA", "memcpy"};
    struct sizes sizes = sizes_of(book, KIB, 512 * KIB);
    char title[64], metric[32], series[48];
    snprintf(title, sizeof title, "%s of %s", is_rate ? "Throughput" : "Latency", what);
    open_lines(json, "size", true, is_rate ? "MB/s" : "us", title, protocol);
    quoit_json_open_array(json, "series");
    for (uint32_t copied = 0; copied < (protocol == FIGURES_PAPERS ? 2 : 1); copied++) {
        for (uint32_t hops = 1; hops <= 2; hops++) {
            snprintf(metric, sizeof metric, "%s, %u hop%s", what, hops, hops == 1 ? "" : "s");
            snprintf(series, sizeof series, "%s%u hop%s", protocol == FIGURES_PAPERS ? kinds[copied] : "", hops,
                     hops == 1 ? "" : "s");
            if (protocol == FIGURES_PAPERS)
                snprintf(series, sizeof series, "%s, %u hop%s", kinds[copied], hops, hops == 1 ? "" : "s");
            put_by_size(book, json, series, put_get(protocol, copied), metric, &sizes, is_rate);
        }
    }
    quoit_json_close(json);
    quoit_json_close(json);
}

static void draw_19_9(struct figures_book *book, struct quoit_json *json)
{
    for (enum figures_protocol protocol = 0; protocol < FIGURES_PROTOCOL_COUNT; protocol++) {
        draw_put_get(book, json, protocol, "put", false);
        draw_put_get(book, json, protocol, "get", false);
        draw_put_get(book, json, protocol, "put", true);
        draw_put_get(book, json, protocol, "get", true);
    }
}

/* Mean over the sizes of one metric of one run by another of another. */
static double mean_ratio(struct figures_book *book, struct figures_key over, const char *over_metric,
                         struct figures_key under, const char *under_metric)
{
    struct sizes sizes = sizes_of(book, KIB, 512 * KIB);
    double sum = 0;
    for (uint32_t i = 0; i < sizes.count; i++)
        sum += at(book, over, sizes.values[i], over_metric) / at(book, under, sizes.values[i], under_metric);
    return mean(sum, sizes.count);
}

static void relate_19_9(struct figures_book *book, const char *name)
{
    struct figures_key dma = put_get(FIGURES_PAPERS, false), copy = put_get(FIGURES_PAPERS, true);
    struct figures_key ours = put_get(FIGURES_OURS, false);
    struct figures_relation *relation = figures_relate(book, name, "put, 2 hops against 1, mean of sizes");
    relation->low = 0.9, relation->high = 1.1, relation->unit = "ratio";
    relation->value = mean_ratio(book, dma, "put, 2 hops", dma, "put, 1 hop");
    relation->other = mean_ratio(book, ours, "put, 2 hops", ours, "put, 1 hop");
    relation->source = "19, 4: 'little difference between one hop ... and two hops data transferring for the Put'";
    relation = figures_relate(book, name, "get, 2 hops against 1, mean of sizes");
    relation->low = 1.1, relation->high = 2, relation->unit = "ratio";
    relation->value = mean_ratio(book, dma, "get, 2 hops", dma, "get, 1 hop");
    relation->other = mean_ratio(book, ours, "get, 2 hops", ours, "get, 1 hop");
    relation->source = "19, 4: 'latencies are more differentiated according to the hop count for Get'";
    double put_gap = at(book, copy, 512 * KIB, "put, 1 hop") / at(book, dma, 512 * KIB, "put, 1 hop");
    double get_gap = at(book, copy, 512 * KIB, "get, 1 hop") / at(book, dma, 512 * KIB, "get, 1 hop");
    relation = figures_relate(book, name, "put by memcpy against DMA, latency, 512 KB");
    relation->low = 1.05, relation->unit = "ratio", relation->value = put_gap;
    relation->source = "19, 4: 'data transferring with DMA gives high throughput'";
    relation = figures_relate(book, name, "get by memcpy against DMA, latency, 512 KB");
    relation->low = 1.05, relation->unit = "ratio", relation->value = get_gap;
    relation->source = "19, 4: as for put";
    relation = figures_relate(book, name, "that gap of get against that of put");
    relation->low = 0, relation->high = 0.999, relation->unit = "ratio", relation->value = get_gap / put_gap;
    relation->source = "19, 4: 'the latency gap between DMA and memcpy for the Get operation is not so large'";
}

/* 19/10 */

static struct figures_key barrier(enum figures_protocol protocol)
{
    return (struct figures_key){.workload = "barrier",
                                .protocol = protocol,
                                .has_page_dma = protocol == FIGURES_PAPERS,
                                .host_count = HOSTS_19,
                                .lane_count = 1};
}

static void draw_19_10(struct figures_book *book, struct quoit_json *json)
{
    struct sizes sizes = sizes_of(book, KIB, 512 * KIB);
    for (enum figures_protocol protocol = 0; protocol < FIGURES_PROTOCOL_COUNT; protocol++) {
        open_lines(json, "size of the put before", true, "us", "Latency of barrier_all after a put", protocol);
        quoit_json_open_array(json, "series");
        put_by_size(book, json, "barrier", barrier(protocol), "barrier", &sizes, false);
        put_by_size(book, json, "a put of that size", put_get(protocol, false), "put, 1 hop", &sizes, false);
        quoit_json_close(json);
        quoit_json_close(json);
    }
}

static void relate_19_10(struct figures_book *book, const char *name)
{
    struct sizes sizes = sizes_of(book, KIB, 512 * KIB);
    uint64_t least = sizes.values[0];
    struct figures_key papers = barrier(FIGURES_PAPERS), ours = barrier(FIGURES_OURS);
    struct figures_relation *relation = figures_relate(book, name, "barrier against put, smallest size");
    relation->low = 1.5, relation->unit = "ratio";
    relation->value =
        at(book, papers, least, "barrier") / at(book, put_get(FIGURES_PAPERS, false), least, "put, 1 hop");
    relation->source = "19, 4: 'substantial when compared with data transferring ... when the size is small'";
    relation = figures_relate(book, name, "barrier after the largest put against the smallest");
    relation->low = 0.7, relation->high = 1.5, relation->unit = "ratio";
    relation->value = at(book, papers, 512 * KIB, "barrier") / at(book, papers, least, "barrier");
    relation->other = at(book, ours, 512 * KIB, "barrier") / at(book, ours, least, "barrier");
    relation->source = "19, 4: 'the latencies are sustained as the requested data size increases'";
}

/* 22/4a and 22/4b */

static const struct figures_key raw = {.workload = "raw", .host_count = HOSTS_22, .lane_count = 1};
static const struct figures_key put_22 = {.workload = "put-get", .host_count = HOSTS_22, .lane_count = 1};

static struct figures_key stream(enum figures_protocol protocol)
{
    return (struct figures_key){.workload = "stream", .protocol = protocol, .host_count = HOSTS_22, .lane_count = 1};
}

static void draw_22_4a(struct figures_book *book, struct quoit_json *json)
{
    struct sizes sizes = sizes_of(book, KIB, MIB);
    for (enum figures_protocol protocol = 0; protocol < FIGURES_PROTOCOL_COUNT; protocol++) {
        open_lines(json, "size", true, "MB/s", "Throughput of the raw link and of put", protocol);
        quoit_json_open_array(json, "series");
        put_by_size(book, json, "raw link (DMA)", raw, "raw DMA", &sizes, false);
        if (protocol == FIGURES_PAPERS)
            put_by_size(book, json, "put, by its own time", put_22, "put, 1 hop", &sizes, true);
        put_by_size(book, json, "puts in a row, until all are there", stream(protocol), "put", &sizes, false);
        quoit_json_close(json);
        quoit_json_open_array(json, "bands");
        open_points(json, "reported for put");
        put_range(json, MIB, 4500, 5000);
        close_points(json);
        quoit_json_close(json);
        quoit_json_open_array(json, "limits");
        quoit_json_open_object(json, NULL);
        quoit_json_text(json, "name", "raw link reported above");
        quoit_json_number(json, "y", 6000);
        quoit_json_close(json);
        quoit_json_close(json);
        quoit_json_close(json);
    }
}

/* What RING-22 times is the put itself, step by step (22/4b): its bytes by the time of one put. */
static double own_rate(struct figures_book *book, uint64_t bytes)
{
    double us = at(book, put_22, bytes, "put, 1 hop");
    return us > 0 ? (double)bytes / us : 0;
}

static void relate_22_4a(struct figures_book *book, const char *name)
{
    struct sizes sizes = sizes_of(book, KIB, MIB);
    double raw_rate = at(book, raw, MIB, "raw DMA"), put_rate = own_rate(book, MIB);
    double our_rate = at(book, stream(FIGURES_OURS), MIB, "put"), least = INFINITY;
    for (uint32_t i = 1; i < sizes.count; i++)
        least = least_of(least, own_rate(book, sizes.values[i]) / own_rate(book, sizes.values[i - 1]));
    struct figures_relation *relation = figures_relate(book, name, "raw link, 1 MB");
    relation->low = 6000, relation->high = 7880, relation->unit = "MB/s", relation->value = raw_rate;
    relation->source = "22, 5.1: 'the throughput of 1 MB or more is over 6000 MB/s'; PCIe 3.0 x8 carries 7880";
    relation = figures_relate(book, name, "put, 1 MB, by its own time");
    relation->low = 4500, relation->high = 5000, relation->unit = "MB/s", relation->value = put_rate;
    relation->other = our_rate, relation->source = "22, 5.1: 'approximately 4500-5000 MB/s'";
    relation = figures_relate(book, name, "put against raw link, 1 MB");
    relation->low = 80, relation->high = 85, relation->unit = "%", relation->value = 100 * put_rate / raw_rate;
    relation->other = 100 * our_rate / raw_rate;
    relation->source = "22, 5.1: 'approximately 80%-85% of the native PCIe NTB interface'";
    relation = figures_relate(book, name, "put, each size against the one before, least");
    relation->low = 1, relation->unit = "ratio", relation->value = least;
    relation->source = "22, 5.1: 'as the request size increases, the throughput ... gradually increases'";
    relation = figures_relate(book, name, "OURS: put against raw link, 1 MB");
    relation->low = 95, relation->unit = "%", relation->value = 100 * our_rate / raw_rate;
    relation->source = "what is asked of our protocol";
}

#define STEP_COUNT QUOIT_PUT_TURNAROUND /* which is no step */

static void draw_22_4b(struct figures_book *book, struct quoit_json *json)
{
    struct sizes sizes = sizes_of(book, KIB, MIB);
    quoit_json_open_object(json, NULL);
    quoit_json_text(json, "kind", "bars");
    quoit_json_format(json, "title", "Time of each step of a put, %s", protocol_names[FIGURES_PAPERS]);
    quoit_json_text(json, "text", "Puts in a row. Our protocol has no such steps: a put to a neighbour is one copy.");
    quoit_json_text(json, "y_label", "us");
    quoit_json_bool(json, "is_stacked", true);
    quoit_json_open_array(json, "groups");
    for (uint32_t i = 0; i < sizes.count; i++)
        quoit_json_format(json, NULL, "%llu K", (unsigned long long)sizes.values[i] / KIB);
    quoit_json_close(json);
    quoit_json_open_array(json, "series");
    for (enum quoit_put_step step = 0; step < STEP_COUNT; step++) {
        quoit_json_open_object(json, NULL);
        quoit_json_text(json, "name", quoit_put_step_name(step));
        quoit_json_open_array(json, "values");
        for (uint32_t i = 0; i < sizes.count; i++)
            quoit_json_number(json, NULL, at(book, stream(FIGURES_PAPERS), sizes.values[i], quoit_put_step_name(step)));
        quoit_json_close(json);
        quoit_json_close(json);
    }
    quoit_json_close(json);
    quoit_json_close(json);
}

static void relate_22_4b(struct figures_book *book, const char *name)
{
    struct sizes sizes = sizes_of(book, KIB, MIB);
    double sum = 0;
    for (uint32_t i = 0; i < sizes.count; i++) {
        double times[STEP_COUNT];
        for (enum quoit_put_step step = 0; step < STEP_COUNT; step++)
            times[step] = at(book, stream(FIGURES_PAPERS), sizes.values[i], quoit_put_step_name(step));
        double interrupts = times[QUOIT_PUT_BIT] + times[QUOIT_PUT_SCRATCHPADS] + times[QUOIT_PUT_DOORBELL];
        sum += 100 * interrupts / (interrupts + times[QUOIT_PUT_SETUP]);
    }
    struct figures_relation *relation =
        figures_relate(book, name, "scratchpads, doorbell and its bit, of all but the payload");
    relation->low = 50, relation->high = 100, relation->unit = "%", relation->value = mean(sum, sizes.count);
    relation->source = "22, 5.1: 'overhead for accessing the scratchpad registers ... and the interrupt overhead ... "
                       "are relatively high'";
}

/* 22/5, 22/6, 22/7: from the same runs */

static struct figures_key turnaround(enum figures_protocol protocol, uint32_t host_count, uint32_t thread_count)
{
    return (struct figures_key){
        .workload = "turnaround", .protocol = protocol, .host_count = host_count, .lane_count = thread_count};
}

static double turnaround_us(struct figures_book *book, enum figures_protocol protocol, uint32_t host_count,
                            uint32_t thread_count, uint64_t bytes)
{
    return at(book, turnaround(protocol, host_count, thread_count), bytes, "turnaround");
}

static struct sizes sizes_22(const struct figures_book *book)
{
    return sizes_of(book, 4 * KIB, MIB);
}

/* Mean over the sizes of the change from one job config to another, in percent. */
static double mean_change(struct figures_book *book, enum figures_protocol protocol, const uint32_t before[2],
                          const uint32_t after[2])
{
    struct sizes sizes = sizes_22(book);
    double sum = 0;
    for (uint32_t i = 0; i < sizes.count; i++)
        sum += percent(turnaround_us(book, protocol, after[0], after[1], sizes.values[i]),
                       turnaround_us(book, protocol, before[0], before[1], sizes.values[i]));
    return mean(sum, sizes.count);
}

static double mean_us(struct figures_book *book, enum figures_protocol protocol, uint32_t host_count,
                      uint32_t thread_count)
{
    struct sizes sizes = sizes_22(book);
    double sum = 0;
    for (uint32_t i = 0; i < sizes.count; i++)
        sum += turnaround_us(book, protocol, host_count, thread_count, sizes.values[i]);
    return mean(sum, sizes.count);
}

static void put_growth_bands(struct figures_book *book, struct quoit_json *json, uint32_t threads)
{
    struct sizes sizes = sizes_22(book);
    double most = threads == 1 ? 1.36 : 1.34;
    for (uint32_t h = 1; h < COUNT(host_counts); h++) {
        char band[64];
        snprintf(band, sizeof band, "reported: %u hosts +22-%.0f %%", host_counts[h], 100 * (most - 1));
        open_points(json, band);
        for (uint32_t i = 0; i < sizes.count; i++) {
            double before = turnaround_us(book, FIGURES_PAPERS, host_counts[h - 1], threads, sizes.values[i]);
            put_range(json, (double)sizes.values[i], 1.22 * before, most * before);
        }
        close_points(json);
    }
}

static void draw_22_5(struct figures_book *book, struct quoit_json *json)
{
    struct sizes sizes = sizes_22(book);
    for (enum figures_protocol protocol = 0; protocol < FIGURES_PROTOCOL_COUNT; protocol++) {
        for (uint32_t t = 0; t < COUNT(thread_counts); t++) {
            char title[64], series[32];
            snprintf(title, sizeof title, "Turnaround, %u thread%s", thread_counts[t], t ? "s" : "");
            open_lines(json, "size", true, "us", title, protocol);
            quoit_json_open_array(json, "series");
            for (uint32_t h = 0; h < COUNT(host_counts); h++) {
                snprintf(series, sizeof series, "%u hosts", host_counts[h]);
                put_by_size(book, json, series, turnaround(protocol, host_counts[h], thread_counts[t]), "turnaround",
                            &sizes, false);
            }
            quoit_json_close(json);
            if (protocol == FIGURES_PAPERS) {
                quoit_json_open_array(json, "bands");
                put_growth_bands(book, json, thread_counts[t]);
                quoit_json_close(json);
            }
            quoit_json_close(json);
        }
    }
}

static void relate_change(struct figures_book *book, const char *figure, const uint32_t before[2],
                          const uint32_t after[2], double low, double high, const char *source)
{
    struct figures_relation *relation =
        before[0] == after[0]
            ? figures_relate(book, figure, "turnaround, %u -> %u threads, %u hosts", before[1], after[1], before[0])
            : figures_relate(book, figure, "turnaround, %u -> %u hosts, %u thread%s", before[0], after[0], before[1],
                             before[1] == 1 ? "" : "s");
    relation->low = low, relation->high = high, relation->unit = "%";
    relation->value = mean_change(book, FIGURES_PAPERS, before, after);
    relation->other = mean_change(book, FIGURES_OURS, before, after);
    relation->source = source;
}

static void relate_worst_of_8(struct figures_book *book, const char *name)
{
    struct sizes sizes = sizes_22(book);
    double most = -INFINITY;
    for (uint32_t h = 0; h < COUNT(host_counts); h++)
        for (uint32_t i = 0; i < sizes.count; i++)
            most = most_of(most, percent(turnaround_us(book, FIGURES_PAPERS, host_counts[h], 8, sizes.values[i]),
                                         turnaround_us(book, FIGURES_PAPERS, host_counts[h], 4, sizes.values[i])));
    struct figures_relation *relation = figures_relate(book, name, "turnaround, 4 -> 8 threads, most of all cases");
    relation->low = 0, relation->unit = "%", relation->value = most;
    relation->source = "22, 5.2: 'from 4 to 8, in some cases the latency increased'";
}

/* How much 4 threads gain over 1 shrinks as hosts are added. */
static void relate_shrinking_gain(struct figures_book *book, const char *name)
{
    for (uint32_t h = 1; h < COUNT(host_counts); h++) {
        uint32_t fewer = host_counts[h - 1], more = host_counts[h];
        struct figures_relation *relation =
            figures_relate(book, name, "fall from 1 to 4 threads, %u hosts against %u", more, fewer);
        relation->low = 0, relation->high = 0.999, relation->unit = "ratio";
        relation->value = mean_change(book, FIGURES_PAPERS, (uint32_t[]){more, 1}, (uint32_t[]){more, 4}) /
                          mean_change(book, FIGURES_PAPERS, (uint32_t[]){fewer, 1}, (uint32_t[]){fewer, 4});
        relation->source = "22, 5.2: 'if the number of hosts is 5, the rate of latency reduction according to the "
                           "number of threads is lower than that of 4, and when the number of hosts is 4, ... lower "
                           "than 3'";
    }
}

static void relate_22_5(struct figures_book *book, const char *name)
{
    for (uint32_t t = 0; t < COUNT(thread_counts); t++)
        for (uint32_t h = 1; h < COUNT(host_counts); h++)
            relate_change(book, name, (uint32_t[]){host_counts[h - 1], thread_counts[t]},
                          (uint32_t[]){host_counts[h], thread_counts[t]}, 22, t == 0 ? 36 : 34,
                          t == 0 ? "22, 5.2: 'the average latency increases by 22-36% each time the number of hosts "
                                   "increases'"
                                 : "22, 5.2: 'approximately 22-34%'");
    for (uint32_t h = 0; h < COUNT(host_counts); h++) {
        relate_change(book, name, (uint32_t[]){host_counts[h], 1}, (uint32_t[]){host_counts[h], 2}, -45, -38,
                      "22, 5.2: 'from 1 to 2, the latency decreased by approximately 38% to 45%'");
        relate_change(book, name, (uint32_t[]){host_counts[h], 2}, (uint32_t[]){host_counts[h], 4}, -25, -12,
                      "22, 5.2: 'from 2 to 4, the latency decreased by approximately 12% to 25%'");
    }
    relate_worst_of_8(book, name);
    relate_shrinking_gain(book, name);
    double best = INFINITY, ours = INFINITY;
    for (uint32_t t = 0; t < COUNT(thread_counts); t++) {
        best = least_of(best, mean_us(book, FIGURES_PAPERS, HOSTS_22, thread_counts[t]));
        ours = least_of(ours, mean_us(book, FIGURES_OURS, HOSTS_22, thread_counts[t]));
    }
    struct figures_relation *relation = figures_relate(book, name, "OURS: turnaround of 5 hosts against their best");
    relation->low = 0, relation->high = 50, relation->unit = "%", relation->value = 100 * ours / best;
    relation->source = "what is asked of our protocol: at most half, mean of sizes";
}

/* Throughput of a host, mean of sizes: what it put by the time until all was there. */
static double mean_rate(struct figures_book *book, enum figures_protocol protocol, uint32_t host_count,
                        uint32_t thread_count)
{
    struct sizes sizes = sizes_22(book);
    double sum = 0;
    for (uint32_t i = 0; i < sizes.count; i++) {
        double us = turnaround_us(book, protocol, host_count, thread_count, sizes.values[i]);
        sum += us > 0 ? SIM_TURNAROUND_PUTS * (double)sizes.values[i] / us : 0;
    }
    return mean(sum, sizes.count);
}

typedef double mean_of_sizes(struct figures_book *book, enum figures_protocol protocol, uint32_t host_count,
                             uint32_t thread_count);

/* Opens a plot of a mean against threads, a line for each ring. */
static void open_by_threads(struct figures_book *book, struct quoit_json *json, enum figures_protocol protocol,
                            mean_of_sizes *mean_of, const char *y_label, const char *title)
{
    open_lines(json, "threads", false, y_label, title, protocol);
    quoit_json_open_array(json, "series");
    for (uint32_t h = 0; h < COUNT(host_counts); h++) {
        char series[32];
        snprintf(series, sizeof series, "%u hosts", host_counts[h]);
        open_points(json, series);
        for (uint32_t t = 0; t < COUNT(thread_counts); t++)
            put_point(json, thread_counts[t], mean_of(book, protocol, host_counts[h], thread_counts[t]));
        close_points(json);
    }
    quoit_json_close(json);
}

static void draw_22_6(struct figures_book *book, struct quoit_json *json)
{
    for (enum figures_protocol protocol = 0; protocol < FIGURES_PROTOCOL_COUNT; protocol++) {
        open_by_threads(book, json, protocol, mean_rate, "MB/s of a host", "Throughput, mean of 4 KB to 1 MB");
        quoit_json_close(json);
    }
}

static void relate_22_6(struct figures_book *book, const char *name)
{
    double gains[3] = {0};
    for (uint32_t h = 0; h < COUNT(host_counts); h++)
        for (uint32_t t = 0; t < COUNT(gains); t++)
            gains[t] += mean_rate(book, FIGURES_PAPERS, host_counts[h], thread_counts[t + 1]) /
                        mean_rate(book, FIGURES_PAPERS, host_counts[h], thread_counts[t]) / COUNT(host_counts);
    struct figures_relation *relation = figures_relate(book, name, "throughput, 1 -> 2 threads");
    relation->low = 1.2, relation->unit = "ratio", relation->value = gains[0];
    relation->source = "22, 5.2: 'greatly increases when the number of threads is increased from 1 to 2'";
    relation = figures_relate(book, name, "throughput, 2 -> 4 threads");
    relation->low = 1, relation->high = gains[0], relation->unit = "ratio", relation->value = gains[1];
    relation->source = "22, 5.2: 'when increased from 2 to 4 or 8, the throughput does not increase significantly'";
    relation = figures_relate(book, name, "throughput, 4 -> 8 threads");
    relation->low = 0.9, relation->high = 1.02, relation->unit = "ratio", relation->value = gains[2];
    relation->source = "22, 5.2: 'similar to or slightly lower than that of 4 threads'";
}

static void draw_22_7(struct figures_book *book, struct quoit_json *json)
{
    for (enum figures_protocol protocol = 0; protocol < FIGURES_PROTOCOL_COUNT; protocol++) {
        open_by_threads(book, json, protocol, mean_us, "us", "Turnaround against threads, mean of 4 KB to 1 MB");
        quoit_json_open_array(json, "bands");
        for (uint32_t h = 0; h < COUNT(host_counts) && protocol == FIGURES_PAPERS; h++) {
            char band[64];
            double one = mean_us(book, protocol, host_counts[h], 1), two = mean_us(book, protocol, host_counts[h], 2);
            snprintf(band, sizeof band, "reported changes, %u hosts", host_counts[h]);
            open_points(json, band);
            put_range(json, 2, 0.55 * one, 0.62 * one);
            put_range(json, 4, 0.75 * two, 0.88 * two);
            close_points(json);
        }
        quoit_json_close(json);
        quoit_json_close(json);
    }
}

static void relate_22_7(struct figures_book *book, const char *name)
{
    double one = mean_us(book, FIGURES_PAPERS, 5, 1) - mean_us(book, FIGURES_PAPERS, 3, 1), most = 0;
    for (uint32_t t = 1; t < COUNT(thread_counts); t++)
        most = most_of(most, mean_us(book, FIGURES_PAPERS, 5, thread_counts[t]) -
                                 mean_us(book, FIGURES_PAPERS, 3, thread_counts[t]));
    struct figures_relation *relation =
        figures_relate(book, name, "us from 3 to 5 hosts, most of 2, 4, 8 threads against 1");
    relation->low = 0, relation->high = 0.999, relation->unit = "ratio", relation->value = one > 0 ? most / one : 0;
    relation->source = "22, 5.2: 'the most pronounced increase is observed when the number of threads is one'";
    double growths[2] = {0};
    for (uint32_t t = 1; t < COUNT(thread_counts); t++)
        for (uint32_t h = 0; h < COUNT(growths); h++)
            growths[h] += mean_change(book, FIGURES_PAPERS, (uint32_t[]){host_counts[h], thread_counts[t]},
                                      (uint32_t[]){host_counts[h + 1], thread_counts[t]});
    relation = figures_relate(book, name, "growth 4 -> 5 hosts against 3 -> 4, mean of 2, 4, 8 threads");
    relation->low = 0, relation->high = 0.999, relation->unit = "ratio";
    relation->value = growths[0] > 0 ? growths[1] / growths[0] : 0;
    relation->source =
        "22, 5.2: 'the increase rate of turn-around latency decreases as the number of hosts in the ring "
        "network increases, when there is more than one thread'";
}

const struct figures_entry figures_entries[] = {
    {"19/8", "link throughput, one pair alone and all at once", draw_19_8, relate_19_8},
    {"19/9", "latency and throughput of put and get", draw_19_9, relate_19_9},
    {"19/10", "latency of the barrier after puts", draw_19_10, relate_19_10},
    {"22/4a", "throughput of the raw link and of put", draw_22_4a, relate_22_4a},
    {"22/4b", "time of each step of a put", draw_22_4b, relate_22_4b},
    {"22/5", "turnaround latency by size, hosts and threads", draw_22_5, relate_22_5},
    {"22/6", "throughput against threads", draw_22_6, relate_22_6},
    {"22/7", "turnaround latency against hosts and threads", draw_22_7, relate_22_7},
};
const uint32_t figures_entry_count = COUNT(figures_entries);
