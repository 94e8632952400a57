# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages: built by debhelper from packaging/debian, checked by lintian, and installed, used, upgraded and purged
beside openmpi-bin and without it, on a copy of this machine's root that is an overlay and vanishes afterwards."""
import email.utils
import glob
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import common
from check import Check, report

MAINTAINER = "the Quoit authors <quoit@packages.quoit.invalid>"
PACKAGES = ("libshmem1", "libqdsm1", "libshmem-dev", "quoit", "quoit-networks", "python3-quoit", "quoit-doc", "quoit-dkms")
NAMES = ("oshcc.quoit", "oshc++.quoit", "oshrun.quoit")


def changelog():
    return (f"quoit ({common.version()}-1) unstable; urgency=medium\n\n  * CHANGELOG.md has what is new.\n\n"
            f" -- {MAINTAINER}  {email.utils.formatdate(common.epoch())}\n")


def build_dependencies(control):
    words = re.search(r"^Build-Depends: (.*?)^\S", control, re.M | re.S)[1].split(",")
    return [re.sub(r"\(.*?\)", "", word).strip() for word in words]


def need_packages():
    """What debhelper would ask for, by name."""
    common.need("dpkg-buildpackage", "fakeroot")
    names = build_dependencies(common.read(os.path.join(common.ROOT, "packaging", "debian", "control")))
    missing = []
    for name in names:
        name = {"debhelper-compat": "debhelper", "dh-sequence-dkms": "dh-dkms", "dh-sequence-sphinxdoc": "sphinx-common"}.get(name, name)
        shown = subprocess.run(["dpkg-query", "-W", "-f", "${Status} ${Provides}", name], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, check=False).stdout
        if "installed" not in shown and not (name == "pkg-config" and shutil.which("pkg-config")):
            missing.append(name)
    if missing:
        raise common.Missing(f"packages that are not installed: {' '.join(missing)}")


def make(archive, folder, out):
    need_packages()
    version = common.version()
    place = os.path.join(folder, "deb")
    tree = common.unpack(archive, place)
    shutil.copy(archive, os.path.join(place, f"quoit_{version}.orig.tar.gz"))
    shutil.copytree(os.path.join(tree, "packaging", "debian"), os.path.join(tree, "debian"))
    common.write(os.path.join(tree, "debian", "changelog"), changelog())
    # Packages with debug information are not made: without it half the time is enough.
    options = f"noautodbgsym {os.environ.get('DEB_BUILD_OPTIONS', '')}".strip()
    env = {**common.environment(), "DEB_BUILD_OPTIONS": options, "DEB_CFLAGS_STRIP": "-g", "DEB_CXXFLAGS_STRIP": "-g"}
    common.run("dpkg-buildpackage", "-us", "-uc", "-d", cwd=tree, env=env)
    made = []
    for pattern in ("*.deb", "*.dsc", "*.debian.tar.xz", "*.orig.tar.gz"):
        for path in sorted(glob.glob(os.path.join(place, pattern))):
            if "-dbgsym_" not in path:
                made.append(shutil.copy(path, out))
    check_lintian(glob.glob(os.path.join(place, "*.changes"))[0])
    return made


