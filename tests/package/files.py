# SPDX-License-Identifier: BSD-3-Clause
"""Aim: an archive and a wheel are the same bytes whatever the order, times and owners of the files that they are made of;
the tag of a wheel is the newest symbol of the C library, and a file that needs another library is refused. Method: small
prefixes of a program and a library of cc, packed twice, with other times and orders."""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging"))
import common  # noqa: E402
import make_tar  # noqa: E402
import make_wheel  # noqa: E402


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="quoit-files-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.environ["SOURCE_DATE_EPOCH"] = "1700000000"

    def compile(self, name, source, *options):
        os.makedirs(os.path.dirname(os.path.join(self.folder, name)), exist_ok=True)
        common.write(os.path.join(self.folder, "source.c"), source)
        subprocess.run(["cc", os.path.join(self.folder, "source.c"), "-o", os.path.join(self.folder, name), *options], check=True)

    def prefix(self, name, order):
        """As an installation has it, files made in another order each time."""
        for below, text in sorted((("include/shmem.h", "int x;\n"), ("share/man/man3/a.3", ".so man3/b.3\n"),
                                   ("share/man/man3/b.3", "page\n"), ("lib/systemd/system/a.service", "unit\n")), reverse=order):
            common.write(os.path.join(self.folder, name, below), text)
        self.compile(f"{name}/bin/quoit", "int main(void) { return 0; }\n")
        self.compile(f"{name}/lib/libshmem.so.0.9.0", "int f(void) { return 0; }\n", "-shared", "-fPIC", "-Wl,-soname,libshmem.so.1")
        for link, target in (("libshmem.so.1", "libshmem.so.0.9.0"), ("libshmem.so", "libshmem.so.1"), ("libsma.so", "libshmem.so")):
            os.symlink(target, os.path.join(self.folder, name, "lib", link))
        return os.path.join(self.folder, name)

    def test_same_bytes(self):
        made = []
        for name, order in (("one", False), ("two", True)):
            prefix = self.prefix(name, order)
            for below in common.paths_below(prefix):
                os.utime(os.path.join(prefix, below), (order * 86400, order * 86400), follow_symlinks=False)
            os.mkdir(f"{self.folder}/out{name}")
            made.append([digest(make(prefix, f"{self.folder}/out{name}")) for make in (make_tar.make, make_wheel.make)])
        self.assertEqual(made[0], made[1])
        os.environ["SOURCE_DATE_EPOCH"] = "1700000002"
        self.assertNotEqual(digest(make_tar.make(f"{self.folder}/one", self.folder)), made[0][0])

    def test_contents_of_a_wheel(self):
        path = make_wheel.make(self.prefix("one", False), self.folder)
        data = f"quoit-{common.version()}.data/data"
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            self.assertEqual({name for name in names if name.startswith(data)},
                             {f"{data}/{below}" for below in ("include/shmem.h", "share/man/man3/b.3", "bin/quoit", "lib/libshmem.so",
                                                              "lib/libshmem.so.1", "lib/libsma.so")})
            for name in ("libshmem.so", "libsma.so"):
                self.assertIn(b"INPUT(libshmem.so.1)", archive.read(f"{data}/lib/{name}"))
            for name, executable in ((f"{data}/bin/quoit", True), (f"{data}/lib/libshmem.so.1", True), (f"{data}/include/shmem.h", False)):
                self.assertEqual(archive.getinfo(name).external_attr >> 16 & 0o111 != 0, executable, name)
            records = archive.read(f"quoit-{common.version()}.dist-info/RECORD").decode().splitlines()
        self.assertEqual({line.split(",")[0] for line in records}, names)

    def test_tag(self):
        prefix = self.prefix("one", False)
        self.assertRegex(make_wheel.platform_tag(prefix), r"^manylinux_2_\d+_\w+$")
        for shown, newest in (("", 0), ("Name: GLIBC_2.4\nName: GLIBC_2.34\nName: GLIBC_2.2.5\nName: GLIBC_2.17\n", 34)):
            self.assertEqual(make_wheel.newest_glibc(shown), newest)
        self.compile("one/bin/other", "int f(void);\nint main(void) { return f(); }\n", "-L", f"{prefix}/lib", "-lshmem")
        make_wheel.platform_tag(prefix)
        self.compile("one/lib/libother.so.3", "int g(void) { return 0; }\n", "-shared", "-fPIC", "-Wl,-soname,libother.so.3")
        self.compile("one/bin/third", "int g(void);\nint main(void) { return g(); }\n", f"{prefix}/lib/libother.so.3")
        with self.assertRaisesRegex(common.Problem, "third needs libother.so.3"):
            make_wheel.platform_tag(prefix)

    def test_source_package_packs_itself(self):
        """Unpacked, without history, it gives the same bytes, also to pip."""
        if not common.has_history():
            self.skipTest("an unpacked source package")
        del os.environ["SOURCE_DATE_EPOCH"]
        first = f"{self.folder}/first.tar.gz"
        common.source_archive(first)
        tree = common.unpack(first, f"{self.folder}/unpacked")
        done = subprocess.run([sys.executable, "-B", "-c", "import backend; print(backend.build_sdist('..'))"],
                              cwd=f"{tree}/packaging", stdout=subprocess.PIPE, text=True, check=True)
        self.assertEqual(done.stdout, f"quoit-{common.version()}.tar.gz\n")
        self.assertEqual(digest(f"{tree}/{done.stdout.strip()}"), digest(first))

    def test_version_stands_once(self):
        """No file that is committed has the version but CMakeLists.txt, the list of changes and this project's documents."""
        if not common.has_history():
            self.skipTest("an unpacked source package")
        found = subprocess.run(["git", "-C", common.ROOT, "grep", "-lF", common.version(), "--", "include", "src", "cmd", "cmake", "python",
                                "packaging", "docs/man"], stdout=subprocess.PIPE, text=True, check=False).stdout.split()
        # The figures' results, and the page that prints them, have the version that made them.
        self.assertEqual([name for name in found if not name.endswith(("_test.c", "version.h", "libshmem.map", "libqdsm.map",
                                                                       "figures/results.json", "man/quoit-figures.1"))], [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
