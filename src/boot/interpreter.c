/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/interpreter.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "boot/ask.h"

/* Of CPython's C API what every version since 3.6 has; an object is a void *. */
struct python {
    int (*is_initialized)(void);
    void *(*thread)(void); /* NULL: the interpreter does not know the calling thread */
    int (*lock)(void);
    void *(*frame)(void);
    int (*line)(void *frame);
    void *(*attribute)(void *object, const char *name);
    const char *(*text)(void *string);
};

bool quoit_interpreter_is_there(void)
{
    union {
        void *address;
        int (*call)(void);
    } is_initialized = {dlsym(RTLD_DEFAULT, "Py_IsInitialized")};
    return is_initialized.address && is_initialized.call();
}

static bool find_python(struct python *python_out)
{
    static const char *const names[] = {"Py_IsInitialized", "PyGILState_GetThisThreadState", "PyGILState_Ensure",
                                        "PyEval_GetFrame",  "PyFrame_GetLineNumber",         "PyObject_GetAttrString",
                                        "PyUnicode_AsUTF8"};
    void *found[sizeof names / sizeof names[0]];
    _Static_assert(sizeof found == sizeof *python_out, "a name for each function");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found[i] = dlsym(RTLD_DEFAULT, names[i]);
        if (!found[i])
            return false;
    }
    memcpy(python_out, found, sizeof found);
    return python_out->is_initialized() && python_out->thread();
}

/* The child ends at once, so nothing is given back. */
static void answer_line(void *python_arg, int fd)
{
    const struct python *python = python_arg;
    char text[QUOIT_SOURCE_LINE_BYTES] = "";
    bool is_found = false;
    python->lock();
    for (void *frame = python->frame(); frame && !is_found; frame = python->attribute(frame, "f_back")) {
        void *code = python->attribute(frame, "f_code"); /* None, behind the outermost, has no such attribute */
        void *file = code ? python->attribute(code, "co_filename") : NULL;
        const char *path = file ? python->text(file) : NULL;
        if (!path)
            break;
        const char *slash = strrchr(path, '/');
        is_found = !quoit_interpreter_is_packaged(path);
        if (is_found || (text[0] == '\0' && !quoit_interpreter_is_own(path)))
            snprintf(text, sizeof text, "%.80s:%d", slash ? slash + 1 : path, python->line(frame));
    }
    dprintf(fd, "%s", text);
}

bool quoit_interpreter_line(uint64_t deadline_ns, char text_out[QUOIT_SOURCE_LINE_BYTES])
{
    struct python python;
    return find_python(&python) &&
           quoit_ask_child(answer_line, &python, deadline_ns, text_out, QUOIT_SOURCE_LINE_BYTES) && text_out[0];
}
