/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/options.h"
#include "base/assert.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME_BYTES_MAX  64 /* longer names cannot be misspellings of ours */
#define NEAR_EDITS_MAX  3  /* more edits than this make a different word */
#define FRACTION_DIGITS 9  /* digits past this many after the point are ignored */
#define EXPONENT_MAX    99 /* a larger exponent is zero or out of range in any unit */

const struct quoit_option quoit_options_table[QUOIT_OPT_COUNT] = {
#define X(id, name, variable, type, fallback, placeholder, smallest, largest, section, reader, sentence, paragraph)    \
    [QUOIT_OPT_##id] = {name,                                                                                          \
                        variable,                                                                                      \
                        QUOIT_OPTION_##type,                                                                           \
                        fallback,                                                                                      \
                        placeholder,                                                                                   \
                        smallest,                                                                                      \
                        largest,                                                                                       \
                        QUOIT_SECTION_##section,                                                                       \
                        QUOIT_READER_##reader,                                                                         \
                        sentence,                                                                                      \
                        paragraph},
    QUOIT_OPTIONS_TABLE(X)
#undef X
};

const char *const quoit_option_sections[QUOIT_SECTION_COUNT] = {
#define X(section, title) [QUOIT_SECTION_##section] = title,
    QUOIT_OPTION_SECTIONS(X)
#undef X
};

