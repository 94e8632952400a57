/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_checkpoint and dsm_restart.
 *
 * Each PE writes the pages of the chunks whose directory it is, alternately to PATH.PE.0 and .1. Each page has a fixed
 * offset in a sparse file; a page that the file already contains unchanged is not written. PATH names the complete
 * generation and is replaced once all files are on disk, so a job that dies in between leaves the previous one. */
#include <dsm.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dsm/barrier.h"
#include "dsm/coherence.h"
#include "dsm/home.h"
#include "dsm/net.h"
#include "dsm/profile.h"
#include "dsm/sync.h"

#define PATH_MAX_BYTES 4096
#define GENERATIONS    2
#define FORMAT         2

/* PATH. */
struct summary {
    char magic[8]; /* "qdsmckpt" */
    uint64_t format, generation, pe_count, page_bytes, chunk_bytes, slot_count, space, heap_bytes, globals_bytes;
};

/* A file: the places of its pages, the objects behind the last page, in between the pages. */
struct index {
    uint64_t object_count;
    uint32_t chunk_of_slot[]; /* chunk + 1; then for each page home + 1, 0: not in this file */
};

struct quoit_dsm_checkpoint {
    char path[PATH_MAX_BYTES];
    uint64_t generation;
    uint64_t *hashes[GENERATIONS]; /* [page] what each file has; 0: nothing */
};

