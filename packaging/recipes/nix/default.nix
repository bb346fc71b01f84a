# SPDX-License-Identifier: Apache-2.0
# For nixpkgs: pkgs/by-name/tr/trine/package.nix. The drivers' libraries are opened by their plain names at run time.
{
  lib,
  stdenv,
  fetchurl,
  meson,
  ninja,
  pkg-config,
  scdoc,
  hwloc,
  jansson,
  criterion,
  llvmPackages_19,
  config,
  cudaSupport ? config.cudaSupport or false,
  cudaPackages ? { },
  rocmSupport ? config.rocmSupport or false,
  autoAddDriverRunpath,
}:

let
  feature = name: on: lib.mesonEnable name on;
in
stdenv.mkDerivation (finalAttrs: {
  pname = "trine";
  version = "@VERSION@";

  src = fetchurl {
    url = "@URL@";
    sha256 = "@SHA256@";
  };

  nativeBuildInputs = [
    meson
    ninja
    pkg-config
    scdoc
  ]
  ++ lib.optionals cudaSupport [
    cudaPackages.cuda_nvcc
    autoAddDriverRunpath
  ]
  ++ lib.optionals rocmSupport [
    llvmPackages_19.clang-unwrapped
    llvmPackages_19.lld
  ];

  buildInputs = [
    hwloc
    jansson
  ]
  ++ lib.optionals cudaSupport [ cudaPackages.cuda_cudart ];

  checkInputs = [ criterion ];
  doCheck = true;
  mesonCheckFlags = [
    "--no-suite=device"
    "--no-suite=slow"
  ];

  mesonFlags = [
    (feature "hwloc" true)
    (feature "tools" true)
    (feature "man" true)
    (feature "tests" finalAttrs.finalPackage.doCheck)
    (feature "cuda" cudaSupport)
    (feature "hip" rocmSupport)
    (feature "peers" false)
    (feature "python" false)
  ];

  meta = {
    description = "Fused compute kernels for CPU, CUDA and HIP, with one specification and one answer";
    license = lib.licenses.asl20;
    platforms = lib.platforms.linux;
    mainProgram = "trine";
  };
})
