# SPDX-License-Identifier: Apache-2.0
"""For Spack: packages/trine/package.py of a repository of packages."""
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.meson import MesonPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *


class Trine(MesonPackage, CudaPackage, ROCmPackage):
    """Fused compute kernels in C for CPUs, NVIDIA GPUs and AMD's CDNA, with one specification and one answer."""

    url = "@URL@"
    license("Apache-2.0")
    version("@VERSION@", sha256="@SHA256@")

    variant("tools", default=True, description="Build the trine command")

    depends_on("c", type="build")
    depends_on("meson@1.0:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("hwloc@2:")
    depends_on("jansson", when="+tools")
    depends_on("llvm@19: +clang +lld", type="build", when="+rocm")

    conflicts("cuda_arch=none", when="+cuda", msg="name the architectures: cuda_arch=80,90")
    conflicts("amdgpu_target=none", when="+rocm", msg="name the chips: amdgpu_target=gfx90a,gfx942")

    # Tensor cores of these are reached by the variant with a letter alone.
    codes = {"90": "sm_90a", "100": "sm_100a"}

    def meson_args(self):
        spec = self.spec

        def feature(name, on):
            return f"-D{name}={'enabled' if on else 'disabled'}"

        args = [feature("hwloc", True), feature("tools", "+tools" in spec), feature("cuda", "+cuda" in spec),
                feature("hip", "+rocm" in spec)]
        # Spack has neither Criterion nor scdoc.
        args += [feature(name, False) for name in ("man", "peers", "python", "tests")]
        if "+cuda" in spec:
            codes = [self.codes.get(a, f"sm_{a}") for a in spec.variants["cuda_arch"].value]
            args.append("-Darchs_cuda=" + ",".join(codes))
        if "+rocm" in spec:
            args.append("-Darchs_hip=" + ",".join(spec.variants["amdgpu_target"].value))
        return args

    def test_agreement(self):
        """the kernels of this machine against the float64 reference"""
        trine = which(self.prefix.bin.trine)
        trine("check", "--device", "cpu", "--budget", "20", "--quiet")
