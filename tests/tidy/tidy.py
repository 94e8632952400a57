#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The rules of the house, checked.

Each check is a function that takes the root of a tree and yields lines "path:line: what is wrong". For each there is a
sample below that breaks its rule; --self-test shows that the check sees it, and is silent about a tree that keeps it.

Use: tidy.py ROOT            all checks on the project
     tidy.py --self-test     the checks on their samples
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Folders of src/, in order: each may include those before it, and itself.
LAYERS = ["base", "env", "virtual", "trace", "wire", "port", "share", "net", "ring", "link", "host", "lane", "papers", "local", "heap", "engine", "proxy", "veth", "fabric", "coll", "boot", "serve", "shmem", "dsm"]
# Headers of the launcher, in order: a file includes those before its own, so that no two call each other.
LAUNCHER = ["fault", "foreign", "program", "machines", "allocation", "bridges", "habits", "plan", "beside", "help", "rounds", "loop", "buffer", "control", "output", "terminal", "stopping",
            "children", "front", "guard", "setup", "job",
            "network", "hosts", "silence", "end", "clock", "suspend", "service", "attach", "input", "spawn", "reap", "inject", "awaited", "report", "stuck", "meetings", "perfetto", "trace", "stats",
            "profile_rows", "profile_meetings", "profile_text", "profile_json", "profile",
            "tree", "top", "head", "agent", "main"]
FILE_LINES_MAX = 900
FUNCTION_LINES_MAX = 70
SOURCE_ENDINGS = (".c", ".h", ".cc", ".cpp", ".py", ".cmake", "CMakeLists.txt")


