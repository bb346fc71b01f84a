# SPDX-License-Identifier: Apache-2.0
"""What a run of the agreement suite launches: the notes of a run, the tables of cases, and the names of the kernels
that there are."""
import ctypes
import os
import re
import struct


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


def fatbin_kernels(path, arch):
    """The names of the kernels that a fatbin has in machine code for "sm_90a": of each the ELF has a section
    .text.NAME.

    A fatbin is a header (magic, version, bytes of the header, bytes behind it), and behind it images: of each a header
    (kind, version, bytes of the header, bytes of the image, bytes compressed, ..., architecture, ..., bytes
    decompressed or 0), and the image, by zstd if it is compressed."""
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    elf, wanted, kernels = 2, int(re.search(r"\d+", arch)[0]), set()
    with open(path, "rb") as file:
        data = file.read()
    magic, _, at, _ = struct.unpack_from("<IHHQ", data)
    if magic != 0xBA55ED50:
        raise ValueError(f"{path} is no fatbin")
    while at < len(data):
        kind, _, header, size, packed = struct.unpack_from("<HHIQI", data, at)
        (number,), (plain,) = struct.unpack_from("<I", data, at + 28), struct.unpack_from("<Q", data, at + 56)
        image = data[at + header:at + header + (packed if plain else size)]
        if plain:
            room = ctypes.create_string_buffer(plain)
            if zstd.ZSTD_decompress(room, ctypes.c_size_t(plain), image, ctypes.c_size_t(packed)) != plain:
                raise ValueError(f"{path} holds an image that zstd does not decompress")
            image = room.raw
        if kind == elf and number == wanted:
            kernels |= {name.decode() for name in re.findall(rb"(?<=\0)\.text\.(\w+)(?=\0)", image)}
        at += header + size
    return kernels
