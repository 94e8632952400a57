/* SPDX-License-Identifier: BSD-3-Clause */
/* Both detectors of userfaultfd. A page without access has no entry in the page table of the program's view, so that an
 * access ends in a SIGBUS of the thread itself; no mapping is split. Debian's header lacks the newer constants. */
#include "dsm/detect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"

#define FEATURE_SIGBUS      (1ull << 7)
#define FEATURE_MINOR_SHMEM (1ull << 10)
#define FEATURE_WP_FILE     (1ull << 12) /* UFFD_FEATURE_WP_HUGETLBFS_SHMEM */
#define FEATURE_UNPOPULATED (1ull << 13) /* UFFD_FEATURE_WP_UNPOPULATED, Linux 6.4 */
#define FEATURE_WP_ASYNC    (1ull << 15)
#define MODE_ALL            7 /* missing, write-protect, minor */
#define CONTINUE_WATCHED    2 /* UFFDIO_CONTINUE_MODE_WP, Linux 6.4 */
#define USER_MODE_ONLY      1
#define SCAN_WATCH_AGAIN    1 /* PM_SCAN_WP_MATCHING */
#define IS_WRITTEN          (1ull << 1)
#define SCAN_REGIONS_MAX    64
#define IDLE_SCANS_MAX      64         /* this many scans cost as much as freezing and thawing a chunk */
#define GAP_BYTES_MAX       (2u << 20) /* page table entries that take no longer to walk than another scan to start */
#define ALONE_WRITES_MAX    4 /* first stores, to pages in exclusive mode, that cost as much as scans which go around */
#define APART_RELEASES      64
#define IS_FROZEN           UINT8_MAX
#define IS_SHUT             (UINT8_MAX - 1) /* frozen, all pages closed by PROT_NONE, their entries kept */
#define NOT_SCANNED         0 /* no page was open at a release yet: nothing says that this PE stores to the chunk */

struct scan_region {
    uint64_t start, end, categories;
};

struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define PAGEMAP_SCAN_CALL _IOWR('f', 16, struct scan)

static bool start_with(struct quoit_dsm *dsm, uint64_t features)
{
    dsm->userfault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY);
    if (dsm->userfault_fd < 0)
        return false;
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    if (ioctl(dsm->userfault_fd, UFFDIO_API, &api) == 0)
        return true;
    close(dsm->userfault_fd);
    dsm->userfault_fd = -1;
    return false;
}

static void stop(struct quoit_dsm *dsm)
{
    close(dsm->userfault_fd);
    if (dsm->pagemap_fd >= 0)
        close(dsm->pagemap_fd);
    dsm->userfault_fd = dsm->pagemap_fd = -1;
}

/* CONTINUE_WATCHED has no feature of its own: one that came with the same kernel stands for it. */
static bool start_wp(struct quoit_dsm *dsm)
{
    return start_with(dsm, FEATURE_SIGBUS | FEATURE_MINOR_SHMEM | FEATURE_WP_FILE | FEATURE_UNPOPULATED);
}

static bool start_async(struct quoit_dsm *dsm)
{
    if (!start_with(dsm, FEATURE_SIGBUS | FEATURE_MINOR_SHMEM | FEATURE_WP_FILE | FEATURE_WP_ASYNC))
        return false;
    dsm->pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    struct scan none = {.size = sizeof none};
    if (dsm->pagemap_fd >= 0 && ioctl(dsm->pagemap_fd, PAGEMAP_SCAN_CALL, &none) >= 0)
        return true;
    stop(dsm);
    return false;
}

static void watch(struct quoit_dsm *dsm, char *chunk, uint64_t bytes)
{
    struct uffdio_register whole = {.range = {(uintptr_t)chunk, bytes}, .mode = MODE_ALL};
    if (ioctl(dsm->userfault_fd, UFFDIO_REGISTER, &whole) != 0)
        quoit_dsm_wrong("userfaultfd does not take the symmetric heap (%s); DSM_DETECT=segv works with any memory",
                        strerror(errno));
    int error = mprotect(chunk, bytes, PROT_READ | PROT_WRITE);
    quoit_assert(error == 0);
}

static void close_pages(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    int error = madvise(quoit_dsm_page_address(dsm, page), count << dsm->page_shift, MADV_DONTNEED);
    quoit_assert(error == 0);
}

/* A page table entry is made only where the file has memory: a load through the other view allocates it. */
static void populate(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    for (uint64_t at = 0; at < count << dsm->page_shift; at += 4096)
        (void)*(volatile char *)(quoit_dsm_frame(dsm, page) + at);
}