def files_of(root, folders, endings):
    """Paths below some folders, relative to the root, in order."""
    for folder in folders:
        for where, subfolders, names in os.walk(os.path.join(root, folder)):
            subfolders[:] = sorted(name for name in subfolders if not name.startswith((".", "__", "build")))
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(where, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


# Includes

def include_problem(path, name, is_quoted):
    """What is wrong with `path` including `name`, or None."""
    top, *rest = path.split("/")
    layer = name.split("/")[0] if "/" in name else None
    is_public = name.startswith(("shmem", "mpp/shmem", "dsm.h"))
    if top in ("examples", "bench"):
        if not is_quoted or os.path.basename(name) == name:
            return None
        if path.startswith("bench/raw") and layer in ("base", "env", "port"):
            return None  # measures the bare window, which is below the public interface
        if path.startswith("bench/heap") and layer in ("base", "env", "heap"):
            return None  # measures the allocator alone
        if path.startswith("bench/raw_tap") and layer in ("base", "env", "veth"):
            return None  # measures two TAP devices without the ring between them
        if path.startswith("bench/net") and layer in ("base", "env", "net"):
            return None  # measures the network layer beside the library below it
        return "only the public headers may be included here"
    if top in ("cmd", "sim"):
        return "the programs do not use the library's API layer" if layer in ("shmem", "dsm") else None
    own = rest[0]
    if not is_quoted:
        if is_public and own not in ("shmem", "dsm") and not name.startswith(("shmem/types", "shmem/version")):
            return f"{own} is below the public interface"
        return None
    if layer is None or layer == own:
        return None
    if layer not in LAYERS:
        return f"{layer} is no layer"
    if LAYERS.index(layer) > LAYERS.index(own):
        return f"{own} stands before {layer} and may not include it"
    return None


def check_includes(root):
    for path in files_of(root, ["src", "cmd", "sim", "examples", "bench"], (".c", ".h")):
        if path.startswith("src/") and path.split("/")[1] not in LAYERS:
            yield f"{path}:1: this folder is not in the table of layers"
            continue
        for number, line in enumerate(read(root, path).split("\n"), 1):
            found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            problem = found and include_problem(path, found.group(2), found.group(1) == '"')
            if problem:
                yield f"{path}:{number}: includes {found.group(2)}: {problem}"


# Port drivers: src/port/drivers.c names them, everyone else asks it.

DRIVER = re.compile(r'port/(emulated|linux)/|\bquoit_(driver_)?(emulated|linux)\w*|\bQUOIT_EMULATED_\w+')


def check_drivers(root):
    for path in files_of(root, ["src", "cmd", "bench"], (".c", ".h")):
        if path == "src/port/drivers.c" or re.match(r"src/port/\w+/", path) or path.endswith("_test.c"):
            continue
        for number, line in enumerate(read(root, path).split("\n"), 1):
            found = DRIVER.search(line)
            if found:
                yield f"{path}:{number}: {found.group(0)}: only the table in src/port/drivers.c names a driver"


# First lines and lengths

def check_launcher(root):
    """Files of oshrun call only those before them."""
    for path in files_of(root, ["cmd/oshrun"], (".c", ".h")):
        own = os.path.splitext(os.path.basename(path))[0].removesuffix("_test")
        if own not in LAUNCHER:
            yield f"{path}:1: not in LAUNCHER of tests/tidy/tidy.py, the order of oshrun's files"
            continue
        for i, line in enumerate(read(root, path).splitlines(), 1):
            found = re.match(r'#include "(\w+)\.h"', line)
            if found and found[1] in LAUNCHER and LAUNCHER.index(found[1]) > LAUNCHER.index(own):
                yield f"{path}:{i}: includes {found[1]}.h, which comes after {own} in the order of oshrun's files"


def check_licence_lines(root):
    folders = ["src", "cmd", "sim", "python", "include", "examples", "bench", "tests", "scripts", "packaging", ".ci", "cmake"]
    for path in files_of(root, folders, ""):
        first = read(root, path).split("\n")[:2]
        is_source = path.endswith(SOURCE_ENDINGS) or first[0].startswith("#!")
        if is_source and not any("SPDX-License-Identifier: BSD-3-Clause" in line for line in first):
            yield f"{path}:1: does not begin with its SPDX line"


def check_file_lengths(root):
    for path in files_of(root, ["src", "cmd", "sim", "python", "include", "examples", "bench", "tests", "scripts", "packaging"], (".c", ".h", ".py")):
        count = read(root, path).count("\n")
        if count > FILE_LINES_MAX:
            yield f"{path}:{count}: has more than {FILE_LINES_MAX} lines"


def check_function_lengths(root):
    """A function's brace stands alone at the start of a line; so does the one that ends it."""
    for path in files_of(root, ["src", "cmd", "sim", "python", "examples", "bench", "tests"], (".c", ".h")):
        start = None
        for number, line in enumerate(read(root, path).split("\n"), 1):
            if line == "{":
                start = number
            elif line.startswith("}") and start is not None:
                if number - start + 1 > FUNCTION_LINES_MAX:
                    yield f"{path}:{start}: function of {number - start + 1} lines, more than {FUNCTION_LINES_MAX}"
                start = None


# Mutable globals

def bare(text):
    """C without comments, strings and preprocessor lines; line numbers stay."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group(0))
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def statements(text):
    """(depth, line, statement) of a bare C text; what stands in braces comes as statements of its own."""
    depth, line, start_line, current = 0, 1, 1, [""]
    for letter in text:
        if letter == "\n":
            line += 1
        if not current[-1].strip():
            start_line = line
        if letter == "{":
            yield depth, start_line, current[-1] + "{"
            current[-1] += "{}"
            current.append("")
            depth += 1
        elif letter == "}":
            depth = max(depth - 1, 0)
            if len(current) > 1:
                current.pop()
            if re.search(r"\)\s*(\{\})$", current[-1]) and "=" not in current[-1]:
                current[-1] = ""  # the end of a function or of a block of one
        elif letter == ";":
            yield depth, start_line, current[-1]
            current[-1] = ""
        else:
            current[-1] += letter


def mutable_variable(depth, statement):
    """The name, if the statement defines a variable that lives as long as the process and can change."""
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|_Alignas\s*\([^()]*\)|_Atomic\s*\(([^()]*)\)", r"\1",
                  " ".join(statement.split()))
    if text.endswith("{") or not text:
        return None
    if depth > 0 and not re.match(r"(static|_Thread_local) ", text):
        return None
    if re.match(r"(typedef|extern|_Static_assert|static_assert|return|goto)\b", text):
        return None
    declarator = text.split("=")[0].strip()
    pointer_to_function = re.match(r"[^(]*\(\*\s*(const )?(\w+)(\[[^\]]*\])?\)\s*\(", declarator)
    if pointer_to_function:
        return None if pointer_to_function.group(1) else pointer_to_function.group(2)
    if "(" in re.sub(r"\[[^\]]*\]", "", declarator):
        return None
    if re.match(r"(static )?(struct|union|enum)( \w+)?( \{\})?$", declarator):
        return None
    found = re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", re.sub(r"\{\}", "", declarator))
    is_const = "const" in declarator.split("*")[-1].split() if "*" in declarator else "const" in declarator.split()
    if not found or is_const or len(declarator.split()) < 2:
        return None
    return found.group(1)


def allowed_globals(root):
    path = os.path.join(root, "tests/tidy/globals.txt")
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        lines = [line.split(None, 1) for line in file if line.strip() and not line.startswith("#")]
    return {line[0]: line[1].strip() if len(line) > 1 else "" for line in lines}


def check_globals(root):
    allowed, seen = allowed_globals(root), set()
    for path in files_of(root, ["src", "cmd", "sim", "python"], (".c", ".h")):
        if path.endswith("_test.c"):
            continue
        for depth, line, statement in statements(bare(read(root, path))):
            name = mutable_variable(depth, statement)
            if name is None or name == "static":
                continue
            seen.add(f"{path}:{name}")
            if not allowed.get(f"{path}:{name}"):
                yield f"{path}:{line}: {name} is a mutable global; tests/tidy/globals.txt gives no reason for it"
    for entry in sorted(set(allowed) - seen):
        yield f"tests/tidy/globals.txt:1: {entry} is no longer there"


# Documents

def option_rows(root):
    """(name, variable, sentence) of each option in the table."""
    table = os.path.join(root, "src/base/options.h")
    if not os.path.exists(table):
        return []
    with open(table) as file:
        text = re.sub(r"\\\n", " ", file.read())
    string = r'(?:NULL|(?:"(?:\\.|[^"\\])*"\s*)+)'
    row = re.compile(rf"X\((\w+),\s*({string}),\s*({string}),\s*(\w+),\s*({string}),\s*({string}),"
                     rf"\s*[^,]+,\s*[^,]+,\s*(\w+),\s*({string})")
    def plain(part):
        return None if part.strip() == "NULL" else "".join(re.findall(r'"((?:\\.|[^"\\])*)"', part))
    return [(plain(found.group(2)), plain(found.group(3)), plain(found.group(8))) for found in row.finditer(text)]


def documents(root):
    names = [name for name in ("README.md", "ARCHITECTURE.md") if os.path.exists(os.path.join(root, name))]
    return names + list(files_of(root, ["docs"], (".md", ".1", ".in")))


def check_options(root):
    """The manual is made from the table, so an option is documented when it has a sentence; and no document speaks of
    an option that is not there."""
    rows = option_rows(root)
    known = {name for row in rows for name in row[:2] if name}
    for name, variable, sentence in rows:
        if not sentence:
            yield f"src/base/options.h:1: {name or variable} has no sentence"
    if not rows:
        return
    for path in documents(root):
        for number, line in enumerate(read(root, path).split("\n"), 1):
            for name in re.findall(r"\b(QUOIT_[A-Z_]+)\b(?!\()", line):
                if name not in known and not name.startswith("QUOIT_BOOT_") and re.search(rf"{name}=|\$ ?{name}", line):
                    yield f"{path}:{number}: {name} is not in the options table"
            for name in re.findall(r"oshrun[^`\n]*?\s--([a-z][a-z-]+)", line):
                if name not in known:
                    yield f"{path}:{number}: oshrun has no option --{name}"


def check_code_map(root):
    """ARCHITECTURE.md names every layer and every program, and no layer that is not there."""
    text = read(root, "ARCHITECTURE.md") if os.path.exists(os.path.join(root, "ARCHITECTURE.md")) else ""
    for top in ("src", "cmd"):
        folder = os.path.join(root, top)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if os.path.isdir(os.path.join(folder, name)) and os.listdir(os.path.join(folder, name)) and f"{name}/" not in text:
                yield f"ARCHITECTURE.md:1: does not speak of {top}/{name}/"
    for name in re.findall(r"`((?:src|cmd|tests|docs|bench|examples|scripts|include)/[\w/.-]+)`", text):
        if not os.path.exists(os.path.join(root, name)):
            yield f"ARCHITECTURE.md:1: {name} is not there"


def check_limits(root):
    """Each named limit is named in a test, which reaches and exceeds it or proves that it cannot be; or tests/tidy/limits.txt
    says why none does."""
    files = list(files_of(root, ["src", "cmd", "sim"], (".c", ".h")))
    tests = [path for path in files if path.endswith("_test.c")] + list(files_of(root, ["tests"], (".c", ".h", ".py")))
    named = set(re.findall(r"QUOIT_\w+_MAX\b", "".join(read(root, path) for path in tests if path != "tests/tidy/tidy.py")))
    listing = os.path.join(root, "tests/tidy/limits.txt")
    lines = read(root, "tests/tidy/limits.txt").split("\n") if os.path.exists(listing) else []
    excused = {line.split()[0] for line in lines if len(line.split()) > 1 and not line.startswith("#")}
    defined = set()
    for path in files:
        for number, line in enumerate(read(root, path).split("\n"), 1):
            found = re.match(r"#define (QUOIT_\w+_MAX)\b", line)
            if found:
                defined.add(found.group(1))
                if found.group(1) not in named | excused:
                    yield f"{path}:{number}: no test names {found.group(1)} (tests/tidy/limits.txt)"
    for name in sorted(excused - (defined - named)):
        yield f"tests/tidy/limits.txt:1: {name} is named in a test, or is not there"


def check_format(root):
    """As clang-format has it, where that is installed."""
    tool = shutil.which("clang-format")
    paths = list(files_of(root, ["src", "cmd", "sim", "python", "include", "examples", "bench", "tests", "docs"], (".c", ".h")))
    if tool is None or not paths:
        return
    result = subprocess.run([tool, "--dry-run", *paths], cwd=root, stderr=subprocess.PIPE, text=True)
    seen = set()
    for path, line in re.findall(r"^([^:\n]+):(\d+):\d+: (?:warning|error): ", result.stderr, re.M):
        if path not in seen:
            seen.add(path)
            yield f"{path}:{line}: clang-format would change it (clang-format -i {path})"


# Words, names and messages

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CODE_FOLDERS = ["include", "src", "sim", "cmd", "python", "bench", "examples", "tests", "kernel"]
DOCUMENT_LINE_MAX = 130

# Word, what to say instead, and in which files it is looked for (a prefix each). Words are sought in comments, strings,
# names (parts between underscores) and documents.
PROTOCOL = ("src/ring/", "src/wire/", "src/link/", "src/lane/", "src/proxy/", "src/coll/", "src/engine/", "tests/model/",
            "docs/wire-format.md", "docs/design/failover.md", "docs/design/link-state.md", "docs/design/dma.md",
            "docs/design/relays.md")
RING = ("src/ring/", "src/wire/", "tests/model/", "docs/design/failover.md", "docs/design/deadlock.md", "docs/wire-format.md")
SOURCES = ("include/", "src/", "sim/", "cmd/", "python/", "docs/", "tests/", "examples/", "bench/")
NETWORKS = ("src/", "cmd/", "docs/design/network.md")
EVERYWHERE = SOURCES + ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")
SUPERVISORS = ("src/boot/", "src/host/", "src/serve/", "cmd/oshrun/")
WORDS = [
    (r"news", "link-state update", EVERYWHERE),
    (r"owe|owes|owed|owing", "pending", EVERYWHERE),
    (r"hear|hears|heard", "receive, learn", PROTOCOL + SUPERVISORS),
    (r"asking|asker|askers", "requesting, request", PROTOCOL),
    (r"shape|shapes", "job config; the range of a team", ("include/", "src/", "docs/", "cmd/oshrun/")),
    (r"node|nodes", "host, or proxy (a node is a host to readers of Slurm, UCX or OpenSHMEM)",
     ("include/", "src/", "sim/", "cmd/", "docs/design/", "README.md", "ARCHITECTURE.md")),
    (r"HOLD", "no resource", PROTOCOL),
    (r"era|eras", "epoch", EVERYWHERE),
    (r"stray|strays|detour|detours", "off-lane, relayed", EVERYWHERE),
    (r"card|cards", "job descriptor", ("src/", "cmd/", "docs/")),
    (r"area|areas", "symmetric segment", ("include/", "src/", "cmd/", "docs/")),
    (r"(?:fast|slow|long|inlined) ways?", "path", EVERYWHERE),
    (r"settle|settles|settled|settling", "placement; quiesced",
     ("src/ring/", "src/link/", "src/lane/", "src/proxy/", "src/engine/", "src/fabric/", "src/coll/", "src/host/", "src/env/",
      "src/shmem/", "sim/", "cmd/")),
    (r"answer|answers|answered", "response, respond",
     ("src/ring/", "src/wire/", "src/papers/", "src/proxy/", "src/lane/", "src/engine/", "tests/model/")),
    (r"generation|generations", "use count of a handle; epoch of a link, incarnation of a peer, topology version",
     ("include/", "src/shmem/", "src/link/", "src/engine/", "src/host/", "src/ring/", "tests/model/")),
    (r"life|serial|serials", "epoch of a link, incarnation of a peer",
     ("src/ring/", "src/wire/", "src/link/", "src/lane/", "src/proxy/", "src/engine/", "src/port/", "src/host/", "tests/model/")),
    (r"(?:tell|tells|told|telling)(?![ _]apart)", "advertise, report, inform, publish", RING + SUPERVISORS),
    (r"kept(?! an injection)", "response cache; stored", RING),
    (r"(?<!under[ _])(?<!on its )(?<!on the )(?:way|ways)", "direction, side, route; transport", RING),
    (r"(?:other|one) way a?round|all the way round", "in the other direction; around", SOURCES),
    (r"whoever|whomever", "the PE, process or thread", SOURCES),
    (r"guest|guests", "PE endpoint", NETWORKS),
    (r"vigil|vigils", "liveness check", EVERYWHERE),
    (r"clerk|clerks", "leader (of a machine's processes)", EVERYWHERE),
    (r"wish|wishes", "wait descriptor", ("src/boot/", "src/shmem/", "src/engine/", "src/env/", "src/host/", "cmd/oshrun/")),
    (r"stranger|strangers", "unsupported launcher; unauthenticated peer", ("src/", "cmd/", "docs/")),
    (r"invitation|invitations", "connection request", EVERYWHERE),
    (r"mailbox|mailboxes", "rendezvous slot", ("src/", "cmd/", "docs/design/")),
    (r"ears?", "callbacks", ("src/", "cmd/")),
    (r"talk", "control channel", ("cmd/oshrun/",)),
]
# Uses that mean something else: a file and the line's text that is allowed there.
WORDS_ALLOWED = [
    (r"src/host/contact\.h|src/boot/info\.c", r"is_told"),  # engine/ring reads it too
    (r"src/dsm/", r"(?i)node"),  # a program's data structures
    (r"src/link/|src/lane/", r"QUOIT_HOLD_|HELD"),  # a flapping link is held down
    (r"cmd/quoit/figures/hybrid\.py", r"intra-node"),  # the title of a paper
    (r"docs/python\.md", r"(?i)shape"),  # of an array
    (r"", r"/sys/devices/system/node"),
    (r"", r"SLURM_TASKS_PER_NODE|OAR_NODE_FILE"),  # names of Slurm's and OAR's
    (r"cmd/quoit/figures/", r"shape"),  # of an array, of a JSON value
]


def prose(path, text):
    """(line, text) of what people read in a file: comments and strings of C, all of another file."""
    if not path.endswith((".c", ".h", ".pml")):
        yield from enumerate(text.split("\n"), 1)
        return
    for found in COMMENT.finditer(text):
        first = text.count("\n", 0, found.start()) + 1
        yield from enumerate(found.group(0).split("\n"), first)


def read_texts(root, folders):
    endings = (".c", ".h", ".hpp", ".py", ".pml", ".md", ".1", ".7", ".in")
    for path in list(files_of(root, folders, endings)) + [
            name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md") if os.path.exists(os.path.join(root, name))]:
        yield path, read(root, path)


def check_words(root):
    """The field's words; docs/design/words.md says why."""
    table = [(re.compile(rf"(?<![A-Za-z])(?:{word})(?![A-Za-z])", 0 if word.isupper() else re.I), word, instead, where)
             for word, instead, where in WORDS]
    for path, text in read_texts(root, ["include", "src", "sim", "cmd", "python", "docs", "tests", "examples", "bench"]):
        if path in ("docs/design/words.md", "tests/tidy/tidy.py"):
            continue
        wanted = [row for row in table if path.startswith(row[3])]
        if not any(row[0].search(text) for row in wanted):
            continue
        for number, line in enumerate(text.split("\n"), 1):
            for pattern, _, instead, _ in wanted:
                found = pattern.search(line)
                if found and not any(re.match(where, path) and re.search(allowed, line) for where, allowed in WORDS_ALLOWED):
                    yield f"{path}:{number}: \"{found.group(0)}\": say {instead} (docs/design/words.md)"


def check_named_files(root):
    """Files that documents and comments name are there."""
    tops = "|".join(CODE_FOLDERS + ["docs", "scripts", "share", "cmake"])
    whole = re.compile(rf"(?<![\w/.$-])((?:{tops})/[\w./-]*\w)(?![\w/]*[*{{<])")
    layer = re.compile(rf"(?<![\w/.-])((?:{'|'.join(LAYERS)})/[\w/]+\.[ch])\b")
    for path, text in read_texts(root, CODE_FOLDERS + ["docs"]):
        if path.endswith(".py"):
            continue
        for number, line in prose(path, text):
            names = [name for name in whole.findall(line) if not re.search(r"\b[A-Z]{3,}\b", name)]
            for name in names:
                if not any(os.path.exists(os.path.join(root, top, name)) for top in ("", "build", "src", os.path.dirname(path))):
                    yield f"{path}:{number}: {name} is not there"
            if not path.endswith((".c", ".h")) or '#include' in line:
                continue
            for name in layer.findall(line):
                if not any(os.path.exists(os.path.join(root, top, name)) for top in ("src", "include", os.path.dirname(path))):
                    yield f"{path}:{number}: {name} is not there"


def check_named_identifiers(root):
    """quoit_NAME in documents and comments is a name of the code."""
    name = re.compile(r"\b(?:quoit|QUOIT)_\w+\b")
    known = set()
    for path in files_of(root, CODE_FOLDERS + ["scripts", "packaging", "cmake", "share"], ""):
        if not path.endswith((".md", ".1", ".7")):
            text = read(root, path)
            known.update(name.findall(COMMENT.sub(lambda found: found.group(0) if found.group(0)[0] == '"' else " ", text)
                                      if path.endswith((".c", ".h", ".pml")) else text))
    pasted = {each.rstrip("_") for each in known if each.endswith("_")}
    for path, text in read_texts(root, CODE_FOLDERS + ["docs"]):
        if path.endswith(".py"):
            continue
        for number, line in prose(path, text):
            for found in name.finditer(line):
                word = found.group(0)
                if word in known or word.endswith("_") or line[found.end():found.end() + 1] in ("*", "<"):
                    continue
                if any(word.startswith(each) for each in pasted if len(each) > 8):
                    continue  # made by ## of the preprocessor
                yield f"{path}:{number}: {word} is no name of the code"


# Options of other programs that documents name.
FOREIGN_OPTIONS = {"--args", "--wrap", "--mpi", "--version", "--help", "--leak-check", "--error-exitcode"}


def check_named_options(root):
    """--NAME in documents and comments is an option of ours."""
    option = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]\b")
    known = {f"--{row[0]}" for row in option_rows(root) if row[0]} | FOREIGN_OPTIONS
    if len(known) == len(FOREIGN_OPTIONS):
        return
    for path in files_of(root, ["cmd", "scripts", "packaging", "python", "bench", "tests", "cmake", "sim", "kernel", ".ci"], ""):
        if path.endswith((".md", ".1", ".in")):
            continue
        text = read(root, path)
        if path.endswith((".c", ".h")):
            text = "\n".join(found for found in COMMENT.findall(text) if found.startswith('"'))
        known.update(option.findall(text))
    for path, text in read_texts(root, ["include", "src", "sim", "docs"]):
        for number, line in prose(path, text):
            for name in option.findall(line):
                if name not in known:
                    yield f"{path}:{number}: {name} is no option"


