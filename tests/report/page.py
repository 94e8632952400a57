# SPDX-License-Identifier: BSD-3-Clause
"""Requirements of every page of the report writer, for tests of the commands that write one."""
import re
import xml.etree.ElementTree as ElementTree


SMALL_SCREEN, MARGINS = 360, 45  # px: of a page, and of that beside a plot (page.css)
TEXT_LEAST = 11  # px


def check(path):
    """The page as a tree. It is well-formed, its identifiers are unique, and it refers to nothing outside itself."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert text.startswith("<!DOCTYPE html>\n"), "no doctype"
    tree = ElementTree.fromstring(text.split("\n", 1)[1])
    identifiers = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(identifiers) == len(set(identifiers)), "an identifier is there twice"
    for element in tree.iter():
        for name in ("href", "src", "data", "action", "srcset"):
            target = element.get(name, "#")
            assert target.startswith("#"), f"{element.tag} leads to {target}"
            assert target == "#" or target[1:] in identifiers, f"{element.tag} leads to {target}, which is not there"
        assert element.tag not in ("link", "iframe", "img"), f"there is a {element.tag}"
    for script in tree.iter("script"):
        assert not script.keys() and not re.search(r"fetch|XMLHttpRequest|import|WebSocket|eval", script.text), "a script that loads"
    assert not re.search(r"https?:|@import|url\((?!#)", text), "the page names another place"
    assert "prefers-color-scheme: dark" in text and 'name="viewport"' in text, "one theme, or one size of screen"
    for target in re.findall(r"url\(#([^)]*)\)", text):
        assert target in identifiers, f"url(#{target}) is not there"
    check_figures(tree)
    return tree


def check_figures(tree):
    """Each plot has a name to save it by, its numbers for a CSV, no colour that a theme cannot change, and text that can be read
    on a small screen."""
    for figure in tree.iter("figure"):
        assert re.fullmatch(r"[a-z0-9-]+", figure.get("data-name")), figure.attrib
        assert [part.tag for part in figure][-1] == "details" and figure[0].tag == "svg", [part.tag for part in figure]
        drawn = ElementTree.tostring(figure[0], encoding="unicode")
        assert not re.search(r"(?<!, )#[0-9a-f]{6}\b", drawn.replace("clip-path", "")), "a colour of no theme"
        width = float(figure[0].get("viewBox").split()[2])
        least = min(float(size) for size in re.findall(r"font: (?:\w+ )*([0-9.]+)px", drawn)) * (SMALL_SCREEN - MARGINS) / width
        assert least >= TEXT_LEAST, f"text of {least:.1f} px on a screen of {SMALL_SCREEN}"


def boxes(tree):
    """Every box as its title, its quotation, and the texts of its facts by their names."""
    return [("".join(box.find("h3").itertext()), "".join(box.find("blockquote").itertext()) if box.find("blockquote") is not None else "",
             {name.text or "": "".join(fact.itertext()) for name, fact in zip(box.iter("dt"), box.iter("dd"))})
            for box in tree.iter("div") if "box" in box.get("class", "").split()]


def tables(tree):
    """Every table as a list of rows of texts."""
    return [[["".join(cell.itertext()) for cell in row if cell.tag in ("td", "th")] for row in table.iter("tr")]
            for table in tree.iter("table")]
