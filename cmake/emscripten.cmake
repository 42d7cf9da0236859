# Toolchain of the wasm presets: finds a recent enough Emscripten. A user's own one (EMSDK, or emcc on PATH) precedes
# Debian's, as in tools/setup.

set(attn_emscripten_oldest 3.1.69)
find_program(attn_emcc emcc NO_CACHE)
set(attn_emscripten_candidates "$ENV{EMSDK}/upstream/emscripten")
if(attn_emcc)
  file(REAL_PATH ${attn_emcc} attn_emcc_real)
  cmake_path(GET attn_emcc_real PARENT_PATH attn_emcc_folder)
  list(APPEND attn_emscripten_candidates ${attn_emcc_folder} ${attn_emcc_folder}/../libexec)
endif()
list(APPEND attn_emscripten_candidates /usr/lib/emscripten /usr/share/emscripten)

foreach(candidate IN LISTS attn_emscripten_candidates)
  if(EXISTS ${candidate}/emscripten-version.txt AND NOT DEFINED EMSCRIPTEN_ROOT_PATH)
    file(READ ${candidate}/emscripten-version.txt version)
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version}")
    if(version VERSION_GREATER_EQUAL attn_emscripten_oldest)
      file(REAL_PATH ${candidate} EMSCRIPTEN_ROOT_PATH)
      set(attn_emscripten_version ${version})
    endif()
  endif()
endforeach()
if(NOT DEFINED EMSCRIPTEN_ROOT_PATH)
  message(FATAL_ERROR "attn needs Emscripten ${attn_emscripten_oldest} or newer. On Debian 12, as root: tools/setup wasm. "
    "Elsewhere install the Emscripten SDK and put its emcc on PATH.")
endif()
include(${EMSCRIPTEN_ROOT_PATH}/cmake/Modules/Platform/Emscripten.cmake)

# clang 19 orders some exception handlers by memory addresses: with address randomisation, two builds of the same
# source may differ in a few bytes.
find_program(attn_setarch setarch NO_CACHE)
if(attn_setarch)
  execute_process(COMMAND ${attn_setarch} ${CMAKE_HOST_SYSTEM_PROCESSOR} -R true RESULT_VARIABLE attn_setarch_failed OUTPUT_QUIET ERROR_QUIET)
  if(attn_setarch_failed EQUAL 0)
    set(attn_no_randomisation ${attn_setarch} ${CMAKE_HOST_SYSTEM_PROCESSOR} -R)
  endif()
endif()
if(NOT DEFINED CACHE{CMAKE_CXX_COMPILER_LAUNCHER})
  include(${CMAKE_CURRENT_LIST_DIR}/ccache.cmake)
  # ccache recognises clang by name, and would compare the time stamp of the script em++ instead of the compiler's
  # version.
  attn_ccache(CMAKE_CXX_COMPILER_LAUNCHER CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK=string:${attn_emscripten_version})
endif()
list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${attn_no_randomisation})

get_filename_component(attn_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(CMAKE_CXX_LINKER_LAUNCHER ${attn_no_randomisation} ${CMAKE_COMMAND} -E env --modify PATH=path_list_prepend:${attn_root}/cmake/bin)
if(EMSCRIPTEN_ROOT_PATH STREQUAL "/usr/share/emscripten" AND EXISTS ${attn_root}/.setup/binaryen/bin/wasm-opt)
  list(APPEND CMAKE_CXX_LINKER_LAUNCHER EM_BINARYEN_ROOT=${attn_root}/.setup/binaryen)
endif()
