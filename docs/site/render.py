# SPDX-License-Identifier: Apache-2.0
"""Pages of the site: Markdown, man pages and sources as HTML, their links, and the frame that all pages have.

The site has the tree's own layout: docs/proof.md is docs/proof.html, and a source that a page links to has a page of
its own, spec/ops.def.html."""
import html
import os
import posixpath
import re
import subprocess

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

FUNCTION = r"\btrine_\w+(?=\()"
FILE = r"[\w.\-]+/[\w./\-]*\w|\b[\w\-]+\.md\b"


class Page:
    """A page: its path in the site, title, HTML, and headings as (level, id, text)."""

    def __init__(self, path, title, body, headings=(), source=None):
        self.path, self.title, self.body, self.headings, self.source = path, title, body, list(headings), source


def relative(start, target):
    """The link from a page to a path of the site, which may have a fragment."""
    path, mark, fragment = target.partition("#")
    link = posixpath.relpath(path, posixpath.dirname(start) or ".")
    return ("" if path == start and mark else link) + mark + fragment


def anchor(start, target, inner):
    """The same as an element, whose content is HTML."""
    return f'<a href="{relative(start, target)}">{inner}</a>'


def slug(text, taken):
    """The id of a heading, as GitHub makes it."""
    name = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
    taken[name] = taken.get(name, -1) + 1
    return f"{name}-{taken[name]}" if taken[name] else name


def code(text, language):
    """A block of code in a language that Pygments has, or as it is."""
    try:
        text = highlight(text, get_lexer_by_name(language), HtmlFormatter(nowrap=True)).rstrip("\n") if (
            language) else html.escape(text, False)
    except ClassNotFound:
        text = html.escape(text, False)
    return f"<pre><code>{text}</code></pre>\n"


def wide(table, kind=""):
    """A table that scrolls by itself where the window is narrower."""
    return f'<div class="wide {kind}">{table}</div>\n'