def check_lintian(changes):
    if not shutil.which("lintian"):
        common.say("no lintian on this machine: not checked")
        return
    done = subprocess.run(["lintian", "--fail-on", "error,warning", "--suppress-tags", "initial-upload-closes-no-bugs", changes],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise common.Problem(f"lintian:\n{done.stdout}")
    common.say("lintian: clean")


ENTERED = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
for folder in proc dev sys; do mount --rbind /$folder "$1/root/$folder"; done
mount -t tmpfs tmpfs "$1/root/tmp" && chmod 1777 "$1/root/tmp"
mount -t tmpfs tmpfs "$1/root/run"
rm -f "$1/root/var/lib/man-db/auto-update" # which would take a minute of this test
mkdir "$1/root/tmp/debs" && cp "$2"/*.deb "$1/root/tmp/debs"
echo ready
exec cat
"""


class Overlay:
    """This machine's root, of which every change is lost. Commands run in it by chroot, in a mount namespace of its own."""

    def __init__(self, debs):
        if os.geteuid() != 0:
            raise common.Missing("no rights to mount an overlay (root): the Debian packages were made, not installed")
        self.folder = tempfile.mkdtemp(prefix="quoit-deb-")
        self.holder = subprocess.Popen(["unshare", "--mount", "--ipc", "sh", "-c", ENTERED, "sh", self.folder, debs],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            problem = self.holder.communicate()[1].strip()
            os.rmdir(self.folder)
            raise common.Missing(f"no overlay of / on this machine: {problem}")
        self.root = os.path.join(self.folder, "root")
        self.wrap = ["nsenter", "--target", str(self.holder.pid), "--mount", "chroot", self.root]

    def close(self):
        self.holder.communicate()
        os.rmdir(self.folder)

    def run(self, script, status=0):
        """Output of a shell script there."""
        done = subprocess.run([*self.wrap, "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "sh", "-c", script],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, check=False)
        if done.returncode != status:
            raise common.Problem(f"{script}: status {done.returncode}\n{done.stdout[-4000:]}")
        return done.stdout

    def has(self, package):
        return "install ok installed" in self.run(f"dpkg-query -W -f '${{Status}}' {package} 2>&1 || true")


def later(debs):
    """The same packages as version -2, in debs/later: for an upgrade."""
    return f"""set -e
mkdir -p /tmp/later
for deb in {debs}/*.deb; do
    rm -rf /tmp/tree && dpkg-deb -R $deb /tmp/tree
    sed -i 's/{common.version()}-1/{common.version()}-2/g' /tmp/tree/DEBIAN/control
    dpkg-deb --root-owner-group -Znone -b /tmp/tree /tmp/later >/dev/null
done
"""


def check_names(overlay, is_ours):
    """What oshrun and the like are."""
    for name in ("oshrun", "oshcc", "oshc++"):
        target = overlay.run(f"readlink -f /usr/bin/{name} || true").strip()
        if (target == f"/usr/bin/{name}.quoit") != is_ours:
            raise common.Problem(f"/usr/bin/{name} is {target or 'missing'}")


def installable(overlay):
    """Those whose dependencies this machine has; the module's need DKMS."""
    return [name for name in PACKAGES if (name != "quoit-dkms" or overlay.has("dkms")) and
            (name != "python3-quoit" or overlay.has("python3-numpy"))]


def use(overlay, debs, what, is_first=True):
    overlay.run("mkdir -p /tmp/check && chmod 777 /tmp/check")
    with tempfile.TemporaryDirectory() as folder:
        check = Check(common.version(), folder, "/usr/sbin:/usr/bin:/sbin:/bin", seen="/tmp/check", names=NAMES,
                      wrap=[*overlay.wrap, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        for name in os.listdir(folder):
            overlay.run(f"cat >/tmp/check/{name} <<'END'\n{common.read(os.path.join(folder, name))}END")
        check.greeting()
        if not is_first:
            return report(check, what)
        check.programs()
        check.networks()
        check.static()
        check.linkers()
        check.pkg_config("/nowhere")
        check.cmake("/usr")
        check.versions(4)
        check.manual("oshrun.quoit", "oshcc.quoit", "shmem_put", "quoit")
        if "python3-quoit" in debs:
            check.python("/usr/bin/python3")
        return report(check, what)


def test(paths):
    folder = os.path.dirname(paths[0])
    overlay = Overlay(folder)
    try:
        exercise(overlay)
    finally:
        overlay.close()


def listing(overlay):
    return set(overlay.run("find /usr/bin /usr/share/man/man1 /usr/lib/*-linux-gnu -maxdepth 1 ! -type d -printf '%p %l %s\\n'").splitlines())


def check_gone(overlay, debs, before):
    """Purged: no file of these names is left, and programs and libraries are what they were."""
    overlay.run("dpkg -P " + " ".join(shlex.quote(name) for name in reversed(debs)))
    left = overlay.run("find / -xdev \\( -path /tmp -o -path /proc -o -path /sys -o -path /dev -o -path /run \\) -prune -o "
                       "\\( -name '*quoit*' -o -name '*libshmem.so*' -o -name '*libqdsm*' \\) -newer /tmp/debs -print")
    changed = before ^ listing(overlay)
    if left or changed:
        raise common.Problem(f"purged, and yet there is {left.split()} {sorted(changed)}")


def exercise(overlay):
    debs, had_mpi = installable(overlay), overlay.has("openmpi-bin")
    files = " ".join(f"/tmp/debs/{name}_*.deb" for name in debs)
    if had_mpi:
        before = listing(overlay)
        overlay.run(f"dpkg -i {files}")
        check_names(overlay, is_ours=False)
        use(overlay, debs, "beside openmpi-bin")
        check_gone(overlay, debs, before)
        overlay.run(f"dpkg -i {files}")
        overlay.run("dpkg -r --force-depends openmpi-bin")
        check_names(overlay, is_ours=True)
        common.say("oshrun, oshcc and oshc++ are ours once openmpi-bin has gone")
        overlay.run("dpkg -P " + " ".join(debs))
    before = listing(overlay)
    overlay.run(f"dpkg -i {files}")
    check_names(overlay, is_ours=True)
    overlay.run(later("/tmp/debs"))
    overlay.run("dpkg -i " + " ".join(f"/tmp/later/{name}_*.deb" for name in debs))
    if overlay.run("dpkg-query -W -f '${Version}' quoit") != f"{common.version()}-2":
        raise common.Problem("the upgrade did not take place")
    check_names(overlay, is_ours=True)
    use(overlay, debs, "after an upgrade", is_first=not had_mpi)
    check_gone(overlay, debs, before)
    common.say(f"installed, used, upgraded and purged: {' '.join(debs)}")
