/* SPDX-License-Identifier: BSD-3-Clause */
#include "profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "profile_meetings.h"

static void report_unwritten(const struct job *job)
{
    quoit_say("cannot write %s: %s [Q0213]", plan_text(job->plan, QUOIT_OPT_PROFILE), strerror(errno));
}

bool profile_open(struct job *job)
{
    const char *path = plan_text(job->plan, QUOIT_OPT_PROFILE);
    if (!path[0])
        return true;
    job->profile_out = fopen(path, "we");
    if (!job->profile_out)
        report_unwritten(job);
    return job->profile_out != NULL;
}

/* profile.html, as bytes; CMakeLists.txt makes it. */
extern const char profile_page[];

/* JSON inside a script of a page: there "<" could begin the end of it. */
static bool write_page(const struct profile_table *table, FILE *out)
{
    static const char place[] = "@DATA@";
    const char *rest = strstr(profile_page, place);
    char *text = NULL;
    size_t bytes = 0;
    FILE *json = open_memstream(&text, &bytes);
    if (!json)
        return false;
    profile_write_json(table, json);
    bool is_whole = fclose(json) == 0;
    fwrite(profile_page, 1, (size_t)(rest - profile_page), out);
    for (size_t i = 0; i < bytes && is_whole; i++)
        if (text[i] == '<')
            fputs("\\u003c", out);
        else
            putc(text[i], out);
    fputs(rest + strlen(place), out);
    free(text);
    return is_whole;
}

static bool is_page(const char *path)
{
    size_t length = strlen(path);
    return length >= strlen(".html") && strcmp(path + length - strlen(".html"), ".html") == 0;
}

static void print(struct job *job, const struct profile_table *table)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    profile_print(table, out);
    fclose(out);
    output_print(&job->output, text, bytes);
    free(text);
}

bool profile_finish(struct job *job)
{
    struct profile_table table;
    if (!job->profile_out)
        return true;
    errno = ENOMEM;
    bool is_made = profile_make(&table, job) && profile_meet(&table);
    if (is_made) {
        profile_order(&table);
        print(job, &table);
        if (is_page(plan_text(job->plan, QUOIT_OPT_PROFILE)))
            is_made = write_page(&table, job->profile_out);
        else
            profile_write_json(&table, job->profile_out);
    }
    profile_free(&table);
    bool is_written = fclose(job->profile_out) == 0 && is_made;
    if (!is_written)
        report_unwritten(job);
    job->profile_out = NULL;
    return is_written;
}
