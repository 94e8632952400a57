# SPDX-License-Identifier: BSD-3-Clause
"""What pip calls to build the source package (PEP 517): the same wheel as scripts/package makes, of the files as they are."""
import os
import tempfile

import common
import make_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    del config_settings, metadata_directory
    with tempfile.TemporaryDirectory(prefix="quoit-wheel-") as folder:
        prefix = os.path.join(folder, "prefix")
        common.build(common.ROOT, folder, prefix)
        return os.path.basename(make_wheel.make(prefix, wheel_directory))


def build_sdist(sdist_directory, config_settings=None):
    del config_settings
    path = os.path.join(sdist_directory, f"quoit-{common.version()}.tar.gz")
    common.source_archive(path)
    return os.path.basename(path)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Compiled parts would not follow the source."""
    del wheel_directory, config_settings, metadata_directory
    raise common.Problem("quoit cannot be installed with --editable: build/dev/lib/quoit/python in PYTHONPATH is that")
