# SPDX-License-Identifier: BSD-3-Clause
"""What all packages share: the source is that of a commit, unpacked anew; its time is the commit's; and nothing of the
machine, the folder or the moment gets into a file, so that the same commit gives the same bytes."""
import gzip
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
METADATA = """Metadata-Version: 2.1
Name: quoit
Version: {version}
Summary: OpenSHMEM 1.6 for one machine, rings of hosts and networks
License: BSD-3-Clause
Keywords: OpenSHMEM,PGAS,HPC,parallel,numpy
Classifier: Intended Audience :: Science/Research
Classifier: License :: OSI Approved :: BSD License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: System :: Distributed Computing
Requires-Python: >=3.9
Requires-Dist: numpy
Description-Content-Type: text/markdown

{readme}"""


class Problem(Exception):
    """What is wrong, for the user."""


class Missing(Exception):
    """A tool without which this cannot be done here."""


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def version(root=ROOT):
    """As CMakeLists.txt has it, and nothing else."""
    return re.search(r"^project\(quoit VERSION ([\d.]+)", read(os.path.join(root, "CMakeLists.txt")), re.M)[1]


def metadata():
    """Of the Python package, as wheels and source packages have it."""
    return METADATA.format(version=version(), readme=read(os.path.join(ROOT, "README.md")))


def has_history():
    return os.path.exists(os.path.join(ROOT, ".git"))


def epoch():
    """The time of the commit, in seconds; of an unpacked source package, what it was when that was made."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    if has_history():
        return int(output("git", "-C", ROOT, "log", "-1", "--format=%ct"))
    return int(read(os.path.join(ROOT, "packaging", "epoch")))


def need(*tools):
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        raise Missing(f"no {' and no '.join(missing)} on this machine")


def run(*words, log=None, **how):
    """Ends with the last lines of what the command printed, if it fails."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, check=False, **how)
    if log:
        write(log, done.stdout)
    if done.returncode != 0:
        raise Problem(f"{' '.join(str(word) for word in words)}: status {done.returncode}\n" +
                      "\n".join(done.stdout.splitlines()[-40:]))
    return done.stdout


def output(*words, **how):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True, **how).stdout


def environment():
    """For everything that makes files of a package."""
    made = {name: value for name, value in os.environ.items()
            if name not in ("CFLAGS", "CXXFLAGS", "LDFLAGS", "CPPFLAGS", "DESTDIR", "CC", "CXX")}
    made.update(SOURCE_DATE_EPOCH=str(epoch()), LC_ALL="C.UTF-8", TZ="UTC")
    return made


def say(text):
    print(f"package: {text}", file=sys.stderr, flush=True)


def note_changes():
    """A package is of a commit: what is not committed is not in it."""
    if has_history() and output("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no"):
        say("what is not committed is left out")


def source_archive(path):
    """quoit-VERSION.tar.gz: the files of the commit, or of an unpacked source package, and PKG-INFO for pip."""
    name = f"quoit-{version()}"
    with tempfile.TemporaryDirectory(prefix="quoit-source-") as folder:
        if has_history():
            subprocess.run(f"git -C {shlex.quote(ROOT)} archive --format=tar --prefix={name}/ HEAD | tar -xf - -C {shlex.quote(folder)}",
                           shell=True, check=True)
        else:
            shutil.copytree(ROOT, os.path.join(folder, name), symlinks=True,
                            ignore=lambda where, _: ("build",) if where == ROOT else ("__pycache__",))
        tree = os.path.join(folder, name)
        write(os.path.join(tree, "PKG-INFO"), metadata())
        pack(path, tree, name)


def unpack(path, folder):
    """The one folder that is in an archive."""
    os.makedirs(folder, exist_ok=True)
    run("tar", "-xf", path, "-C", folder)
    return os.path.join(folder, os.listdir(folder)[0])


