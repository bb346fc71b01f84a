#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the vendors' own tools find the device code in a module, and as much as was built into it? Speaks TAP.

Usage: listed.py MODULE cuda|hip IMAGES [TOOL...]. The section is first read here, as those tools read it: cuobjdump
--list-elf the fatbins of .nv_fatbin, roc-obj-ls and llvm-objdump --offloading the bundles of .hip_fatbin."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

ELF = b"\x7fELF"


def section(path, name):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:6] == ELF + b"\2\1", "not an ELF file of 64 bits, little endian"
    at, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3a)
    rows = [struct.unpack_from("<IIQQQQ", data, at + size * row) for row in range(count)]
    strings = rows[names][4]
    for row in rows:
        start = strings + row[0]
        if data[start:data.index(b"\0", start)] == name.encode():
            return data[row[4]:row[4] + row[5]]
    return b""


def fatbins(data):
    """Machine code in fatbins that follow one another, each a head and images that have heads of their own."""
    found, at = 0, 0
    while at < len(data):
        magic, _, head, body = struct.unpack_from("<IHHQ", data, at)
        if magic != 0xba55ed50:
            return f"no fatbin at {at:#x}"
        end, image = at + head + body, at + head
        while image < end:
            kind, _, own, size = struct.unpack_from("<HHIQ", data, image)
            found += kind == 2
            image += own + size
        at = end + -end % 64
    return found


def bundles(data):
    """Code objects in bundles that follow one another, each from a page on."""
    found, at = 0, 0
    while at < len(data):
        if data[at:at + 24] != b"__CLANG_OFFLOAD_BUNDLE__":
            return f"no bundle at {at:#x}"
        count, = struct.unpack_from("<Q", data, at + 24)
        entry, end = at + 32, at
        for _ in range(count):
            offset, size, length = struct.unpack_from("<QQQ", data, entry)
            target = data[entry + 24:entry + 24 + length]
            entry += 24 + length
            end = at + offset + size
            if target == b"host-x86_64-unknown-linux-gnu-" and size == 0:
                continue
            if not target.startswith(b"hipv4-amdgcn-amd-amdhsa--gfx") or data[at + offset:at + offset + 4] != ELF:
                return f"{target} at {at + offset:#x} is no code object"
            found += 1
        at = end + -end % 4096
    return found


def listed(tool, module):
    name = os.path.basename(tool)
    with tempfile.TemporaryDirectory() as work:
        # llvm-objdump writes what it finds beside what it reads.
        copy = os.path.join(work, "module.so")
        shutil.copyfile(module, copy)
        options = {"cuobjdump": ["--list-elf"], "roc-obj-ls": []}.get(name, ["--offloading"])
        lines = subprocess.run([tool, *options, copy], capture_output=True, text=True).stdout.splitlines()
    start = {"cuobjdump": "ELF file ", "roc-obj-ls": ""}.get(name, "Extracting offload bundle: ")
    return sum(line.startswith(start) and "host-x86_64" not in line and line.strip() != "" for line in lines)


module, kind, images, *tools = sys.argv[1:]
print(f"1..{len(tools) + 1}")
where, read = {"cuda": (".nv_fatbin", fatbins), "hip": (".hip_fatbin", bundles)}[kind]
counts = [("section " + where, read(section(module, where)))]
counts += [(os.path.basename(tool), listed(tool, module)) for tool in tools]
for number, (name, count) in enumerate(counts, 1):
    good = count == int(images) > 0
    print(f"{'ok' if good else 'not ok'} {number} - {name} has the machine code of the module, {images} images")
    if not good:
        print(f"# it has {count}")
