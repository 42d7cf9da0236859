
macro(attn_find package version target)
  if(NOT TARGET ${target})
    find_package(${package} ${version} QUIET)
    if(NOT ${package}_FOUND AND NOT TARGET ${target})
      message(FATAL_ERROR "attn needs ${package} ${version} or newer. On Debian 12, as root: tools/setup native. "
        "Elsewhere install it with your package manager or from source and name the place in CMAKE_PREFIX_PATH.")
    endif()
  endif()
endmacro()

if(NOT EMSCRIPTEN)
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  attn_find(xsimd 13 xsimd)
  # xtensor before 1.0 reports every minor version as incompatible.
  attn_find(xtensor "" xtensor)
  if(DEFINED xtensor_VERSION AND xtensor_VERSION VERSION_LESS 0.25)
    message(FATAL_ERROR "attn needs xtensor 0.25 or newer; ${xtensor_DIR} has ${xtensor_VERSION}. On Debian 12, as root: tools/setup native.")
  endif()
  attn_find(nlohmann_json 3.11 nlohmann_json::nlohmann_json)
  if(ATTN_BUILD_PYTHON AND NOT TARGET utf8proc::utf8proc)
    include(cmake/static_utf8proc.cmake)
  endif()
  list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
  attn_find(utf8proc 2.1 utf8proc::utf8proc)
  list(POP_BACK CMAKE_MODULE_PATH)
else()
  # Links only these headers into a folder: find_package ignores this machine's libraries, and -I/usr/include would
  # precede Emscripten's C library.
  set(ATTN_WASM_INCLUDE ${CMAKE_BINARY_DIR}/include)
  file(MAKE_DIRECTORY ${ATTN_WASM_INCLUDE})
  foreach(library xsimd xtensor xtl nlohmann)
    find_path(ATTN_${library}_DIR NAMES ${library}/${library}.hpp ${library}/${library}_config.hpp ${library}/json.hpp
      ${library}/core/xtensor_config.hpp HINTS ENV CPLUS_INCLUDE_PATH PATHS ${CMAKE_PREFIX_PATH} /usr/local /opt/homebrew /usr
      PATH_SUFFIXES include NO_CMAKE_FIND_ROOT_PATH)
    if(NOT ATTN_${library}_DIR)
      message(FATAL_ERROR "attn needs the headers of ${library}. On Debian 12, as root: tools/setup wasm. "
        "Elsewhere install them and name the place in CMAKE_PREFIX_PATH.")
    endif()
    file(CREATE_LINK ${ATTN_${library}_DIR}/${library} ${ATTN_WASM_INCLUDE}/${library} SYMBOLIC)
  endforeach()
endif()