def pack(path, folder, name, is_taken=lambda below: True):
    """A .tar.gz of a folder, which has another name in it: sorted, of nobody in particular, all of one time."""
    when = epoch()

    def of_nobody(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = when
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 or entry.issym() else 0o644
        return entry

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for below in sorted(paths_below(folder)):
            if is_taken(below):
                archive.add(os.path.join(folder, below), os.path.join(name, below), recursive=False, filter=of_nobody)
    whole = f"{path}.{os.getpid()}"  # another scripts/package may be writing, or reading, the file of the same name
    with open(whole, "wb") as file, gzip.GzipFile("", "wb", 9, file, when) as packed:
        packed.write(content.getvalue())
    os.replace(whole, path)


def paths_below(folder):
    for where, folders, files in os.walk(folder):
        for each in folders + files:
            yield os.path.relpath(os.path.join(where, each), folder)


def compilers_for(glibc, folder):
    """Those of the Python package ziglang, which has every version of the C library: (CC, CXX, flags). Their names are those
    that oshcc and oshc++ call by default on the machine where they are installed."""
    if subprocess.run([sys.executable, "-m", "ziglang", "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      check=False).returncode != 0:
        raise Missing("no ziglang for this Python (pip install ziglang), which --glibc needs")
    for name, word in (("cc", "cc"), ("c++", "c++")):
        write(os.path.join(folder, "compilers", name), f"""#!/bin/sh
export ZIG_GLOBAL_CACHE_DIR={shlex.quote(os.path.join(folder, "zig"))} ZIG_LOCAL_CACHE_DIR={shlex.quote(os.path.join(folder, "zig"))}
exec {shlex.quote(sys.executable)} -m ziglang {word} -target {os.uname().machine}-linux-gnu.{glibc} "$@"
""", 0o755)
    # Headers of other libraries, without those of this machine's C library beside them.
    headers = os.path.join(folder, "headers")
    os.mkdir(headers)
    for name in ("rdma", "ucm", "ucp", "ucs", "uct", f"{os.uname().machine}-linux-gnu"):
        if os.path.isdir(f"/usr/include/{name}"):
            os.symlink(f"/usr/include/{name}", os.path.join(headers, name))
    return os.path.join(folder, "compilers", "cc"), os.path.join(folder, "compilers", "c++"), f"-g0 -idirafter {headers}"


def build(source, folder, prefix, glibc=None):
    """Builds a source tree and installs it, stripped, below `prefix`, from where it can be moved. glibc: the oldest one that
    the files may need, such as "2.28"; otherwise what this machine's compiler makes."""
    need("cmake", "ninja")
    built = os.path.join(folder, "build")
    flags, env = f"-ffile-prefix-map={source}=. -ffile-prefix-map={built}=.", environment()
    if glibc:
        env["CC"], env["CXX"], more = compilers_for(glibc, folder)
        flags += f" {more}"
    run("cmake", "-G", "Ninja", "-S", source, "-B", built, "-DCMAKE_BUILD_TYPE=Release", "-DQUOIT_TESTS=OFF",
        "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON", f"-DCMAKE_C_FLAGS={flags}",
        f"-DCMAKE_CXX_FLAGS={flags}", env=env)
    run("cmake", "--build", built, env=env)
    run("cmake", "--install", built, "--prefix", prefix, "--strip", env=env)


def test_source(path):
    """Its files are those of the commit, byte for byte but for the commit's time, which is put into one."""
    if not has_history():
        return
    with tarfile.open(path) as archive:
        found = {entry.name.split("/", 1)[1]: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
    if found.pop("PKG-INFO").decode() != metadata():
        raise Problem(f"{path}: PKG-INFO is not of this version")
    if found.pop("packaging/epoch").decode().strip() != output("git", "-C", ROOT, "log", "-1", "--format=%ct").strip():
        raise Problem(f"{path}: packaging/epoch is not the time of the commit")
    listed = dict(reversed(line.split(" ", 2)[2].split("\t", 1)) for line in
                  output("git", "-C", ROOT, "ls-tree", "-r", "-z", "HEAD").split("\0")[:-1])
    listed.pop("packaging/epoch")
    blobs = {name: hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() for name, content in found.items()}
    if blobs != listed:
        raise Problem(f"{path}: other files than the commit's: {sorted(set(blobs.items()) ^ set(listed.items()))[:20]}")
    say(f"{os.path.basename(path)}: {len(found)} files of the commit")
