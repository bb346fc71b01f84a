#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills in packaging/recipes for a release, and has what is installed of the channels' own tools read each one.

Usage: recipes.py TARBALL URL DIRECTORY. The recipes are written to DIRECTORY; for each file a line says what read
it."""
import ast
import base64
import configparser
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recipes")
# Nix's alphabet, in which Guix writes checksums: from the last five bits to the first.
BASE32 = "0123456789abcdfghijklmnpqrsvwxyz"


def base32(digest):
    number = int.from_bytes(digest, "little")
    return "".join(BASE32[number >> 5 * place & 31] for place in reversed(range((len(digest) * 8 + 4) // 5)))


def values(tarball, url):
    with open(tarball, "rb") as file:
        data = file.read()
    name = re.fullmatch(r"trine-(\d+\.\d+\.\d+)\.tar\.gz", os.path.basename(tarball))
    if not name:
        sys.exit(f"recipes: {tarball} is not called trine-VERSION.tar.gz")
    folder, slash, last = url.rpartition("/")
    if not slash or last != name[0]:
        sys.exit(f"recipes: {url} does not end in /{name[0]}")
    digest = hashlib.sha256(data).digest()
    return {"VERSION": name[1], "URL": url, "URL_FOLDER": folder, "HOMEPAGE": folder, "SHA256": digest.hex(),
            "SHA256_BASE32": base32(digest), "SHA512": hashlib.sha512(data).hexdigest()}


def with_python(path):
    with open(path) as file:
        ast.parse(file.read())
    return "parsed as Python"


def with_json(path):
    with open(path) as file:
        json.load(file)
    return "parsed as JSON"


def with_yaml(path):
    try:
        import yaml
    except ImportError:
        return "not read: there is no python3-yaml"
    with open(path) as file:
        yaml.safe_load(file)
    return "parsed as YAML"


def with_ini(path):
    parser = configparser.ConfigParser(interpolation=None)
    with open(path) as file:
        parser.read_file(file)
    return "parsed as a wrap file" if parser.has_option("wrap-file", "source_hash") else sys.exit(f"{path}: no hash")


def with_tool(*command):
    def run(path):
        if not shutil.which(command[0]):
            return f"not read: there is no {command[0]}"
        done = subprocess.run([*command, path], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"recipes: {path}: {command[0]}: {done.stderr.strip()}")
        return "read by " + command[0]
    return run


def with_cmake(path):
    """Run with vcpkg's own commands as commands that do nothing."""
    with open(path) as file:
        commands = sorted(set(re.findall(r"\bvcpkg_\w+(?=\()", file.read())))
    for features in "", "cuda;tools":
        stub = path + ".stub"
        with open(stub, "w") as file:
            file.write("cmake_minimum_required(VERSION 3.13)\n")
            file.write("".join(f"function({command})\nendfunction()\n" for command in commands))
            file.write(f'set(FEATURES "{features}")\nset(CURRENT_PACKAGES_DIR "{path}.none")\ninclude("{path}")\n')
        said = with_tool("cmake", "-P")(stub)
        os.remove(stub)
    return said + ", without vcpkg's commands"


READERS = {
    "spack/package.py": with_python,
    "conda/recipe.yaml": with_yaml,
    "nix/default.nix": with_tool("nix-instantiate", "--parse"),
    "guix/trine.scm": with_tool("guile", "--no-auto-compile", "-c",
                                "(with-input-from-file (cadr (command-line))"
                                " (lambda () (let next () (unless (eof-object? (read)) (next)))))"),
    "easybuild/trine.eb": with_python,
    "vcpkg/vcpkg.json": with_json,
    "vcpkg/portfile.cmake": with_cmake,
    "meson/trine.wrap": with_ini,
    "rpm/trine.spec": with_tool("rpmspec", "--parse"),
}


def main():
    tarball, url, out = sys.argv[1:]
    known = values(tarball, url)
    found = sorted(os.path.relpath(os.path.join(at, name), HERE) for at, _, names in os.walk(HERE) for name in names)
    if found != sorted(READERS):
        sys.exit(f"recipes: files without a reader, or the other way round: {set(found) ^ set(READERS)}")
    for path in found:
        with open(os.path.join(HERE, path)) as file:
            text = re.sub(r"@([A-Z0-9_]+)@", lambda word: known[word[1]], file.read())
        written = os.path.join(out, path)
        os.makedirs(os.path.dirname(written), exist_ok=True)
        with open(written, "w") as file:
            file.write(text)
        print(f"{path}: {READERS[path](written)}", flush=True)


main()