static void map_in(struct quoit_dsm *dsm, uint64_t page, uint64_t count, uint64_t mode)
{
    uint64_t start = (uintptr_t)quoit_dsm_page_address(dsm, page), end = start + (count << dsm->page_shift);
    populate(dsm, page, count);
    while (start < end) {
        struct uffdio_continue more = {.range = {start, end - start}, .mode = mode};
        if (ioctl(dsm->userfault_fd, UFFDIO_CONTINUE, &more) == 0)
            return;
        if (errno == EEXIST)
            start += more.mapped > 0 ? (uint64_t)more.mapped : 4096;
        else if (errno == EAGAIN)
            start += more.mapped > 0 ? (uint64_t)more.mapped : 0;
        else
            quoit_dsm_wrong("UFFDIO_CONTINUE failed: %s; DSM_DETECT=segv does without", strerror(errno));
    }
}

static void open_read(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    map_in(dsm, page, count, CONTINUE_WATCHED);
}

static void change_watch(struct quoit_dsm *dsm, uint64_t page, uint64_t count, bool is_watched)
{
    struct uffdio_writeprotect change = {
        .range = {(uintptr_t)quoit_dsm_page_address(dsm, page), count << dsm->page_shift},
        .mode = is_watched ? UFFDIO_WRITEPROTECT_MODE_WP : 0};
    int error;
    do
        error = ioctl(dsm->userfault_fd, UFFDIO_WRITEPROTECT, &change);
    while (error != 0 && errno == EAGAIN);
    quoit_assert(error == 0);
}

static void open_write(struct quoit_dsm *dsm, uint64_t page, uint64_t count, bool was_readable)
{
    if (was_readable)
        change_watch(dsm, page, count, false);
    else
        map_in(dsm, page, count, 0);
}

static void collect_wp(struct quoit_dsm *dsm)
{
    for (uint64_t i = 0; i < dsm->dirty_count;) {
        uint64_t page = dsm->dirty[i], count = 1;
        while (i + count < dsm->dirty_count && dsm->dirty[i + count] == page + count &&
               (page + count) % dsm->chunk_pages != 0)
            count++;
        change_watch(dsm, page, count, true);
        i += count;
    }
}

/* The scans of one release. Each extends over chunks that need none and over pages in exclusive mode, whose next stores
 * then take a fault in the kernel, since one long scan costs less than two. */
struct sweep {
    uint64_t start, end;   /* the next scan */
    uint64_t chunk;        /* the last one in it */
    uint64_t noted;        /* entries of dsm->dirty that precede the first scan: few, but where many pages are shared */
    int32_t slot;          /* of the last page reported, */
    uint32_t alone_writes; /* and how many of its pages in exclusive mode were */
};

static bool was_noted(const struct quoit_dsm *dsm, const struct sweep *sweep, uint64_t page)
{
    for (uint64_t i = 0; i < sweep->noted; i++) {
        if (dsm->dirty[i] == page)
            return true;
    }
    return false;
}

/* A chunk whose pages in exclusive mode are written all the time is better scanned without them. */
static void count_alone(struct quoit_dsm *dsm, struct sweep *sweep, int32_t slot)
{
    sweep->alone_writes = sweep->slot == slot ? sweep->alone_writes + 1 : 1;
    sweep->slot = slot;
    if (sweep->alone_writes > ALONE_WRITES_MAX)
        dsm->apart_for[slot] = APART_RELEASES;
}

static void add_page(struct quoit_dsm *dsm, struct sweep *sweep, int32_t slot, uint64_t page)
{
    bool is_last = dsm->dirty_count > 0 && dsm->dirty[dsm->dirty_count - 1] == page;
    if (dsm->states[page] == QUOIT_DSM_EXCLUSIVE)
        count_alone(dsm, sweep, slot);
    if (dsm->states[page] != QUOIT_DSM_CLEAN || is_last || was_noted(dsm, sweep, page))
        return;
    dsm->dirty[dsm->dirty_count++] = (uint32_t)page;
    dsm->idle_scans[slot] = 1;
}

/* Small pages of the kernel to pages of ours; each once, though several of its parts may be reported. Frozen chunks
 * have not been written. */
static void add_region(struct quoit_dsm *dsm, struct sweep *sweep, const struct scan_region *region)
{
    for (uint64_t at = region->start; at < region->end;) {
        uint64_t offset = quoit_dsm_offset_of(dsm, (const void *)at);
        int32_t slot = dsm->slot_of_chunk[offset >> dsm->chunk_shift] - 1;
        uint64_t page = quoit_dsm_page_of_slot(dsm, slot) + (offset % dsm->chunk_bytes >> dsm->page_shift);
        if (dsm->idle_scans[slot] < IS_SHUT)
            add_page(dsm, sweep, slot, page);
        at = (at / dsm->page_bytes + 1) * dsm->page_bytes;
    }
}

/* A page without an entry counts as written, since the kernel may have taken the entry of a written one away;
 * add_region leaves out those that are not open. */
