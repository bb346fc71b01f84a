#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The subjects of commits: "area: What it does", at most 72 characters, of the last commits since BASE.

A shallow clone that does not reach back so far is looked at as far as it goes. A history without BASE is another one,
and a tree without a repository has none: nothing is looked at. Usage: subjects.py"""
import re
import subprocess
import sys

BASE = "4b6e043eaf01b9cf0c2a76ae38b4a39f4e550715"  # what came before is as it is
MOST = 50
FORM = re.compile(r"[A-Za-z][\w, .-]*: \S.*")


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)


there = git("cat-file", "-e", f"{BASE}^{{commit}}").returncode == 0
if not there and git("rev-parse", "--is-shallow-repository").stdout.strip() != "true":
    sys.exit(0)
log = git("log", f"--max-count={MOST}", "--no-merges", "--format=%h %s", "HEAD", *([f"^{BASE}"] if there else []))
wrong = 0
for line in log.stdout.splitlines():
    commit, subject = line.split(" ", 1)
    if len(subject) > 72 or not FORM.fullmatch(subject):
        print(f"{commit}: {len(subject)} characters: {subject}")
        wrong += 1
sys.exit(wrong > 0)