static uint64_t hash_of(const char *page, size_t bytes)
{
    uint64_t hash = 0x9e3779b97f4a7c15ull;
    for (size_t at = 0; at < bytes; at += 8) {
        uint64_t word;
        memcpy(&word, page + at, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdull;
        hash ^= hash >> 29;
    }
    return hash | 1;
}

static size_t index_bytes(uint64_t slot_count, uint64_t page_count)
{
    size_t bytes = sizeof(struct index) + (slot_count + page_count) * sizeof(uint32_t);
    return (bytes + 4095) / 4096 * 4096;
}

static void name_file(char *name, const char *path, int pe, uint64_t generation)
{
    snprintf(name, PATH_MAX_BYTES, "%.4000s.%d.%d", path, pe, (int)(generation % GENERATIONS));
}

/* The names in the folder of PATH are on disk too, as far as it may be read and its file system syncs folders. */
static int sync_folder(const char *path)
{
    char copy[PATH_MAX_BYTES];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : errno;
    int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return error;
}

static bool write_at(int fd, const void *from, size_t bytes, uint64_t offset)
{
    while (bytes > 0) {
        ssize_t done = pwrite(fd, from, bytes, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        from = (const char *)from + done;
        offset += (uint64_t)done;
        bytes -= (size_t)done;
    }
    return true;
}

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* The most severe error of all PEs, on every PE. */
static int agree(struct quoit_dsm *dsm, int error)
{
    int worst = 0;
    dsm->words[QUOIT_DSM_AGREE] = (uint64_t)error;
    shmem_barrier_all();
    for (int pe = 0; pe < dsm->pe_count; pe++) {
        uint64_t word;
        shmem_getmem(&word, &dsm->words[QUOIT_DSM_AGREE], sizeof word, pe);
        worst = (int)word > worst ? (int)word : worst;
    }
    shmem_barrier_all();
    return worst;
}

/* Writing */

/* The homes of a chunk's pages, 0 for untouched ones. */
static void homes_of_chunk(struct quoit_dsm *dsm, uint64_t first, uint64_t *homes)
{
    for (uint64_t i = 0; i < dsm->chunk_pages; i++)
        homes[i] = 1;
    for (uint64_t i = 0; i < dsm->chunk_pages && !dsm->is_direct;) {
        uint64_t count = 64 - (first + i) % 64;
        if (count > dsm->chunk_pages - i)
            count = dsm->chunk_pages - i;
        quoit_dsm_get(dsm, homes + i, &dsm->homes[first + i], count * sizeof *homes,
                      quoit_dsm_directory_of(dsm, first + i));
        for (uint64_t end = i + count; i < end; i++)
            homes[i] = homes[i] & QUOIT_DSM_UNTAKEN ? 0 : (uint64_t)(quoit_dsm_home_in(homes[i]) + 1);
    }
}

static bool write_chunk(struct quoit_dsm *dsm, int fd, uint64_t slot, struct index *index, uint64_t *hashes)
{
    uint64_t first = quoit_dsm_page_of_slot(dsm, (int32_t)slot);
    uint64_t *homes = malloc(dsm->chunk_pages * sizeof *homes);
    char *page = malloc(dsm->page_bytes);
    bool is_written = homes && page;
    if (is_written)
        homes_of_chunk(dsm, first, homes);
    for (uint64_t i = 0; i < dsm->chunk_pages && is_written; i++) {
        index->chunk_of_slot[dsm->slot_count + first + i] = (uint32_t)homes[i];
        if (homes[i] == 0)
            continue;
        quoit_dsm_get(dsm, page, quoit_dsm_master(dsm, first + i), dsm->page_bytes, (int)homes[i] - 1);
        uint64_t hash = hash_of(page, dsm->page_bytes);
        if (hash == hashes[first + i])
            continue;
        is_written = write_at(fd, page, dsm->page_bytes,
                              index_bytes(dsm->slot_count, dsm->page_count) + ((first + i) << dsm->page_shift));
        hashes[first + i] = is_written ? hash : 0;
        dsm->stats.checkpoint_pages++;
    }
    free(homes);
    free(page);
    return is_written;
}

static bool write_pages(struct quoit_dsm *dsm, int fd, struct index *index, uint64_t *hashes)
{
    uint64_t count = (uint64_t)dsm->pe_count;
    for (uint64_t chunk = (uint64_t)dsm->me; chunk < dsm->chunk_count; chunk += count) {
        uint64_t word = dsm->chunks[chunk / count];
        if (word == 0)
            continue;
        index->chunk_of_slot[word - 1] = (uint32_t)chunk + 1;
        if (!write_chunk(dsm, fd, word - 1, index, hashes))
            return false;
    }
    return true;
}

static int write_file(struct quoit_dsm *dsm, struct quoit_dsm_checkpoint *checkpoint)
{
    char name[PATH_MAX_BYTES];
    name_file(name, checkpoint->path, dsm->me, checkpoint->generation);
    uint64_t *hashes = checkpoint->hashes[checkpoint->generation % GENERATIONS];
    size_t bytes = index_bytes(dsm->slot_count, dsm->page_count);
    struct index *index = calloc(1, bytes);
    struct quoit_dsm_saved *objects = NULL;
    int error = index ? quoit_dsm_syncs_save(dsm, &objects, &index->object_count) : ENOMEM;
    int fd = error == 0 ? open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666) : -1;
    bool is_written =
        fd >= 0 && write_pages(dsm, fd, index, hashes) && write_at(fd, index, bytes, 0) &&
        write_at(fd, objects, index->object_count * sizeof *objects, bytes + (dsm->page_count << dsm->page_shift)) &&
        fsync(fd) == 0;
    if (error == 0 && !is_written)
        error = errno ? errno : EIO;
    if (fd >= 0)
        close(fd);
    free(objects);
    free(index);
    return error == 0 ? sync_folder(checkpoint->path) : error;
}

static struct summary summary_of(const struct quoit_dsm *dsm, uint64_t generation)
{
    return (struct summary){.magic = {'q', 'd', 's', 'm', 'c', 'k', 'p', 't'},
                            .format = FORMAT,
                            .generation = generation,
                            .pe_count = (uint64_t)dsm->pe_count,
                            .page_bytes = dsm->page_bytes,
                            .chunk_bytes = dsm->chunk_bytes,
                            .slot_count = dsm->slot_count,
                            .space = (uintptr_t)dsm->space,
                            .heap_bytes = dsm->heap_bytes,
                            .globals_bytes = dsm->globals_bytes};
}

static int write_summary(const struct quoit_dsm *dsm, const struct quoit_dsm_checkpoint *checkpoint)
{
    char name[PATH_MAX_BYTES];
    struct summary summary = summary_of(dsm, checkpoint->generation);
    snprintf(name, sizeof name, "%.4000s.new", checkpoint->path);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno;
    int error = write_at(fd, &summary, sizeof summary, 0) && fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (error == 0 && rename(name, checkpoint->path) != 0)
        error = errno;
    return error == 0 ? sync_folder(checkpoint->path) : error;
}

static bool read_summary(const char *path, struct summary *summary)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_read = read_at(fd, summary, sizeof *summary, 0) && memcmp(summary->magic, "qdsmckpt", 8) == 0;
    close(fd);
    return is_read;
}

