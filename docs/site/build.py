# SPDX-License-Identifier: Apache-2.0
"""Makes the documentation's site: every Markdown file of the tree, the manuals, a page for each op from the
specification, the C interface from the headers, and the sources that these link to; then looks at all links. It needs
no network.

    build.py BUILD SITE
"""
import html
import json
import os
import pathlib
import re
import string
import subprocess
import sys
import time

from pygments.formatters import HtmlFormatter

import examples
import interface
import links
import ops
from render import Renderer, relative

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).parent
OPS, COMMAND = "ops/index.html", "docs/man/trine.1.html"
# What the side of each page links to; other pages are reached from these.
NAVIGATION = {
    "Start": [("Overview", "index.html"), ("Python", "docs/python.html"),
              ("C", "docs/languages.html#c"), ("C++", "docs/languages.html#c-1"),
              ("Fortran", "docs/languages.html#fortran"), ("Rust", "docs/languages.html#rust"), ("News", "NEWS.html")],
    "Reference": [("Ops", OPS), ("C interface", interface.PLACE), ("Command", COMMAND),
                  ("Environment", "docs/man/trine.7.html#ENVIRONMENT")],
    "How it works": [("Architecture", "docs/architecture.html"),
                     ("How a kernel is chosen", "docs/architecture.html#how-a-kernel-is-chosen"),
                     ("Proof", "docs/proof.html"), ("Performance", "docs/performance.html"), ("AMD", "docs/amd.html"),
                     ("Glossary", "docs/glossary.html")],
    "Take part": [("Kernels of your own", "docs/kernels.html"), ("Contributing", "CONTRIBUTING.html"),
                  ("What was learned", "docs/learned.html"), ("Releasing", "RELEASING.html")],
}


def tool(build, *words, **variables):
    """What the trine command prints; None if it fails."""
    run = subprocess.run([build / "tools" / "trine", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         env={**os.environ, "TRINE_TUNE": "/dev/null", **variables}, check=False)
    return run.stdout if run.returncode == 0 else None


def archs_of(build):
    """For each op what has been run of its code on each architecture."""
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")]
                      for line in tool(build, "spec", "--archs").splitlines()]
    return {row[0]: dict(zip(head[1:], row[1:])) for row in rows}


def drivers_of(build):
    """The backends that this build has, and the variables under which the command sees a device of each: of the GPUs
    the emulated ones, so that none is needed."""
    found = {"cpu": {}}
    stub, emulated = "emulators/cuda/libcuda-stub.so", "emulators/cdna/libamdhip64-emulated.so"
    if (build / stub).exists() and (build / "backends/cuda/trine-cuda.so").exists():
        found["cuda"] = {"LD_PRELOAD": str(build / stub)}
    code = next(build.glob("backends/hip/**/*.hsaco"), None)
    if code and (build / emulated).exists() and (build / "backends/hip/trine-hip.so").exists():
        found["hip"] = {"LD_PRELOAD": str(build / emulated), "CDNA_CHIP": code.name.split(".")[-2]}
    return found


def kernels_of(build, spec):
    """The names of the kernels by backend and op, in their order."""
    level = json.loads(tool(build, "info", "--json"))["devices"][0]["arch"].removeprefix("x86-64-")
    kernels = {}
    for backend, variables in drivers_of(build).items():
        device = "cpu" if backend == "cpu" else f"{backend}:0"
        for op in spec.ops:
            told = tool(build, "explain", op.name, "--case", op.cases[0].partition(": ")[0], "--json", "--device",
                        device, **variables)
            names = [c["kernel"] for c in json.loads(told)["candidates"]] if told else []
            kernels[backend, op.name] = [re.sub(rf"^cpu_{level}(?=_|$)", "cpu_<level>", name) for name in names]
    return kernels