def files_of(root):
    """The files of a checkout, or of a tree without a repository."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return set(listed.stdout.rstrip("\0").split("\0"))
    found = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f != ".git" and not os.path.exists(f"{folder}/{f}/build.ninja")]
        found.update(os.path.relpath(os.path.join(folder, name), root) for name in names)
    return found


class Renderer:
    """Turns texts of the tree at `root` into HTML. What a link needs besides is asked of `functions`: the place in the
    site of each C function by its name."""

    def __init__(self, root, functions):
        self.root, self.functions = root, functions
        self.files = files_of(root)
        self.folders = {folder for file in self.files for folder in self.parents(file)}
        self.wanted = {}  # paths of sources and folders that pages link to
        self.markdown = MarkdownIt("commonmark", {"html": False, "highlight": self.fenced}).enable("table")
        for name in ("table_open", "table_close", "code_inline"):
            self.markdown.renderer.rules[name] = getattr(self, name)

    @staticmethod
    def parents(file):
        while file := posixpath.dirname(file):
            yield file

    # ----------------------------------------------------------------------------------------------------------- links

    def place_of(self, path):
        """Where the site has a file or folder of the tree; None if the tree has not."""
        if path in self.files:
            stem, extension = posixpath.splitext(path)
            if path == "README.md":
                return "index.html"
            if extension in (".md", ".scd") or path == "NEWS":
                return stem + ".html"
        elif path in self.folders:
            if f"{path}/README.md" in self.files:
                return self.place_of(f"{path}/README.md")
            self.wanted[path] = f"{path}/index.html"
            return self.wanted[path]
        else:
            return None
        self.wanted[path] = path + ".html"
        return self.wanted[path]

    def link(self, source, page, target):
        """A link of the file `source` as it is to be on `page`. One that leads nowhere stays as it is, for the check of
        links to find."""
        path, mark, fragment = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return target
        place = self.place_of(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        return relative(page, place + mark + fragment) if place else target

    def linked(self, page, text, source=""):
        """Plain text as HTML, where functions and files of the tree are links; what stands between backquotes is code.
        Names of files may be relative to the file `source`."""
        def found(match):
            if match.group(1):
                return f"<code>{match.group(1)}</code>"
            word = html.unescape(match.group())
            place = self.functions.get(word)
            for path in (word, posixpath.normpath(posixpath.join(posixpath.dirname(source), word))):
                if not place and path in self.files:
                    place = self.place_of(path)
            return anchor(page, place, match.group()) if place else match.group()
        return re.sub(rf"`([^`]+)`|{FUNCTION}|{FILE}", found, html.escape(text, False))

    # -------------------------------------------------------------------------------------------------------- Markdown

    def fenced(self, text, language, _attributes):
        return code(text, language)

    def table_open(self, _tokens, _at, _options, _env):
        return '<div class="wide"><table>\n'

    def table_close(self, _tokens, _at, _options, _env):
        return "</table></div>\n"

    def code_inline(self, tokens, at, _options, env):
        text = tokens[at].content
        if tokens[at].meta["link"] or "`" in text:
            return f"<code>{html.escape(text, False)}</code>"
        return f"<code>{self.linked(env['page'], text, env['source'])}</code>"

    def markdown_page(self, source, title=None, text=None):
        """The page of a Markdown file, called as its first heading is."""
        if text is None:
            with open(f"{self.root}/{source}", encoding="utf-8") as file:
                text = file.read()
        page, taken, headings = self.place_of(source), {}, []
        env = {"page": page, "source": source}
        tokens = self.markdown.parse(text, env)
        for at, token in enumerate(tokens):
            if token.type == "heading_open":
                words = "".join(t.content for t in tokens[at + 1].children)
                token.attrSet("id", slug(words, taken))
                headings.append((int(token.tag[1]), token.attrGet("id"), words))
            depth = 0
            for child in token.children or []:
                depth += child.nesting if child.type in ("link_open", "link_close") else 0
                child.meta["link"] = depth > 0
                for name in ("href", "src"):
                    if child.attrGet(name):
                        child.attrSet(name, self.link(source, page, child.attrGet(name)))
        body = self.markdown.renderer.render(tokens, self.markdown.options, env)
        return Page(page, title or headings[0][2], body, headings, source)

    # ----------------------------------------------------------------------------------------------- manuals, sources

    def man_page(self, built, source, places):
        """The page of a manual in the build tree; `places` has those of the manuals by (name, section)."""
        page = self.place_of(source)
        text = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", built], capture_output=True, text=True,
                              check=True).stdout
        text = re.sub(r'<table class="(head|foot)">.*?</table>', "", text, flags=re.S)
        headings = [(2, name, html.unescape(words).capitalize())
                    for name, words in re.findall(r'<h1 class="Sh" id="([^"]*)"><a[^>]*>(.*?)</a>', text)]
        text = re.sub(r"<(/?)h1", r"<\1h2", text)

        def other(match):
            place = places.get((match.group(1), match.group(2)))
            return anchor(page, place, match.group()) if place else match.group()
        text = re.sub(r"<b>(trine[\w-]*)</b>\((\d)\)", other, text)
        text = re.sub(r"(?<=<i>)[^<]+(?=</i>)", lambda match: self.linked(page, html.unescape(match.group())), text)
        name = posixpath.basename(source).rsplit(".", 2)
        title = f"{name[0]}({name[1]})"
        return Page(page, title, f"<h1>{title}</h1>\n{text}", headings, source)

    def source_page(self, path):
        """The page of a file, or of a folder: a list of what is in it."""
        page = self.wanted[path]
        if path in self.folders:
            inside = sorted({path + "/" + file[len(path) + 1:].split("/")[0]
                             for file in self.files if file.startswith(path + "/")})
            items = "".join(f"<li>{anchor(page, self.place_of(i), html.escape(i))}</li>\n" for i in inside)
            return Page(page, path, f"<h1>{html.escape(path)}</h1>\n<ul>\n{items}</ul>\n", [], path)
        with open(f"{self.root}/{path}", encoding="utf-8", errors="replace") as file:
            text = html.escape(file.read(), False)
        return Page(page, path, f'<h1>{html.escape(path)}</h1>\n<pre class="source"><code>{text}</code></pre>\n', [],
                    path)
