#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of what a release is made of, in SPDX 2.3: its files with their checksums, licences and holders, as
`reuse` reads them, and the libraries that it needs. The same bytes for the same tarball. Needs reuse and spdx-tools,
which packaging/sbom.sh gets.

Usage: sbom.py TARBALL TREE OUTPUT.json, where the tarball lies unpacked in TREE."""
import datetime
import hashlib
import json
import os
import subprocess
import sys
import tarfile

from license_expression import get_spdx_licensing
from spdx_tools.spdx.model import (Actor, ActorType, Checksum, ChecksumAlgorithm, CreationInfo, Document, File, Package,
                                   PackageVerificationCode, Relationship, RelationshipType, SpdxNoAssertion)
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
from spdx_tools.spdx.writer.write_anything import write_file

# What the library asks of the machine, the command, and the modules when they run; with licences.
NEEDS = [("hwloc", "BSD-3-Clause", RelationshipType.OPTIONAL_DEPENDENCY_OF, "the topology; of libtrine"),
         ("libgomp", "GPL-3.0-or-later WITH GCC-exception-3.1", RelationshipType.RUNTIME_DEPENDENCY_OF,
          "threads; of libtrine"),
         ("jansson", "MIT", RelationshipType.OPTIONAL_DEPENDENCY_OF, "of the command trine")]
PEOPLE = Actor(ActorType.ORGANIZATION, "trine developers")


def digest(path, algorithm):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def main():
    tarball, tree, output = sys.argv[1:]
    name = os.path.basename(tarball).removesuffix(".tar.gz")
    version = name.removeprefix("trine-")
    sha256 = digest(tarball, "sha256")
    with tarfile.open(tarball) as archive:
        packed = sorted(member.name.removeprefix(name + "/") for member in archive if member.isfile())
        newest = max(member.mtime for member in archive.getmembers())
    said = subprocess.run(["reuse", "--root", tree, "lint", "--json"], capture_output=True, text=True)
    known = json.loads(said.stdout)
    if not known["summary"]["compliant"]:
        sys.exit("sbom: reuse lint finds files without a licence or a holder")
    licensing = get_spdx_licensing()
    files = []
    for row in sorted(known["files"], key=lambda row: row["path"]):
        path = os.path.join(tree, row["path"])
        licences = sorted({licence["value"] for licence in row["spdx_expressions"]})
        files.append(File(
            name="./" + row["path"], spdx_id=f"SPDXRef-File-{len(files) + 1}",
            checksums=[Checksum(ChecksumAlgorithm.SHA1, digest(path, "sha1")),
                       Checksum(ChecksumAlgorithm.SHA256, digest(path, "sha256"))],
            license_concluded=licensing.parse(" AND ".join(licences)),
            license_info_in_file=[licensing.parse(licence) for licence in licences],
            copyright_text="\n".join(sorted(holder["value"] for holder in row["copyrights"]))))
    # `reuse` looks at neither the texts of licences, nor its own file, nor empty ones.
    missing = [path for path in packed if "./" + path not in {file.name for file in files}
               and not path.startswith(("LICENSE", "REUSE.toml")) and os.path.getsize(os.path.join(tree, path))]
    if missing:
        sys.exit(f"sbom: files that reuse does not know: {' '.join(missing)}")
    sums = "".join(sorted(file.checksums[0].value for file in files))
    package = Package(
        spdx_id="SPDXRef-trine", name="trine", version=version, download_location=SpdxNoAssertion(), supplier=PEOPLE,
        file_name=os.path.basename(tarball), files_analyzed=True,
        verification_code=PackageVerificationCode(hashlib.sha1(sums.encode()).hexdigest()),
        checksums=[Checksum(ChecksumAlgorithm.SHA256, sha256)],
        license_concluded=licensing.parse("Apache-2.0"), license_declared=licensing.parse("Apache-2.0"),
        license_info_from_files=[licensing.parse("Apache-2.0")], copyright_text="2026 trine developers")
    document = Document(CreationInfo(
        spdx_version="SPDX-2.3", spdx_id="SPDXRef-DOCUMENT", name=name,
        document_namespace=f"https://trine.invalid/spdx/{name}-{sha256}", creators=[PEOPLE],
        created=datetime.datetime.fromtimestamp(newest, datetime.timezone.utc).replace(tzinfo=None)),
        packages=[package], files=files)
    document.relationships = [Relationship("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, package.spdx_id)]
    document.relationships += [Relationship(package.spdx_id, RelationshipType.CONTAINS, file.spdx_id) for file in files]
    for need, licence, relation, why in NEEDS:
        document.packages.append(Package(
            spdx_id="SPDXRef-" + need, name=need, download_location=SpdxNoAssertion(), files_analyzed=False,
            license_concluded=licensing.parse(licence), license_declared=licensing.parse(licence),
            copyright_text=SpdxNoAssertion()))
        document.relationships.append(Relationship("SPDXRef-" + need, relation, package.spdx_id, why))
    wrong = validate_full_spdx_document(document)
    for message in wrong[:10]:
        print(f"sbom: {message.validation_message}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    write_file(document, output, validate=False)
    print(f"sbom: {os.path.basename(output)}, SPDX 2.3, {len(files)} files, {len(document.packages)} packages, valid")


main()