class Site:
    def __init__(self, build):
        self.build = build
        self.spec = examples.specification.parse(json.loads(tool(build, "spec", "--json")))
        public = sorted((ROOT / "include" / "trine").glob("*.h"))
        declared = interface.read([str(path) for path in public])
        functions = {op.function: ops.place_of(op) for op in self.spec.ops}
        functions.update(interface.functions_of(declared))
        self.renderer = Renderer(str(ROOT), functions)
        self.template = string.Template((HERE / "page.html").read_text(encoding="utf-8"))
        self.pages = self.written() + self.manuals()
        self.pages += ops.OpPages(self.renderer, self.spec, kernels_of(build, self.spec), archs_of(build)).pages()
        self.pages.append(interface.page(self.renderer, declared))
        done = set()
        while todo := set(self.renderer.wanted) - done:  # a folder's page links to further sources
            self.pages += [self.renderer.source_page(path) for path in sorted(todo)]
            done |= todo

    def written(self):
        """The Markdown files, and what is new."""
        renderer = self.renderer
        news = (ROOT / "NEWS").read_text(encoding="utf-8")
        news = "# News\n\n" + re.sub(r"^(trine \d.*)$", r"## \1", news, flags=re.M)
        return [renderer.markdown_page(path) for path in sorted(renderer.files) if path.endswith(".md")] + [
            renderer.markdown_page("NEWS", text=news)]

    def manuals(self):
        """The manuals, as the build has them; that of the ops is in the pages of the ops."""
        sources = sorted(path for path in self.renderer.files if path.endswith(".scd"))
        built = {path: self.build / path.removesuffix(".scd") for path in sources}
        places = {tuple(pathlib.PurePath(p).name.split(".")[:2]): self.renderer.place_of(p) for p in sources}
        places["trine-ops", "7"] = OPS
        return [self.renderer.man_page(str(built[path]), path, places) for path in sources]

    def navigation(self, page):
        """The side of a page: all chapters, and within its own its sections, or the ops, or the manuals."""
        out = []
        for chapter, entries in NAVIGATION.items():
            out.append(f"<h2>{chapter}</h2>\n<ul>")
            for label, target in entries:
                at = ' aria-current="page"' if page.path == target else ""
                out.append(f'<li><a href="{relative(page.path, target)}"{at}>{html.escape(label)}</a>')
                if target == OPS and page.path.startswith("ops/"):
                    out += self.op_list(page)
                elif target == COMMAND and page.path.startswith("docs/man/"):
                    out += self.listed(page, [(p.title, p.path) for p in self.pages if p.path.startswith("docs/man/")])
                elif at:
                    out += self.listed(page, [(text, f"{page.path}#{name}") for level, name, text in page.headings
                                              if level == 2])
                out.append("</li>")
            out.append("</ul>")
        return "\n".join(out)

    @staticmethod
    def listed(page, entries):
        out = []
        for label, target in entries:
            at = ' aria-current="page"' if page.path == target else ""
            out.append(f'<li><a href="{relative(page.path, target)}"{at}>{html.escape(label)}</a></li>')
        return ["<ul>", *out, "</ul>"] if out else []

    def op_list(self, page):
        out = ["<ul>"]
        for family in dict.fromkeys(op.family for op in self.spec.ops):
            ops_of = [(op.name, ops.place_of(op)) for op in self.spec.ops if op.family == family]
            out += [f"<li>{family}", *self.listed(page, ops_of), "</li>"]
        return out + ["</ul>"]

    def index(self):
        """What the search looks through: [words, place, what it is], the ops first."""
        entries = [[op.name, ops.place_of(op), op.summary] for op in self.spec.ops]
        entries += [[name, place, "C function"] for name, place in self.renderer.functions.items() if "#" in place]
        for page in self.pages:
            if page.source and not page.headings or page.path.startswith("ops/"):
                continue
            entries += [[text, page.path if level == 1 else f"{page.path}#{name}", page.title]
                        for level, name, text in page.headings]
        return "const INDEX = " + json.dumps(entries, separators=(",", ":")) + ";\n"

    def write(self, out):
        out.mkdir(parents=True, exist_ok=True)
        for old in out.rglob("*.html"):
            old.unlink()
        for page in self.pages:
            text = self.template.substitute(
                title=html.escape(page.title), root=relative(page.path, "x")[:-1], navigation=self.navigation(page),
                body=page.body, version=self.spec.version, home=relative(page.path, "index.html"))
            path = out / page.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        style = (HERE / "style.css").read_text(encoding="utf-8")
        colours = {name: HtmlFormatter(style=name).get_style_defs("code") for name in ("default", "github-dark")}
        colours = {name: re.sub(r"^(pre|td|span)\b.*\n|^code \{.*\n", "", text, flags=re.M)
                   for name, text in colours.items()}
        (out / "style.css").write_text(f"{style}\n{colours['default']}\n@media (prefers-color-scheme: dark) {{\n"
                                       f"{colours['github-dark']}\n}}\n", encoding="utf-8")
        (out / "search.js").write_text(self.index() + (HERE / "search.js").read_text(encoding="utf-8"),
                                       encoding="utf-8")


def main():
    start, (build, out) = time.monotonic(), map(pathlib.Path, sys.argv[1:])
    site = Site(build.resolve())
    site.write(out)
    wrong = links.check(out)
    print(*wrong, f"{len(site.pages)} pages in {time.monotonic() - start:.1f} s, {len(wrong)} faults", sep="\n")
    sys.exit(len(wrong) > 0)


if __name__ == "__main__":
    main()
