# find_package(attn CONFIG REQUIRED), target attn::attn.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(ATTN_PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/attn)
install(TARGETS attn EXPORT attn-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} FILE_SET HEADERS)
if(ATTN_BUILD_COMMAND)
  install(TARGETS attn_command DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# From there to where everything is: cmake --install may be told another place than it was configured for.
file(RELATIVE_PATH ATTN_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/attn.pc.in ${PROJECT_BINARY_DIR}/attn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/attn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(ATTN_BUILD_C)
  install(TARGETS attn_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/src/attn/c.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attn)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/attn_c.pc.in ${PROJECT_BINARY_DIR}/attn_c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/attn_c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
# What is compiled in has licences of its own.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_NOTICES.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/attn)
install(EXPORT attn-targets NAMESPACE attn:: DESTINATION ${ATTN_PACKAGE_FOLDER})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/attn-config.cmake.in ${PROJECT_BINARY_DIR}/attn-config.cmake
  INSTALL_DESTINATION ${ATTN_PACKAGE_FOLDER})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attn-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attn-config.cmake ${PROJECT_BINARY_DIR}/attn-config-version.cmake ${PROJECT_SOURCE_DIR}/cmake/Findutf8proc.cmake
  DESTINATION ${ATTN_PACKAGE_FOLDER})
