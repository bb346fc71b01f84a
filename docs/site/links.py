# SPDX-License-Identifier: Apache-2.0
"""Looks at the links of a built site: every one that stays in it has a page and a place there, no id stands twice, and
every page can be reached from index.html. It needs the standard library alone.

    links.py SITE
"""
import html.parser
import os
import posixpath
import re
import sys
import urllib.parse


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.twice, self.links = set(), [], []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                if value in self.ids:
                    self.twice.append(value)
                self.ids.add(value)
            elif name in ("href", "src"):
                self.links.append(value or "")


def read(site):
    """A Reader for each page, by its path."""
    pages = {}
    for folder, _, names in os.walk(site):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(folder, name)
                reader = Reader()
                with open(path, encoding="utf-8") as file:
                    reader.feed(file.read())
                pages[posixpath.normpath(os.path.relpath(path, site))] = reader
    return pages


def check(site):
    """What is wrong, a sentence each."""
    pages, wrong, reached, next_ = read(site), [], set(), ["index.html"]
    leads = {}
    for path, page in pages.items():
        wrong += [f"{path}: the id {name} stands twice" for name in page.twice]
        leads[path] = set()
        for link in page.links:
            if re.match(r"https?:|mailto:", link):
                continue
            target, _, fragment = urllib.parse.unquote(link).partition("#")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            if re.match(r"/|\w+:", link) or place.startswith(".."):
                wrong.append(f"{path}: {link} leaves the site")
            elif place not in pages and not os.path.isfile(os.path.join(site, place)):
                wrong.append(f"{path}: {link} leads nowhere")
            elif fragment and (place not in pages or fragment not in pages[place].ids):
                wrong.append(f"{path}: {link}: {place} has no {fragment}")
            else:
                leads[path].add(place)
    while next_:
        path = next_.pop()
        if path in pages and path not in reached:
            reached.add(path)
            next_ += leads[path]
    return wrong + [f"{path}: no link leads here from index.html" for path in sorted(set(pages) - reached)]


def main():
    wrong = check(sys.argv[1])
    for line in wrong:
        print(line)
    sys.exit(len(wrong) > 0)


if __name__ == "__main__":
    main()
