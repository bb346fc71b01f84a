;; SPDX-License-Identifier: Apache-2.0
;; For Guix: a module of a channel. Guix has no CUDA; the HIP module needs clang and lld alone.
(define-module (trine)
  #:use-module (gnu packages check)
  #:use-module (gnu packages llvm)
  #:use-module (gnu packages man)
  #:use-module (gnu packages mpi)
  #:use-module (gnu packages pkg-config)
  #:use-module (gnu packages web)
  #:use-module (guix build-system meson)
  #:use-module (guix download)
  #:use-module ((guix licenses) #:prefix license:)
  #:use-module (guix packages))

(define-public trine
  (package
    (name "trine")
    (version "@VERSION@")
    (source (origin
              (method url-fetch)
              (uri "@URL@")
              (sha256 (base32 "@SHA256_BASE32@"))))
    (build-system meson-build-system)
    (arguments
     '(#:configure-flags '("-Dhwloc=enabled" "-Dtools=enabled" "-Dman=enabled" "-Dcuda=disabled" "-Dhip=enabled"
                           "-Dpeers=disabled" "-Dpython=disabled" "-Dtests=disabled")))
    (native-inputs (list pkg-config scdoc clang-19 lld-19))
    (inputs (list `(,hwloc "lib") jansson))
    (synopsis "Fused compute kernels with one specification and one answer")
    (description "Trine is a library of fused compute kernels for AI and HPC.  Each op has one specification with a
float64 reference and a derived error bound that the kernels of every device must meet.")
    (home-page "@HOMEPAGE@")
    (license license:asl2.0)))
