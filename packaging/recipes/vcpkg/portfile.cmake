# SPDX-License-Identifier: Apache-2.0
# For vcpkg: ports/trine/portfile.cmake.
vcpkg_download_distfile(ARCHIVE URLS "@URL@" FILENAME "trine-@VERSION@.tar.gz" SHA512 "@SHA512@")
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")
foreach(feature cuda tools)
    if(feature IN_LIST FEATURES)
        list(APPEND options "-D${feature}=enabled")
    else()
        list(APPEND options "-D${feature}=disabled")
    endif()
endforeach()
vcpkg_configure_meson(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options} -Dhwloc=enabled -Dhip=disabled -Dtests=disabled
    -Dexamples=disabled -Dpeers=disabled -Dpython=disabled -Dman=disabled)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/trine)
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
