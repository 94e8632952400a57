/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/picture.h"
#include "ring/route.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LEFT_COLUMN  10 /* centre of the left hosts */
#define RIGHT_COLUMN 58
#define ROW_LINES    5 /* from one row of hosts to the next */

/* A character canvas, painted and then printed. */
struct canvas {
    const struct quoit_picture *picture;
    char (*lines)[QUOIT_PICTURE_COLUMNS + 1];
    uint32_t line_count;
};

static void paint(struct canvas *canvas, uint32_t line, uint32_t column, const char *text)
{
    for (; *text && column < QUOIT_PICTURE_COLUMNS && line < canvas->line_count; column++)
        canvas->lines[line][column] = *text++;
}

static void paint_host(struct canvas *canvas, uint32_t line, uint32_t middle, uint32_t host)
{
    char text[24];
    snprintf(text, sizeof text, "[host%u]", canvas->picture->hosts.first + host);
    paint(canvas, line, middle - (uint32_t)strlen(text) / 2, text);
}

/* " --> 1.2 MiB, 340 msgs " */
static void paint_direction(struct canvas *canvas, uint32_t line, uint32_t column, const char *arrow, uint32_t from,
                            enum quoit_side side)
{
    char described[QUOIT_PICTURE_TEXT_BYTES] = "", text[QUOIT_PICTURE_TEXT_BYTES + 8];
    canvas->picture->describe(canvas->picture->arg, canvas->picture->hosts.first + from, side, described);
    snprintf(text, sizeof text, " %s %s ", arrow, described);
    paint(canvas, line, column, text);
}

static uint32_t next_host(const struct canvas *canvas, uint32_t host)
{
    return quoit_ring_neighbour(canvas->picture->hosts.count, QUOIT_RIGHT, host);
}

/* The link from `host` to its right neighbour, drawn horizontally between the columns, in either direction. */
static void paint_across(struct canvas *canvas, uint32_t line, uint32_t host, bool is_rightward)
{
    for (uint32_t column = LEFT_COLUMN; column < RIGHT_COLUMN; column++)
        paint(canvas, line, column, "-");
    paint_direction(canvas, line - 1, LEFT_COLUMN + 8, is_rightward ? "-->" : "<--", host, QUOIT_RIGHT);
    paint_direction(canvas, line + 1, LEFT_COLUMN + 8, is_rightward ? "<--" : "-->", next_host(canvas, host),
                    QUOIT_LEFT);
}

/* The same drawn vertically: downwards in the right column, upwards in the left one. */
static void paint_along(struct canvas *canvas, uint32_t line, uint32_t column, uint32_t host, bool is_downward)
{
    for (uint32_t i = 0; i < ROW_LINES - 1; i++)
        paint(canvas, line + i, column, "|");
    paint_direction(canvas, line + 1, column + 1, is_downward ? "v" : "^", host, QUOIT_RIGHT);
    paint_direction(canvas, line + 2, column + 1, is_downward ? "^" : "v", next_host(canvas, host), QUOIT_LEFT);
}

/* The bottom edge: with two hosts the second link below the first; with an even number the last pair; else the last
 * host alone.
 */
static void paint_bottom(struct canvas *canvas)
{
    uint32_t host_count = canvas->picture->hosts.count, last = host_count / 2, line = 1 + (last - 1) * ROW_LINES;
    if (host_count == 2) {
        for (uint32_t i = 1; i < ROW_LINES; i++) {
            paint(canvas, line + i, LEFT_COLUMN, "|");
            paint(canvas, line + i, RIGHT_COLUMN, "|");
        }
        paint_across(canvas, line + ROW_LINES, 1, false);
    } else if (host_count % 2 == 0) {
        paint_across(canvas, line, last, false);
        paint_host(canvas, line, LEFT_COLUMN, last + 1);
        paint_host(canvas, line, RIGHT_COLUMN, last);
    } else {
        paint_along(canvas, line + 1, RIGHT_COLUMN, last, true);
        paint_along(canvas, line + 1, LEFT_COLUMN, last + 1, false);
        for (uint32_t column = LEFT_COLUMN; column <= RIGHT_COLUMN; column++)
            paint(canvas, line + ROW_LINES, column, "-");
        paint_host(canvas, line + ROW_LINES, (LEFT_COLUMN + RIGHT_COLUMN) / 2, last + 1);
    }
}

/* Hosts run down the right column and up the left one. */
static void paint_ring(struct canvas *canvas)
{
    uint32_t host_count = canvas->picture->hosts.count, rows = host_count / 2;
    for (uint32_t row = 0; row < rows; row++) {
        uint32_t right = row + 1, left = row == 0 ? 0 : host_count - row, line = 1 + row * ROW_LINES;
        if (row == 0)
            paint_across(canvas, line, 0, true);
        if (row + 1 < rows) {
            paint_along(canvas, line + 1, RIGHT_COLUMN, right, true);
            paint_along(canvas, line + 1, LEFT_COLUMN, (left == 0 ? host_count : left) - 1, false);
        }
        paint_host(canvas, line, LEFT_COLUMN, left);
        paint_host(canvas, line, RIGHT_COLUMN, right);
    }
    paint_bottom(canvas);
}

void quoit_picture_print(const struct quoit_picture *picture, FILE *out)
{
    struct canvas canvas = {.picture = picture, .line_count = (picture->hosts.count / 2 + 1) * ROW_LINES + 3};
    if (picture->hosts.count < 2 || picture->hosts.count > QUOIT_PICTURE_HOSTS_MAX)
        return;
    canvas.lines = malloc(canvas.line_count * sizeof *canvas.lines);
    if (!canvas.lines)
        return;
    for (uint32_t i = 0; i < canvas.line_count; i++)
        memset(canvas.lines[i], ' ', sizeof canvas.lines[i]);
    paint_ring(&canvas);
    for (uint32_t i = 0; i < canvas.line_count; i++) {
        int length = QUOIT_PICTURE_COLUMNS;
        while (length > 0 && canvas.lines[i][length - 1] == ' ')
            length--;
        if (length)
            fprintf(out, "%s%.*s\n", picture->indent, length, canvas.lines[i]);
    }
    free(canvas.lines);
}
