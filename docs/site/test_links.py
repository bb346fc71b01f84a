# SPDX-License-Identifier: Apache-2.0
"""That the check of links finds what is wrong, in pages and in the Markdown that they are made of. Speaks TAP."""
import pathlib
import tempfile

import links
from render import Renderer

FAULTS = {
    "a page that is not there": ('<a href="gone.html">x</a>', "gone.html leads nowhere"),
    "a file that is not there": ('<link href="gone.css">', "gone.css leads nowhere"),
    "a place that the page has not": ('<a href="other.html#gone">x</a>', "other.html has no gone"),
    "a place in the same page": ('<a href="#gone">x</a>', "index.html has no gone"),
    "an id that stands twice": ('<p id="a"></p><p id="a"></p>', "the id a stands twice"),
    "what is outside": ('<a href="../x.html">x</a>', "leaves the site"),
    "an absolute path": ('<a href="/x.html">x</a>', "leaves the site"),
}
GOOD = '<a href="other.html#a">x</a> <a href="https://example.org/">x</a>'
count = 0


def ok(good, name):
    global count
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {name}")


def write(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def faults_of(pages):
    """What the check says of a site of these pages."""
    with tempfile.TemporaryDirectory() as site:
        write(site, pages)
        return links.check(site)


def site_of(files):
    """The pages of a tree of these Markdown files, as the site has them."""
    with tempfile.TemporaryDirectory() as root:
        write(root, files)
        renderer = Renderer(root, {})
        pages = [renderer.markdown_page(name) for name in files if name.endswith(".md")]
        pages += [renderer.source_page(path) for path in list(renderer.wanted)]
        return {page.path: page.body for page in pages}


other = '<h1 id="a">a</h1>'
ok(not faults_of({"index.html": GOOD, "other.html": other}), "a good site passes")
for name, (text, said) in FAULTS.items():
    found = faults_of({"index.html": GOOD + text, "other.html": other})
    ok(len(found) == 1 and said in found[0], f"found: {name}")
found = faults_of({"index.html": GOOD, "other.html": other, "alone.html": '<a href="index.html">x</a>'})
ok(found == ["alone.html: no link leads here from index.html"], "found: a page that none leads to")

readme = "# A\n\nSee [b](docs/b.md#two-words), [c](src/c.c), `src/c.c` and [here](#a).\n"
tree = {"README.md": readme, "docs/b.md": "# B\n\n## Two words\n\n[a](../README.md#a)\n", "src/c.c": "int c;\n"}
ok(not faults_of(site_of(tree)), "links between Markdown files and to sources hold in the site")
for change in (("docs/b.md#", "docs/gone.md#"), ("two-words", "three-words"), ("src/c.c)", "src/gone.c)"),
               ("(#a)", "(#b)")):
    ok(len(faults_of(site_of({**tree, "README.md": readme.replace(*change)}))) > 0, f"found: {change[1]} in README.md")
print(f"1..{count}")