const char *const quoit_option_readers[QUOIT_READER_COUNT] = {
#define X(reader, words) [QUOIT_READER_##reader] = words,
    QUOIT_OPTION_READERS(X)
#undef X
};

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest unit last: formatting takes the largest that divides the value. */
static const struct unit byte_units[] = {
    {"", 1}, {"K", 1ull << 10}, {"M", 1ull << 20}, {"G", 1ull << 30}, {"T", 1ull << 40}, {NULL, 0},
};
static const struct unit time_units[] = {
    {"ns", 1},
    {"us", 1000},
    {"ms", 1000000},
    {"s", 1000000000},
    {"", 1000000000},
    {"min", 60000000000ull},
    {"h", 3600000000000ull},
    {NULL, 0},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool quoit_parse_uint(const char *text, uint64_t *value_out)
{
    uint64_t value = 0;
    if (!is_digit(*text))
        return false;
    for (; is_digit(*text); text++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *value_out = value;
    return *text == '\0';
}

/* A decimal number, [digits][.digits][e[+-]digits], parsed without strtod's floating point and locale. */
struct decimal {
    uint64_t whole;
    uint64_t fraction;
    uint64_t fraction_scale;
    int exponent;
};

/* False if there is no digit or too many. Advances *text_inout past the number. */
static bool read_decimal(const char **text_inout, struct decimal *out)
{
    const char *text = *text_inout, *start = text;
    *out = (struct decimal){.fraction_scale = 1};
    for (; is_digit(*text); text++)
        if (__builtin_mul_overflow(out->whole, 10, &out->whole) ||
            __builtin_add_overflow(out->whole, (uint64_t)(*text - '0'), &out->whole))
            return false;
    bool has_digits = text > start;
    if (*text == '.') {
        text++;
        for (int i = 0; is_digit(*text); text++, i++) {
            has_digits = true;
            if (i < FRACTION_DIGITS) {
                out->fraction = out->fraction * 10 + (uint64_t)(*text - '0');
                out->fraction_scale *= 10;
            }
        }
    }
    bool has_sign = (*text == 'e' || *text == 'E') && (text[1] == '-' || text[1] == '+');
    if (has_digits && (*text == 'e' || *text == 'E') && is_digit(text[has_sign ? 2 : 1])) {
        bool is_negative = text[1] == '-';
        for (text += has_sign ? 2 : 1; is_digit(*text); text++)
            out->exponent = out->exponent > EXPONENT_MAX ? out->exponent : out->exponent * 10 + (*text - '0');
        out->exponent = is_negative ? -out->exponent : out->exponent;
    }
    *text_inout = text;
    return has_digits;
}

/* number * factor, rounded up; false if it exceeds INT64_MAX. */
static bool scale(const struct decimal *number, uint64_t factor, uint64_t *value_out)
{
    unsigned __int128 value, fraction = (unsigned __int128)number->fraction * factor;
    unsigned __int128 divisor = number->fraction_scale;
    if (__builtin_mul_overflow((unsigned __int128)number->whole * factor, divisor, &value) ||
        __builtin_add_overflow(value, fraction, &value))
        return false;
    for (int i = 0; i < number->exponent && value != 0; i++)
        if (__builtin_mul_overflow(value, 10, &value))
            return false;
    for (int i = 0; i > number->exponent && value != 0; i--)
        value = value / 10 + (value % 10 != 0);
    value = value / divisor + (value % divisor != 0);
    if (value > INT64_MAX)
        return false;
    *value_out = (uint64_t)value;
    return true;
}

static bool parse_scaled(const char *text, const struct unit *units, uint64_t *value_out)
{
    struct decimal number;
    if (!read_decimal(&text, &number))
        return false;
    const struct unit *unit = units;
    while (unit->name && strcasecmp(unit->name, text) != 0)
        unit++;
    return unit->name && scale(&number, unit->factor, value_out);
}

/* *rest_out: what follows the suffix. */
static bool parse_bytes_before(const char *text, uint64_t *bytes_out, const char **rest_out)
{
    struct decimal number;
    if (!read_decimal(&text, &number))
        return false;
    const struct unit *unit = byte_units;
    while (unit->name && toupper((unsigned char)*text) != unit->name[0])
        unit++;
    if (!unit->name)
        return false;
    *rest_out = text + strlen(unit->name);
    return scale(&number, unit->factor, bytes_out);
}

bool quoit_parse_bytes(const char *text, uint64_t *bytes_out)
{
    const char *rest;
    uint64_t bytes;
    if (!parse_bytes_before(text, &bytes, &rest) ||
        (*rest != '\0' && strcasecmp(rest, "B") != 0 && strcasecmp(rest, "iB") != 0))
        return false;
    *bytes_out = bytes;
    return true;
}

bool quoit_parse_duration(const char *text, uint64_t *ns_out)
{
    if (!parse_scaled(text, time_units, ns_out))
        return false;
    if (*ns_out > QUOIT_DURATION_NS_MAX)
        *ns_out = QUOIT_DURATION_NS_MAX;
    return true;
}

bool quoit_parse_bool(const char *text, uint64_t *value_out)
{
    static const char *const words[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(words[i], text) == 0) {
            *value_out = i % 2;
            return true;
        }
    return false;
}

bool quoit_parse_from_bytes(const char *text, uint64_t *number_out)
{
    *number_out = strcasecmp(text, "auto") == 0 ? 0 : UINT64_MAX;
    return *number_out == 0 || strcasecmp(text, "never") == 0 ||
           (quoit_parse_bytes(text, number_out) && *number_out > 0);
}

static bool parse_value(enum quoit_option_type type, const char *text, uint64_t *number_out)
{
    const char *rest;
    switch (type) {
    case QUOIT_OPTION_UINT:
        return quoit_parse_uint(text, number_out) && *number_out <= UINT32_MAX;
    case QUOIT_OPTION_BYTES:
        return quoit_parse_bytes(text, number_out);
    case QUOIT_OPTION_SHMEM_BYTES:
        return parse_bytes_before(text, number_out, &rest);
    case QUOIT_OPTION_FROM_BYTES:
        return quoit_parse_from_bytes(text, number_out);
    case QUOIT_OPTION_DURATION:
        return quoit_parse_duration(text, number_out);
    case QUOIT_OPTION_BOOL:
        return quoit_parse_bool(text, number_out);
    case QUOIT_OPTION_STRING:
        *number_out = 0;
        return true;
    case QUOIT_OPTION_ANY:
    case QUOIT_OPTION_FLAG:
        *number_out = 1;
        return true;
    }
    return false;
}

static const char *type_wants(enum quoit_option_type type)
{
    switch (type) {
    case QUOIT_OPTION_UINT:
        return "a whole number";
    case QUOIT_OPTION_BYTES:
    case QUOIT_OPTION_SHMEM_BYTES:
        return "a number with K, M, G or T, such as 512M or 1.5G";
    case QUOIT_OPTION_FROM_BYTES:
        return "auto, never, or a number with K, M or G, such as 16K";
    case QUOIT_OPTION_DURATION:
        return "a time with ns, us, ms, s, min or h, such as 500ms or 60s";
    case QUOIT_OPTION_BOOL:
        return "0 or 1";
    default:
        return "";
    }
}

static void format_scaled(uint64_t value, const struct unit *units, char *text_out, size_t text_bytes)
{
    const struct unit *best = units;
    for (const struct unit *unit = units; unit->name; unit++)
        if (value && value % unit->factor == 0 && unit->name[0])
            best = unit;
    if (value == 0)
        best = byte_units;
    snprintf(text_out, text_bytes, "%llu%s", (unsigned long long)(value / best->factor), best->name);
}

static void format_number(enum quoit_option_type type, uint64_t number, char *text_out, size_t text_bytes)
{
    if (type == QUOIT_OPTION_BYTES || type == QUOIT_OPTION_SHMEM_BYTES)
        format_scaled(number, byte_units, text_out, text_bytes);
    else if (type == QUOIT_OPTION_DURATION)
        format_scaled(number, time_units, text_out, text_bytes);
    else
        snprintf(text_out, text_bytes, "%llu", (unsigned long long)number);
}

/* Rules that smallest and largest cannot express. NULL if the value is allowed, else what is allowed. */
static const char *special_rule(enum quoit_option_id id, const char *text, uint64_t number)
{
    switch (id) {
    case QUOIT_OPT_LANES:
        return (number & (number - 1)) ? "1, 2, 4 or 8" : NULL;
    case QUOIT_OPT_CHUNK:
        return number % 64 ? "a multiple of 64 bytes" : NULL;
    case QUOIT_OPT_WINDOW_MEMORY:
        return (number & (number - 1)) ? "a power of two" : NULL;
    case QUOIT_OPT_BIND_TO:
        return strcmp(text, "core") && strcmp(text, "none") ? "core or none" : NULL;
    case QUOIT_OPT_CORE:
        return strcmp(text, "heap") && strcmp(text, "none") ? "heap or none" : NULL;
    case QUOIT_OPT_PROTOCOL:
        return strcmp(text, "queue") && strcmp(text, "scratchpad") ? "queue or scratchpad" : NULL;
    case QUOIT_OPT_PAYLOAD:
        return strcmp(text, "dma") && strcmp(text, "copy") ? "dma or copy" : NULL;
    case QUOIT_OPT_BARRIER:
        return strcmp(text, "auto") && strcmp(text, "papers") ? "auto or papers" : NULL;
    case QUOIT_OPT_DIRECT_PUTS:
        return strcmp(text, "exact") && strcmp(text, "always") ? "exact or always" : NULL;
    case QUOIT_OPT_NETWORK_DIRECT:
        return strcmp(text, "auto") && strcmp(text, "yes") && strcmp(text, "no") ? "auto, yes or no" : NULL;
    case QUOIT_OPT_WRITES:
        return strcmp(text, "posted") && strcmp(text, "arrived") ? "posted or arrived" : NULL;
    case QUOIT_OPT_PATH:
        return strcmp(text, "auto") && strcmp(text, "memcpy") && strcmp(text, "movsb") && strcmp(text, "stream") &&
                       strcmp(text, "cma") && strcmp(text, "network")
                   ? "auto, memcpy, movsb, stream, cma or network"
                   : NULL;
    case QUOIT_OPT_DEBUG:
        return strcmp(text, "error") && strcmp(text, "warn") && strcmp(text, "info") && strcmp(text, "debug")
                   ? "error, warn, info or debug"
                   : NULL;
    default:
        return NULL;
    }
}

static bool is_whole_number(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == '\0';
}

static void describe_range(const struct quoit_option *option, char *text_out, size_t text_bytes)
{
    char low[32], high[32];
    format_number(option->type, option->smallest, low, sizeof low);
    format_number(option->type, option->largest, high, sizeof high);
    if (option->largest)
        snprintf(text_out, text_bytes, "%s..%s", low, high);
    else
        snprintf(text_out, text_bytes, "%s or more", low);
}

bool quoit_options_set(struct quoit_options *options, enum quoit_option_id id, const char *text,
                       enum quoit_option_source source, const char *shown_as,
                       char problem_out[QUOIT_OPTION_PROBLEM_BYTES])
{
    quoit_assert(id < QUOIT_OPT_COUNT);
    const struct quoit_option *option = &quoit_options_table[id];
    uint64_t number = 0;
    bool is_parsed = parse_value(option->type, text, &number);
    if (!is_parsed && option->type == QUOIT_OPTION_UINT && is_whole_number(text))
        number = UINT64_MAX; /* larger than any limit */
    else if (!is_parsed) {
        snprintf(problem_out, QUOIT_OPTION_PROBLEM_BYTES, "%s is \"%.64s\", but must be %s", shown_as, text,
                 type_wants(option->type));
        return false;
    }
    bool is_ranged = option->type == QUOIT_OPTION_UINT || option->type == QUOIT_OPTION_BYTES ||
                     option->type == QUOIT_OPTION_SHMEM_BYTES || option->type == QUOIT_OPTION_DURATION;
    if (is_ranged && (number < option->smallest || (option->largest && number > option->largest))) {
        char range[80];
        describe_range(option, range, sizeof range);
        snprintf(problem_out, QUOIT_OPTION_PROBLEM_BYTES, "%s is %.64s, but must be %s", shown_as, text, range);
        return false;
    }
    const char *allowed = special_rule(id, text, number);
    if (allowed) {
        snprintf(problem_out, QUOIT_OPTION_PROBLEM_BYTES, "%s is %.64s, but must be %s", shown_as, text, allowed);
        return false;
    }
    options->values[id] = (struct quoit_option_value){.number = number, .text = text, .source = source};
    return true;
}

void quoit_options_default(struct quoit_options *options)
{
    memset(options, 0, sizeof *options);
    for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
        const struct quoit_option *option = &quoit_options_table[i];
        struct quoit_option_value *value = &options->values[i];
        value->text = option->fallback;
        if (option->fallback[0]) {
            bool is_parsed = parse_value(option->type, option->fallback, &value->number);
            quoit_assert(is_parsed);
        }
    }
}

/* The value of `variable` in an environment; NULL if it is not set. */
static const char *environment_get(char *const *environment, const char *variable)
{
    size_t length = strlen(variable);
    for (; *environment; environment++)
        if (strncmp(*environment, variable, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

/* The pre-1.4 name of a variable of the specification, SMA_ for SHMEM_; "" if it has none. */
static const char *old_name(const char *variable, char name[NAME_BYTES_MAX + 1])
{
    bool has_one = strncmp(variable, "SHMEM_", 6) == 0;
    snprintf(name, NAME_BYTES_MAX + 1, "%s%s", has_one ? "SMA_" : "", has_one ? variable + 6 : "");
    return name;
}

bool quoit_options_from_environment(struct quoit_options *options, char *const *environment,
                                    char problem_out[QUOIT_OPTION_PROBLEM_BYTES])
{
    for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
        const struct quoit_option *option = &quoit_options_table[i];
        char old[NAME_BYTES_MAX + 1];
        if (!option->variable)
            continue;
        const char *shown_as = option->variable, *text = environment_get(environment, option->variable);
        if (!text && old_name(option->variable, old)[0]) {
            shown_as = old;
            text = environment_get(environment, old);
        }
        bool is_given = text && (text[0] || option->type == QUOIT_OPTION_ANY);
        if (is_given &&
            !quoit_options_set(options, (enum quoit_option_id)i, text, QUOIT_FROM_ENVIRONMENT, shown_as, problem_out))
            return false;
    }
    return true;
}

/* Damerau-Levenshtein distance: insertions, deletions, replacements and swaps of adjacent letters between two words. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned rows[3][NAME_BYTES_MAX + 1];
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > NAME_BYTES_MAX || b_length > NAME_BYTES_MAX)
        return NAME_BYTES_MAX;
    for (unsigned j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *twice_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            unsigned best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && twice_above[j - 2] + 1 < best)
                best = twice_above[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

static const char *nearest_variable(const char *name)
{
    const char *nearest = NULL;
    unsigned nearest_edits = NEAR_EDITS_MAX + 1;
    bool is_old = strncmp(name, "SMA_", 4) == 0;
    for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
        char old[NAME_BYTES_MAX + 1];
        const char *variable = quoit_options_table[i].variable;
        if (!variable || (is_old && !old_name(variable, old)[0]))
            continue;
        unsigned edits = edit_distance(name, is_old ? old : variable);
        if (edits < nearest_edits) {
            nearest = variable;
            nearest_edits = edits;
        }
    }
    return nearest;
}

static bool has_prefix_of_ours(const char *name)
{
    return strncmp(name, "SHMEM_", 6) == 0 || strncmp(name, "QUOIT_", 6) == 0 || strncmp(name, "SMA_", 4) == 0;
}

/* Whether the name is how other OpenSHMEM libraries call the limit of the heap. */
static bool is_heap_size_of_others(const char *name)
{
    static const char *const others[] = {"SHMEM_SYMMETRIC_HEAP_SIZE", "SHMEM_HEAP_SIZE",     "XT_SYMMETRIC_HEAP_SIZE",
                                         "NVSHMEM_SYMMETRIC_SIZE",    "ROC_SHMEM_HEAP_SIZE", "ROCSHMEM_HEAP_SIZE",
                                         "ISHMEM_SYMMETRIC_SIZE"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return false;
}

void quoit_options_unknown(char *const *environment, void (*found)(void *arg, const char *text), void *arg)
{
    /* Variables that the launcher sets for its PEs are known too. */
    static const char *const inner[] = {
        "QUOIT_BOOT_FD",           "QUOIT_BOOT_SOCKET", "QUOIT_PE", "QUOIT_OF_PES_LD_AUDIT",
        "QUOIT_OF_PES_LD_PRELOAD", "QUOIT_JOINED",      NULL};
    const char *heap_size = quoit_options_table[QUOIT_OPT_SYMMETRIC_SIZE].variable;
    bool has_heap_size = environment_get(environment, heap_size) != NULL;
    for (; *environment; environment++) {
        char name[NAME_BYTES_MAX + 1];
        size_t length = strcspn(*environment, "=");
        snprintf(name, sizeof name, "%.*s", (int)(length < NAME_BYTES_MAX ? length : NAME_BYTES_MAX), *environment);
        bool is_heap_size = is_heap_size_of_others(name);
        bool is_known = !has_prefix_of_ours(name) && (!is_heap_size || has_heap_size); /* set for another library too */
        for (int i = 0; inner[i]; i++)
            is_known |= strcmp(name, inner[i]) == 0;
        for (int i = 0; i < QUOIT_OPT_COUNT && !is_known; i++) {
            const char *variable = quoit_options_table[i].variable;
            char old[NAME_BYTES_MAX + 1];
            is_known = variable && (strcmp(name, variable) == 0 || strcmp(name, old_name(variable, old)) == 0);
        }
        if (is_known)
            continue;
        char text[QUOIT_OPTION_PROBLEM_BYTES];
        const char *nearest = is_heap_size ? heap_size : nearest_variable(name);
        if (nearest)
            snprintf(text, sizeof text, "unknown variable %s: did you mean %s?", name, nearest);
        else
            snprintf(text, sizeof text, "unknown variable %s (oshrun --options lists what there is)", name);
        found(arg, text);
    }
}

enum quoit_option_id quoit_option_find(const char *name, const char **nearest_out)
{
    const char *nearest = NULL;
    unsigned nearest_edits = NEAR_EDITS_MAX + 1;
    for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
        const char *candidate = quoit_options_table[i].name;
        if (!candidate)
            continue;
        unsigned edits = edit_distance(name, candidate);
        if (edits == 0)
            return (enum quoit_option_id)i;
        if (edits < nearest_edits && edits < strlen(candidate)) {
            nearest = candidate;
            nearest_edits = edits;
        }
    }
    if (nearest_out)
        *nearest_out = nearest;
    return QUOIT_OPT_COUNT;
}

void quoit_option_format(const struct quoit_options *options, enum quoit_option_id id, char *text_out,
                         size_t text_bytes)
{
    const struct quoit_option *option = &quoit_options_table[id];
    const struct quoit_option_value *value = &options->values[id];
    if (option->type == QUOIT_OPTION_STRING || option->type == QUOIT_OPTION_FROM_BYTES ||
        (!value->text[0] && option->type == QUOIT_OPTION_UINT))
        snprintf(text_out, text_bytes, "%s", value->text);
    else if (option->type == QUOIT_OPTION_ANY || option->type == QUOIT_OPTION_FLAG)
        snprintf(text_out, text_bytes, "%s", value->number ? "set" : "");
    else
        format_number(option->type, value->number, text_out, text_bytes);
}

enum quoit_log_level quoit_options_log_level(const struct quoit_options *options)
{
    static const char *const names[] = {"error", "warn", "info", "debug"}; /* by level */
    if (options->values[QUOIT_OPT_SHMEM_DEBUG].number)
        return QUOIT_LOG_DEBUG;
    for (int level = QUOIT_LOG_ERROR; level <= QUOIT_LOG_DEBUG; level++)
        if (strcmp(options->values[QUOIT_OPT_DEBUG].text, names[level]) == 0)
            return (enum quoit_log_level)level;
    return QUOIT_LOG_WARN;
}