/* The content of files of an earlier run is not assumed, but their generation number is continued. */
static struct quoit_dsm_checkpoint *begin(struct quoit_dsm *dsm, const char *path)
{
    struct quoit_dsm_checkpoint *checkpoint = dsm->checkpoint;
    if (checkpoint && strcmp(checkpoint->path, path) == 0)
        return checkpoint;
    quoit_dsm_checkpoint_forget(dsm);
    checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint)
        return NULL;
    dsm->checkpoint = checkpoint;
    memcpy(checkpoint->path, path, strlen(path) + 1);
    for (int i = 0; i < GENERATIONS; i++) {
        checkpoint->hashes[i] = calloc(dsm->page_count, sizeof(uint64_t));
        if (!checkpoint->hashes[i])
            return NULL;
    }
    struct summary summary;
    if (read_summary(path, &summary))
        checkpoint->generation = summary.generation;
    return checkpoint;
}

void quoit_dsm_checkpoint_forget(struct quoit_dsm *dsm)
{
    for (int i = 0; dsm->checkpoint && i < GENERATIONS; i++)
        free(dsm->checkpoint->hashes[i]);
    free(dsm->checkpoint);
    dsm->checkpoint = NULL;
}

/* The path may lie in shared memory, which must not be touched under the library's lock, nor by system calls. */
static void copy_path(char *path, const char *from, const char *call)
{
    if (!from || from[0] == '\0' || strlen(from) > PATH_MAX_BYTES - 100)
        quoit_dsm_wrong("%s: path has %zu bytes, but 1 to %d are needed", call, from ? strlen(from) : 0,
                        PATH_MAX_BYTES - 100);
    memcpy(path, from, strlen(from) + 1);
}

int dsm_checkpoint(const char *path_given)
{
    QUOIT_DSM_CALL("dsm_checkpoint");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_checkpoint");
    char path[PATH_MAX_BYTES];
    copy_path(path, path_given, "dsm_checkpoint");
    quoit_dsm_barrier(dsm);
    quoit_dsm_lock(dsm);
    struct quoit_dsm_checkpoint *checkpoint = begin(dsm, path);
    shmem_barrier_all(); /* all have read the old summary */
    int error = ENOMEM;
    if (checkpoint) {
        checkpoint->generation++;
        error = write_file(dsm, checkpoint);
    }
    error = agree(dsm, error);
    if (error == 0)
        error = agree(dsm, dsm->me == 0 ? write_summary(dsm, checkpoint) : 0);
    if (error != 0)
        quoit_dsm_checkpoint_forget(dsm);
    quoit_dsm_unlock(dsm);
    quoit_dsm_barrier(dsm);
    return error;
}

/* Reading */

