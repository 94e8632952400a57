# SPDX-License-Identifier: BSD-3-Clause
"""The families of routines that share a page, in section 3 of the manual and in the documentation site: which routines, what the
comments of include/shmem.h say about them, and their prototypes in a general form."""
import os
import re
import sys

import inventory

HEADER = os.path.join(inventory.ROOT, "include", "shmem.h")

# Page, what it is, words that begin the header's comments about it, and which routines (the first that fits).
PAGES = [
    ("shmem_init", "initialize and finalize the library, query this PE and the job", ["--- Set-up"],
     r"shmem_(init|init_thread|query_thread|query_initialized|finalize|global_exit|my_pe|n_pes)"
     r"|start_pes|_my_pe|_num_pes"),
    ("shmem_ptr", "query accessibility and the library's version", ["The accessible queries"],
     r"shmem_(pe_accessible|addr_accessible|ptr|info_\w+|pcontrol)"),
    ("shmem_malloc", "allocate and free symmetric memory", ["--- Symmetric heap"],
     r"shmem_(malloc|calloc|align|malloc_with_hints|realloc|free)|sh\w*alloc|shfree|shmemalign"),
    ("shmem_ctx_create", "create and destroy communication contexts, sessions", ["--- Contexts"],
     r"shmem_(ctx_create|team_create_ctx|ctx_destroy|ctx_get_team|ctx_session_\w+)"),
    ("shmem_team_split_strided", "create, query and destroy teams", ["--- Teams"],
     r"shmem_team_(my_pe|n_pes|get_config|translate_pe|ptr|split_\w+|destroy)"),
    ("shmem_put_signal", "put data and update a signal; operate on signals", ["--- Signals"],
     r"shmem_(ctx_)?(\w+_)?put(\d+|mem)?_signal(_nbi)?|shmem_(ctx_)?signal_\w+"),
    ("shmem_iput", "copy strided elements or blocks", ["--- Remote memory access"],
     r"shmem_(ctx_)?(\w+_)?ib?(put|get)\d*"),
    ("shmem_put", "copy to the memory of another PE", ["--- Remote memory access"],
     r"shmem_(ctx_)?(\w+_)?(put(\d+|mem)?(_nbi)?|p)"),
    ("shmem_get", "copy from the memory of another PE", ["--- Remote memory access"],
     r"shmem_(ctx_)?(\w+_)?(get(\d+|mem)?(_nbi)?|g)"),
    ("shmem_atomic", "atomic operations on the memory of another PE", ["--- Atomics"],
     r"shmem_(ctx_)?\w+_atomic_\w+"),
    ("shmem_swap", "atomic operations under their names before OpenSHMEM 1.4", ["The names before OpenSHMEM 1.4", "--- Atomics"],
     r"shmem_[a-z]+_(fetch|set|swap|cswap|finc|inc|fadd|add)"),
    ("shmem_wait_until", "wait for or test local memory that other PEs change", ["--- Point-to-point synchronization", "wait blocks while"],
     r"shmem_(\w+_)?(wait_until|test|wait)(_(all|any|some)(_vector)?)?"),
    ("shmem_quiet", "order and complete operations", ["--- Memory ordering"], r"shmem_(ctx_)?(fence|quiet|pe_quiet)"),
    ("shmem_set_lock", "distributed locks", ["--- Distributed locks"], r"shmem_(set|clear|test)_lock"),
    ("shmem_barrier_all", "synchronize all PEs, or those of a team", ["--- Collectives of teams"],
     r"shmem_(barrier_all|sync_all|team_sync)"),
    ("shmem_reduce", "reductions and prefix sums over a team", ["--- Collectives of teams"],
     r"shmem_\w+_(\w+_reduce|sum_(in|ex)scan)"),
    ("shmem_broadcast", "broadcast, collect and all-to-all over a team", ["--- Collectives of teams"],
     r"shmem_([a-z]+\d*_)?(broadcast|f?collect|alltoalls?)(mem)?"),
    ("shmem_to_all", "collectives of active sets", ["--- Collectives of active sets"],
     r"shmem_(barrier|sync|(broadcast|f?collect|alltoalls?)\d+|\w+_to_all)"),
]


def comments(header):
    """The comments of the header, each as one line of text."""
    found = []
    for comment in re.findall(r"/\*(.*?)\*/", header, re.S):
        text = " ".join(line.strip().lstrip("*").strip() for line in comment.splitlines()).strip()
        found.append(re.sub(r" *-{4,} *", ". ", text, count=1) if text.startswith("---") else text)
    return found


def about(page, texts):
    """What the header says about a page: the text of a section without its heading."""
    parts = []
    for start in page[2]:
        matching = [text for text in texts if text.startswith(start)]
        if not matching:
            sys.exit(f"families: no comment of shmem.h begins with \"{start}\"")
        parts.append(re.sub(r"^--- .*?\)(, deprecated)?\.\s*", "", matching[0]))
    return [part for part in parts if part]


def general_form(routine):
    """The prototype with TYPE for the type or SIZE for the bits, and the word that it stands for."""
    parts = inventory.typed_parts(routine.name)
    if parts:
        context, name, deed = parts
        kind = re.escape(inventory.TYPES[name])
        text = routine.prototype.replace(routine.name, f"shmem_{context}@_{deed}", 1)
        first, rest = text.split("(", 1)
        rest = re.sub(rf"\b{kind} \*(dest|source|fetch|ivars?|pWrk|cmp_values)\b", r"TYPE *\1", rest)
        rest = re.sub(rf"\b{kind} (value|cond|cmp_value)\b", r"TYPE \1", rest)
        if re.fullmatch(r"g|(atomic_)?(fetch\w*|swap|compare_swap)|cswap|finc|fadd", deed) and "_nbi" not in deed:
            first = re.sub(rf"^{kind} ", "TYPE ", first)
        return (first + "(" + rest).replace("@", "TYPE"), name
    size = re.search(r"\d+(?![a-z])", routine.name)
    if size:
        return re.sub(r"(shmem_[a-z_]+)\d+", r"\1SIZE", routine.prototype, count=1), size[0]
    return routine.prototype, None


def forms(routines):
    """[(words, status, [general form])]: each general form once, by the words that TYPE or SIZE stands for in it; the words are
    (None,) where it has neither."""
    words_of = {}
    for routine in routines:
        form, word = general_form(routine)
        words_of.setdefault((form, routine.status), []).append(word)
    groups = {}
    for (form, status), words in words_of.items():
        groups.setdefault((tuple(words), status), []).append(form)
    return [(words if words[0] is not None else (None,), status, group) for (words, status), group in groups.items()]


def example(page):
    """The program that shows the routines of a page, without its licence line."""
    with open(os.path.join(inventory.ROOT, "docs", "api", f"{page[0]}.c"), encoding="utf-8") as file:
        return file.read().split("*/\n", 1)[1].strip() + "\n"


def placeholder(words):
    """What stands for the words in a form."""
    return "SIZE" if words[0].isdigit() else "TYPE"


def generics(routines):
    """The type-generic names of some routines."""
    return sorted({inventory.generic_name(routine) for routine in routines} - {None})


def read_families():
    """({page name: routines}, comments of the header)"""
    with open(HEADER, encoding="utf-8") as file:
        texts = comments(file.read())
    found = {page[0]: [] for page in PAGES}
    for routine in inventory.routines():
        page = next((page[0] for page in PAGES if re.fullmatch(page[3], routine.name)), None)
        if page is None:
            sys.exit(f"families: {routine.name} belongs to no page")
        found[page].append(routine)
    return found, texts