def check_messages(root):
    """docs/messages has a page for each code that the code prints, named by it and with it in its title, and no other."""
    pages = {os.path.basename(path)[:-3]: path for path in files_of(root, ["docs/messages"], (".md",)) if path[-8:-7] == "Q"}
    for code, path in pages.items():
        if not read(root, path).startswith(f"# {code}: "):
            yield f"{path}:1: does not begin with \"# {code}: \""
    printed = {}
    for path in files_of(root, ["src", "cmd"], (".c", ".h", ".py")):
        text = read(root, path)
        for code in re.findall(r"\bQ0\d{3}\b", text) + [f"Q0{number}" for number in re.findall(r"QUOIT_WRONG_\w+ = (\d{3})", text)]:
            printed.setdefault(code, path)
    for code in sorted(set(printed) - set(pages)):
        yield f"{printed[code]}:1: {code} has no page docs/messages/{code}.md"
    for code in sorted(set(pages) - set(printed)):
        yield f"{pages[code]}:1: {code} is printed nowhere"


def check_document_widths(root):
    """Lines of documents fit a screen, but for rows of tables, addresses, and what programs print (blocks marked text)."""
    for path in list(files_of(root, ["docs"], (".md",))) + ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"]:
        if not os.path.exists(os.path.join(root, path)):
            continue
        text = re.sub(r"(?ms)^```text\n.*?^```$", lambda block: "\n" * block[0].count("\n"), read(root, path))
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > DOCUMENT_LINE_MAX and not line.startswith("|") and "://" not in line:
                yield f"{path}:{number}: has {len(line)} characters, more than {DOCUMENT_LINE_MAX}"


