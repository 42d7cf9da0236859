# make release inserts the address and digest of the archive: build/release-VERSION/vcpkg/ports/attn is the port to
# submit.
vcpkg_download_distfile(ARCHIVE
  URLS "@REPOSITORY@/releases/download/v${VERSION}/attn-${VERSION}.tar.gz"
  FILENAME "attn-${VERSION}.tar.gz"
  SHA512 0
)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${ARCHIVE}")

vcpkg_check_features(OUT_FEATURE_OPTIONS options
  FEATURES
    c ATTN_BUILD_C
    tools ATTN_BUILD_COMMAND
)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS ${options} -DATTN_CCACHE=)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/attn)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES attn AUTO_CLEAN)
endif()

# The LICENSE file is installed as the copyright file below.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/THIRD_PARTY_NOTICES.md")
