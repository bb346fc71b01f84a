# SPDX-License-Identifier: Apache-2.0
"""What a run of the agreement suite wrote down: by `trine check --log` the cases, and in between, by what stands in for a driver or beside one, the launches."""
import os
import re


def read_notes(path):
    """The functions that there are, as far as the file says, and of those launched the agreement case ("" if it was another) that did so first."""
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
