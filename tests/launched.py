# SPDX-License-Identifier: Apache-2.0
"""What a run of the agreement suite launches: the notes of a run, the tables of cases, and the names of the kernels
that there are."""
import os
import re


def read_notes(path):
    """The functions that there are, as far as the file says, and of those launched the agreement case ("" if it was
    another) that did so first.

    `trine check --log` writes the cases, and in between what stands in for a driver or beside one the launches."""
    has, ran, case = set(), {}, ""
    for line in open(path, encoding="utf-8") if os.path.exists(path) else []:
        word, _, rest = line.strip().partition(" ")
        if word == "has":
            has.add(rest)
        elif word == "ran":
            ran[rest] = case
        else:
            number = re.search(r"--case (\d+)", rest)
            case = number[1] if number else ""
    return has, ran


def read_table(path):
    """Of each op its cases, and the kernels that they do not launch."""
    lines = open(path, encoding="utf-8").read().splitlines() if os.path.exists(path) else []
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {words[0]: words[1] for words in rows}, {word[1:] for words in rows for word in words[2:]}


def object_kernels(path):
    """The names of an AMD code object's kernels: of each the ELF string table has NAME.kd."""
    with open(path, "rb") as file:
        return {name.decode() for name in re.findall(rb"(\w+)\.kd\0", file.read())}


def cubin_kernels(path):
    """The names of the kernels that a cubin has: of each the ELF string table has .text.NAME."""
    with open(path, "rb") as file:
        return {name.decode() for name in re.findall(rb"(?<=\0)\.text\.(\w+)(?=\0)", file.read())}