static void scan_range(struct quoit_dsm *dsm, struct sweep *sweep, uint64_t start, uint64_t end)
{
    struct scan_region regions[SCAN_REGIONS_MAX];
    while (start < end) {
        struct scan scan = {.size = sizeof scan,
                            .flags = SCAN_WATCH_AGAIN,
                            .start = start,
                            .end = end,
                            .vec = (uintptr_t)regions,
                            .vec_len = SCAN_REGIONS_MAX,
                            .category_mask = IS_WRITTEN,
                            .return_mask = IS_WRITTEN};
        dsm->stats.scans++;
        int count = ioctl(dsm->pagemap_fd, PAGEMAP_SCAN_CALL, &scan);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            quoit_dsm_wrong("PAGEMAP_SCAN failed: %s; DSM_DETECT=wp or segv does without", strerror(errno));
        for (int i = 0; i < count; i++)
            add_region(dsm, sweep, &regions[i]);
        start = scan.walk_end > start ? scan.walk_end : end;
    }
}

static uint64_t pages_used(const struct quoit_dsm *dsm, uint64_t slot)
{
    return quoit_dsm_chunk_used(dsm, dsm->chunk_of_slot[slot]) >> dsm->page_shift;
}

static bool protect_slot(struct quoit_dsm *dsm, uint64_t slot, int access)
{
    uint64_t page = quoit_dsm_page_of_slot(dsm, (int32_t)slot);
    return mprotect(quoit_dsm_page_address(dsm, page), pages_used(dsm, slot) << dsm->page_shift, access) == 0;
}

static void change_slot(struct quoit_dsm *dsm, uint64_t slot, int access)
{
    if (!protect_slot(dsm, slot, access))
        quoit_dsm_wrong("mprotect of a chunk failed: %s", strerror(errno));
}

/* If the chunk is shut it is only frozen then, with all of its pages open, or none. Returns whether it was shut. */
static bool leave_shut(struct quoit_dsm *dsm, uint64_t slot, bool opens_all)
{
    if (dsm->idle_scans[slot] != IS_SHUT)
        return false;
    if (!opens_all)
        close_pages(dsm, quoit_dsm_page_of_slot(dsm, (int32_t)slot), pages_used(dsm, slot));
    change_slot(dsm, slot, PROT_READ);
    dsm->idle_scans[slot] = IS_FROZEN;
    return true;
}

/* A chunk that nobody writes is frozen: a store to it ends in a SIGSEGV, so that it need not be scanned, and a release
 * costs the same however much memory has been touched. It stays as it is where the kernel has no room for another
 * mapping. */
static bool freeze_slot(struct quoit_dsm *dsm, uint64_t slot)
{
    bool is_done = protect_slot(dsm, slot, PROT_READ);
    dsm->idle_scans[slot] = is_done ? IS_FROZEN : 1;
    return is_done;
}

static bool is_frozen(const struct quoit_dsm *dsm, uint64_t page)
{
    return dsm->idle_scans[page / dsm->chunk_pages] >= IS_SHUT;
}

/* A chunk of which this PE only reads copies is frozen from the first on. */
static void freeze(struct quoit_dsm *dsm, uint64_t page)
{
    uint64_t slot = page / dsm->chunk_pages;
    if (dsm->idle_scans[slot] == NOT_SCANNED && dsm->open_in[slot] == 0 && dsm->exclusive_in[slot] == 0)
        freeze_slot(dsm, slot);
}

static void thaw(struct quoit_dsm *dsm, uint64_t page)
{
    uint64_t slot = page / dsm->chunk_pages;
    quoit_assert(is_frozen(dsm, page));
    leave_shut(dsm, slot, false);
    dsm->idle_scans[slot] = 1;
    change_slot(dsm, slot, PROT_READ | PROT_WRITE);
}

/* Pages of a frozen chunk that are closed all at once will probably be opened all at once. So they keep their entries:
 * one mprotect changes the access of all. A new entry costs 0.3 us. */
static void close_async(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    uint64_t slot = page / dsm->chunk_pages;
    quoit_assert(dsm->idle_scans[slot] != IS_SHUT);
    if (dsm->idle_scans[slot] == IS_FROZEN && count == pages_used(dsm, slot) && protect_slot(dsm, slot, PROT_NONE))
        dsm->idle_scans[slot] = IS_SHUT;
    else
        close_pages(dsm, page, count);
}

static void open_read_async(struct quoit_dsm *dsm, uint64_t page, uint64_t count)
{
    uint64_t slot = page / dsm->chunk_pages;
    bool is_whole = count == pages_used(dsm, slot);
    if (!leave_shut(dsm, slot, is_whole) || !is_whole)
        open_read(dsm, page, count);
}