static void compare(const struct quoit_dsm *dsm, const char *path, const struct summary *found)
{
    struct summary own = summary_of(dsm, found->generation);
    const struct {
        const char *what;
        uint64_t found, own;
    } all[] = {{"the format", found->format, own.format},
               {"DSM_PAGE", found->page_bytes, own.page_bytes},
               {"the address of shared memory", found->space, own.space},
               {"DSM_SPACE less the variables marked DSM_SHARED", found->heap_bytes, own.heap_bytes},
               {"the bytes of variables marked DSM_SHARED", found->globals_bytes, own.globals_bytes}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].found != all[i].own)
            quoit_dsm_wrong("dsm_restart: %s was %#llx in %s, but it is %#llx in this job", all[i].what,
                            (unsigned long long)all[i].found, path, (unsigned long long)all[i].own);
    }
}

/* The pages that this PE restores: those of its number, or of numbers that this job does not have. They are written
 * like any other memory, so this PE becomes their home unless they have one. */
static int read_pages(struct quoit_dsm *dsm, int fd, const struct index *index, const struct summary *summary)
{
    uint64_t chunk_pages = summary->chunk_bytes / summary->page_bytes, page_count = summary->slot_count * chunk_pages;
    size_t base = index_bytes(summary->slot_count, page_count);
    char *page = malloc(summary->page_bytes);
    int error = page ? 0 : ENOMEM;
    for (uint64_t i = 0; i < page_count && error == 0; i++) {
        uint64_t chunk = index->chunk_of_slot[i / chunk_pages], home = index->chunk_of_slot[summary->slot_count + i];
        if (chunk == 0 || home == 0 || (home - 1) % (uint64_t)dsm->pe_count != (uint64_t)dsm->me)
            continue;
        uint64_t offset = (chunk - 1) * summary->chunk_bytes + i % chunk_pages * summary->page_bytes;
        if (offset >= summary->heap_bytes + summary->globals_bytes)
            continue;
        if (!read_at(fd, page, summary->page_bytes, base + i * summary->page_bytes))
            error = EIO;
        else
            memcpy(quoit_dsm_address_of(dsm, offset), page, summary->page_bytes);
    }
    free(page);
    return error;
}

static int read_objects(struct quoit_dsm *dsm, int fd, uint64_t count, uint64_t offset)
{
    for (uint64_t i = 0; i < count; i++) {
        struct quoit_dsm_saved saved;
        if (!read_at(fd, &saved, sizeof saved, offset + i * sizeof saved))
            return EIO;
        quoit_dsm_syncs_restore(dsm, &saved);
    }
    return 0;
}

static int read_file(struct quoit_dsm *dsm, const char *path, int pe, const struct summary *summary)
{
    char name[PATH_MAX_BYTES];
    name_file(name, path, pe, summary->generation);
    uint64_t page_count = summary->slot_count * (summary->chunk_bytes / summary->page_bytes);
    size_t bytes = index_bytes(summary->slot_count, page_count);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    struct index *index = malloc(bytes);
    int error = !index ? ENOMEM : read_at(fd, index, bytes, 0) ? 0 : EIO;
    if (error == 0)
        error = read_pages(dsm, fd, index, summary);
    if (error == 0 && pe % dsm->pe_count == dsm->me)
        error = read_objects(dsm, fd, index->object_count, bytes + page_count * summary->page_bytes);
    free(index);
    close(fd);
    return error;
}

int dsm_restart(const char *path_given)
{
    QUOIT_DSM_CALL("dsm_restart");
    struct quoit_dsm *dsm = quoit_dsm_running("dsm_restart");
    char path[PATH_MAX_BYTES];
    copy_path(path, path_given, "dsm_restart");
    quoit_dsm_barrier(dsm);
    struct summary summary;
    int error = agree(dsm, read_summary(path, &summary) ? 0 : ENOENT);
    if (error != 0)
        return error;
    compare(dsm, path, &summary);
    quoit_dsm_syncs_clear(dsm); /* the program may have initialized objects that were zero */
    shmem_barrier_all();
    for (uint64_t pe = 0; pe < summary.pe_count && error == 0; pe++)
        error = read_file(dsm, path, (int)pe, &summary);
    error = agree(dsm, error);
    quoit_dsm_barrier(dsm);
    return error;
}
