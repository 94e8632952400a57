# SPDX-License-Identifier: BSD-3-Clause
"""Recipes for other package managers: the files of packaging/ with the version and the checksum of the source package in
them. What cannot be built on this machine says so in its first line."""
import hashlib
import os
import re
import sys

import common

RECIPES = {"spack/package.py": "spack/quoit/package.py", "conda-forge/meta.yaml": "conda-forge/meta.yaml",
           "easybuild/quoit.eb": "easybuild/quoit-{version}.eb", "container/Containerfile": "container/Containerfile"}


def make(archive, out):
    with open(archive, "rb") as file:
        checksum = hashlib.sha256(file.read()).hexdigest()
    made = []
    for name, target in RECIPES.items():
        text = common.read(os.path.join(common.ROOT, "packaging", name))
        text = text.replace("@VERSION@", common.version()).replace("@SHA256@", checksum)
        path = os.path.join(out, "recipes", target.format(version=common.version()))
        common.write(path, text)
        made.append(path)
    return made


def test(paths):
    """Nothing is left to fill in, each is of this version, and those in Python are Python."""
    for path in paths:
        text = common.read(path)
        left = re.findall(r"@[A-Z0-9]+@", text)
        if left or common.version() not in text:
            raise common.Problem(f"{path}: {left or 'no version'}")
        if path.endswith((".py", ".eb")):
            compile(text, path, "exec")
    print(f"package: {len(paths)} recipes", file=sys.stderr)
