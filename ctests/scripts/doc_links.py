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
sources = sorted(docs.glob("*.md"))
names = {source.stem: "index.html" if source.stem == "mainpage" else f"md_docs_{source.stem}.html" for source in sources}
for stem, name in names.items():
    # Later versions write the name in other ways.
    found = [other for other in pages if other.replace("__", "_").lower() in (name, f"md_docs_2{stem}.html", f"md_{stem}.html")]
    if not found:
        wrong.append(f"docs/{stem}.md is not in the reference")
for source in sources:
    code = re.sub(r"^ *```.*?^ *```", "", source.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([a-z_0-9]+)\.md", code):
        if target not in names:
            wrong.append(f"docs/{source.name} links to {target}.md, which there is not")
print("\n".join(wrong) or f"{len(pages)} pages, {checked} links")
sys.exit(bool(wrong))