CHECKS = [check_includes, check_drivers, check_launcher, check_licence_lines, check_file_lengths, check_function_lengths, check_globals, check_options,
          check_code_map, check_limits, check_words, check_named_files, check_named_identifiers, check_named_options, check_messages,
          check_document_widths, check_format]

# Samples: check -> files that break its rule (each alone must be seen), and files that keep it.

SPDX = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
OPTION = 'X(LANES, "lanes", "QUOIT_LANES", UINT, "1", "N", 1, 8, RING, {}, "More.") \\\n'
STYLE = "BasedOnStyle: LLVM\n"
SAMPLES = {
    check_includes: (
        [{"src/wire/a.h": '#include "port/port.h"\n'}, {"src/base/a.c": '#include "shmem/job.h"\n'},
         {"src/odd/a.c": ""}, {"cmd/oshrun/a.c": '#include "shmem/job.h"\n'}, {"src/coll/a.c": "#include <shmem.h>\n"},
         {"examples/a.c": '#include "base/prng.h"\n'}, {"bench/put.c": '#include "port/port.h"\n'}],
        {"src/proxy/a.c": '#include "ring/ring.h"\n#include "proxy/b.h"\n#include "c.h"\n#include <stdio.h>\n',
         "cmd/oshrun/a.c": '#include "proxy/proxy.h"\n', "bench/raw_copy.c": '#include "port/port.h"\n',
         "examples/a.c": '#include <shmem.h>\n#include "graph.h"\n', "src/shmem/a.c": '#include "boot/boot.h"\n'}),
    check_drivers: (
        [{"src/boot/a.h": '#include "port/emulated/emulated.h"\n'}, {"cmd/oshrun/a.c": "x = &quoit_driver_emulated;\n"},
         {"bench/raw.c": "int a[QUOIT_EMULATED_LINK_BYTES];\n"}],
        {"src/port/drivers.c": '#include "port/emulated/emulated.h"\n', "src/port/emulated/a.c": "int quoit_emulated_x;\n",
         "src/port/a_test.c": '#include "port/emulated/emulated.h"\n', "src/boot/a.c": "/* emulated hosts */\n"}),
    check_launcher: (
        [{"cmd/oshrun/hosts.c": '#include "end.h"\n'}, {"cmd/oshrun/strange.c": "int a;\n"}],
        {"cmd/oshrun/end.c": '#include "end.h"\n#include "hosts.h"\n#include "env/clock.h"\n'}),
    check_licence_lines: (
        [{"src/base/a.c": "int a;\n"}, {"scripts/go": "#!/bin/sh\necho\n"}, {"tests/x/CMakeLists.txt": "\n"}],
        {"src/base/a.c": SPDX, "scripts/go": "#!/bin/sh\n# SPDX-License-Identifier: BSD-3-Clause\n", "tests/x/data.txt": "1\n"}),
    check_limits: (
        [{"src/base/a.h": "#define QUOIT_WORDS_MAX 3\n"},
         {"src/base/a.h": "#define QUOIT_WORDS_MAX 3\n", "src/base/a_test.c": "QUOIT_WORDS_MAX;\n",
          "tests/tidy/limits.txt": "QUOIT_WORDS_MAX it was hard\n"},
         {"src/base/a.h": "#define QUOIT_WORDS_MAX 3\n", "tests/tidy/limits.txt": "QUOIT_WORDS_MAX\n"}],
        {"src/base/a.h": "#define QUOIT_WORDS_MAX 3\n#define QUOIT_LINES_MAX 3\n", "src/base/a_test.c": "x = QUOIT_WORDS_MAX;\n",
         "tests/tidy/limits.txt": "# comment\nQUOIT_LINES_MAX one needs a thousand\n"}),
    check_file_lengths: ([{"src/base/a.c": "\n" * 901}], {"src/base/a.c": "\n" * 900}),
    check_function_lengths: (
        [{"src/base/a.c": "int f(void)\n{\n" + "    x();\n" * 69 + "}\n"}],
        {"src/base/a.c": "int f(void)\n{\n" + "    x();\n" * 68 + "}\n\nint g(void)\n{\n" + "    x();\n" * 50 + "}\n"}),
    check_globals: (
        [{"src/base/a.c": text} for text in
         ("static int count;\n", "int shared = 3;\n", "const char *text;\n", "static struct x table[3] = {{1}};\n",
          "static void (*hook)(int);\n", "int f(void)\n{\n    static int calls;\n    return calls++;\n}\n",
          "static _Atomic(int) flag;\n", "struct pair { int a; } pairs[2];\n", "static _Thread_local int mine;\n")] +
        [{"src/base/a.c": "static int count;\n", "tests/tidy/globals.txt": "src/base/a.c:count\n"},
         {"tests/tidy/globals.txt": "src/base/gone.c:gone it was needed\n"}],
        {"src/base/a.c": '#define X(a) \\\n    static int a;\nstatic const int one = 1;\nstatic const char *const text[] = {"a", "b;"};\n'
                         "/* static int no; */\nenum e { A, B };\nstruct s {\n    int a;\n    char *b;\n};\nextern int there;\n"
                         "int f(int a, char *b);\nvoid each(int (*found)(int), int a);\nstatic int (*const table[])(void) = {f, g};\n_Static_assert(1, \"x\");\n"
                         "typedef int (*function)(void);\nint f(int a, char *b)\n{\n    int local = 3;\n    static const int c = 2;\n"
                         "    for (int i = 0; i < 3; i++) {\n        int x[3] = {0};\n    }\n    return local;\n}\n"
                         "static int allowed;\n",
         "tests/tidy/globals.txt": "# comment\nsrc/base/a.c:allowed for the sample\n"}),
    check_options: (
        [{"src/base/options.h": OPTION.format('""')},
         {"src/base/options.h": OPTION.format('"lanes"'), "README.md": "run `oshrun --lames 2 a`\n"},
         {"src/base/options.h": OPTION.format('"lanes"'), "docs/a.md": "set QUOIT_LAMES=2\n"}],
        {"src/base/options.h": OPTION.format('"lanes of a \\"link\\""'),
         "README.md": "run `oshrun --lanes 2 a` or QUOIT_LANES=2; QUOIT_LINK_DOWN is a status\n"}),
    check_code_map: (
        [{"src/base/a.c": "", "ARCHITECTURE.md": "nothing\n"}, {"ARCHITECTURE.md": "see `src/gone/a.c`\n"}],
        {"src/base/a.c": "", "ARCHITECTURE.md": "  base/   words\nsee `src/base/a.c`\n"}),
    check_words: (
        [{"src/ring/a.c": "/* sends the news */\n"}, {"src/ring/a.h": "int quoit_tell_news(void);\n"}, {"docs/a.md": "the fast way\n"},
         {"sim/a.c": "/* of a node */\n"}, {"src/ring/a.c": "/* tells the neighbour */\n"}, {"src/ring/a.c": "void credit_told(void);\n"},
         {"src/ring/a.c": "struct kept kept;\n"}, {"tests/model/a.pml": "byte way;\n"}, {"src/port/a.h": "/* an earlier life */\n"},
         {"src/link/a.h": "uint32_t serial;\n"}, {"tests/model/a.pml": "byte generation;\n"}, {"docs/a.md": "goes the other way round\n"},
         {"tests/a.c": "/* whoever polls */\n"}],
        {"src/ring/a.c": "/* newsletter, nodelay */\n", "docs/design/words.md": "news\n", "src/env/a.c": "/* the inode of a file */\n",
         "src/ring/b.c": "/* tell apart what is under way, and on its way; it kept an injection waiting; keeps */\n",
         "src/port/a.h": "/* lifetime, serialized */\n", "cmd/a.c": "/* the user is told, in a way */\n"}),
    check_named_files: (
        [{"docs/a.md": "see `src/gone/a.c`\n"}, {"src/base/a.c": "/* see docs/gone.md */\n"},
         {"src/base/a.c": "/* see ring/gone.h */\n"}],
        {"docs/a.md": "see `src/base/a.c` and src/LAYER/x.c\n", "src/base/a.c": "/* see docs/a.md, base/a.c */\n"}),
    check_named_identifiers: (
        [{"docs/a.md": "`quoit_gone()`\n"}, {"src/base/a.c": "/* quoit_gone() */\nint quoit_b;\n"},
         {"tests/model/a.pml": "/* quoit_gone() */\n"}],
        {"docs/a.md": "`quoit_b`, quoit_ring_*\n", "src/base/a.c": "/* quoit_b */\nint quoit_b;\n"}),
    check_named_options: (
        [{"src/base/options.h": OPTION.format('"x"'), "docs/a.md": "use `--lames`\n"}],
        {"src/base/options.h": OPTION.format('"x"'), "docs/a.md": "use `--lanes 2` and `--seed`\n", "cmd/a.c": 'x("--seed");\n'}),
    check_messages: (
        [{"docs/messages/Q0101.md": "# Q0101: a\n"}, {"src/base/a.c": 'x("[Q0101]");\n'},
         {"docs/messages/Q0101.md": "# Q0102: a\n", "src/base/a.c": 'x("[Q0101]");\n'}],
        {"docs/messages/Q0101.md": "# Q0101: a\n", "docs/messages/Q0102.md": "# Q0102: b\n", "src/base/a.c": 'x("[Q0101]");\n',
         "src/base/a.h": "enum { QUOIT_WRONG_A = 102 };\n"}),
    check_document_widths: ([{"README.md": "x" * 131}, {"README.md": "```text\nx\n```\n" + "x" * 131}],
                            {"README.md": "x" * 130 + "\n| " + "x" * 140 + "\n```text\n" + "x" * 140 + "\n```\n"}),
    check_format: (
        [{"src/base/a.c": "int  a( void );\n", ".clang-format": STYLE}],
        {"src/base/a.c": "int a(void);\n", ".clang-format": STYLE}),
}


def problems_in(check, files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
            with open(os.path.join(root, path), "w") as file:
                file.write(text)
        return list(check(root))


def self_test():
    failures = 0
    for check in CHECKS:
        if check is check_format and shutil.which("clang-format") is None:
            continue
        bad, good = SAMPLES[check]
        for sample in bad:
            if not problems_in(check, sample):
                print(f"tidy: {check.__name__} does not see what is wrong with {sample}")
                failures += 1
        for problem in problems_in(check, good):
            print(f"tidy: {check.__name__} is wrong about a good sample: {problem}")
            failures += 1
    print(f"tidy: self-test of {len(CHECKS)} checks: {failures} failures")
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(1 if self_test() else 0)
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        sys.exit(__doc__)
    problems = [problem for check in CHECKS for problem in check(sys.argv[1])]
    for problem in problems:
        print(problem)
    print(f"tidy: {len(CHECKS)} checks, {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()
