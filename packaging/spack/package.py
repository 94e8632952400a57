# Not built here: Spack is not to be had from the registries that this project's machines reach.
# SPDX-License-Identifier: BSD-3-Clause
from spack.package import *


class Quoit(CMakePackage):
    """OpenSHMEM 1.6 for one machine, rings of hosts joined by PCIe non-transparent bridges, and networks."""

    homepage = "https://quoit.invalid"
    url = "https://quoit.invalid/quoit-@VERSION@.tar.gz"

    license("BSD-3-Clause")
    version("@VERSION@", sha256="@SHA256@")

    variant("ofi", default=True, description="The network driver for libfabric")
    variant("ucx", default=False, description="The network driver for UCX")
    variant("python", default=False, description="The Python package quoit")

    provides("shmem")
    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type=("build", "run"))
    depends_on("py-numpy", type="run", when="+python")
    depends_on("libfabric@1.15:", when="+ofi")
    depends_on("ucx@1.13:", when="+ucx")
    conflicts("platform=darwin")
    conflicts("platform=windows")

    generator("ninja")

    def cmake_args(self):
        return [self.define("QUOIT_TESTS", False)]

    def setup_run_environment(self, env):
        if self.spec.satisfies("+python"):
            env.prepend_path("PYTHONPATH", join_path(self.prefix, "lib", "quoit", "python"))
            env.prepend_path("PYTHONPATH", join_path(self.prefix, "lib64", "quoit", "python"))

    def setup_dependent_build_environment(self, env, dependent_spec):
        env.set("OSHCC", join_path(self.prefix.bin, "oshcc"))
        env.set("OSHCXX", join_path(self.prefix.bin, "oshc++"))
