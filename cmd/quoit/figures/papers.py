# SPDX-License-Identifier: BSD-3-Clause
"""The papers' own sentences, from papers.json."""
import json
import os


def quotes():
    """{key: (where it stands, the sentence)}"""
    with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "papers.json"), encoding="utf-8") as file:
        return json.load(file)["quotes"]