static void open_write_async(struct quoit_dsm *dsm, uint64_t page, uint64_t count, bool was_readable)
{
    leave_shut(dsm, page / dsm->chunk_pages, false);
    open_write(dsm, page, count, was_readable);
}

static uint64_t address_of(const struct quoit_dsm *dsm, uint64_t chunk)
{
    return (uintptr_t)quoit_dsm_address_of(dsm, chunk << dsm->chunk_shift);
}

/* Whether one scan may go on to `start`, in mapped chunk i: it walks the entries of mapped chunks between, and watches
 * those of their pages that are in exclusive mode; the kernel skips chunks that are not mapped. */
static bool reaches(const struct quoit_dsm *dsm, const struct sweep *sweep, uint64_t i, uint64_t start)
{
    if (start == sweep->end)
        return true;
    if (sweep->end == 0 || address_of(dsm, dsm->mapped[i]) - address_of(dsm, sweep->chunk) !=
                               (dsm->mapped[i] - sweep->chunk) << dsm->chunk_shift)
        return false; /* the program's variables are elsewhere */
    uint64_t count = 0, gap_chunks_max = GAP_BYTES_MAX >> dsm->chunk_shift;
    for (;; i--) {
        if (dsm->apart_for[dsm->slot_of_chunk[dsm->mapped[i]] - 1] > 0)
            return false;
        if (dsm->mapped[i] == sweep->chunk)
            return true;
        if (count++ > gap_chunks_max)
            return false;
    }
}

static void add_range(struct quoit_dsm *dsm, struct sweep *sweep, uint64_t i, uint64_t start, uint64_t bytes)
{
    if (!reaches(dsm, sweep, i, start)) {
        scan_range(dsm, sweep, sweep->start, sweep->end);
        sweep->start = start;
    }
    sweep->end = start + bytes;
    sweep->chunk = dsm->mapped[i];
}

/* The pages of a chunk but for those in exclusive mode. */
static void add_watched(struct quoit_dsm *dsm, struct sweep *sweep, uint64_t i, uint64_t start, uint64_t bytes)
{
    uint64_t first = quoit_dsm_page_of_slot(dsm, dsm->slot_of_chunk[dsm->mapped[i]] - 1);
    for (uint64_t at = 0; at < bytes; at += dsm->page_bytes) {
        enum quoit_dsm_state state = (enum quoit_dsm_state)dsm->states[first + (at >> dsm->page_shift)];
        if (state == QUOIT_DSM_CLEAN || state == QUOIT_DSM_DIRTY)
            add_range(dsm, sweep, i, start + at, dsm->page_bytes);
    }
}

static void collect_async(struct quoit_dsm *dsm)
{
    struct sweep sweep = {.noted = dsm->dirty_count, .slot = -1};
    for (uint64_t i = 0; i < dsm->mapped_count; i++) {
        uint64_t slot = (uint64_t)dsm->slot_of_chunk[dsm->mapped[i]] - 1,
                 bytes = quoit_dsm_chunk_used(dsm, dsm->mapped[i]);
        uint64_t start = address_of(dsm, dsm->mapped[i]);
        dsm->apart_for[slot] -= dsm->apart_for[slot] > 0;
        if (dsm->open_in[slot] == 0 || dsm->idle_scans[slot] >= IS_SHUT)
            continue;
        dsm->idle_scans[slot] += dsm->idle_scans[slot] < IDLE_SCANS_MAX;
        if (dsm->idle_scans[slot] == IDLE_SCANS_MAX && dsm->exclusive_in[slot] == 0 && freeze_slot(dsm, slot)) {
            dsm->idle_scans[slot] = 1;
            scan_range(dsm, &sweep, start, start + bytes); /* what was written before */
            dsm->idle_scans[slot] = IS_FROZEN;
        } else if (dsm->apart_for[slot] > 0) {
            add_watched(dsm, &sweep, i, start, bytes);
        } else {
            add_range(dsm, &sweep, i, start, bytes);
        }
    }
    scan_range(dsm, &sweep, sweep.start, sweep.end);
}

const struct quoit_dsm_detector quoit_dsm_detect_async = {.name = "async",
                                                          .sees_writes = false,
                                                          .start = start_async,
                                                          .stop = stop,
                                                          .watch = watch,
                                                          .close = close_async,
                                                          .open_read = open_read_async,
                                                          .open_write = open_write_async,
                                                          .is_frozen = is_frozen,
                                                          .freeze = freeze,
                                                          .thaw = thaw,
                                                          .collect = collect_async};

const struct quoit_dsm_detector quoit_dsm_detect_wp = {.name = "wp",
                                                       .sees_writes = true,
                                                       .start = start_wp,
                                                       .stop = stop,
                                                       .watch = watch,
                                                       .close = close_pages,
                                                       .open_read = open_read,
                                                       .open_write = open_write,
                                                       .collect = collect_wp};
