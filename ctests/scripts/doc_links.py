#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
#
#   doc_links.py <html> <docs>
#
# Each link in the reference goes to a page, and a place in it, that is there; each page of docs/ is in it, and none of their links was lost.

import html.parser
import pathlib
import re
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.places, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append(value)


folder, docs = map(pathlib.Path, sys.argv[1:])
pages = {path.name: Page(path) for path in folder.glob("*.html")}
wrong, checked = [], 0
for name, page in pages.items():
    for link in page.links:
        parts = urllib.parse.urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        checked += 1
        target = urllib.parse.unquote(parts.path) or name
        if not (folder / target).is_file():
            wrong.append(f"{name}: there is no {link}")
        elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].places:
            wrong.append(f"{name}: {target} has no place {parts.fragment}")


def letters(name):
    """A page's name without what Doxygen writes between its parts, which each version does in another way."""
    return re.sub("_2|[^a-z0-9]", "", name.lower())


sources = sorted(docs.rglob("*.md"))
found = {letters(name.removesuffix(".html").removeprefix("md_").removeprefix("docs_")) for name in pages}
for source in sources:
    path = source.relative_to(docs).with_suffix("")
    if letters(str(path)) not in found and path.name != "mainpage":
        wrong.append(f"docs/{path}.md is not in the reference")
    code = re.sub(r"^ *```.*?^ *```", "", source.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([a-z_0-9./]+)\.md", code):
        if not (source.parent / f"{target}.md").is_file():
            wrong.append(f"docs/{path}.md links to {target}.md, which there is not")
print("\n".join(wrong) or f"{len(pages)} pages, {checked} links")
sys.exit(bool(wrong))
