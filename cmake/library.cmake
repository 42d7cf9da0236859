file(GLOB_RECURSE ATTN_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/attn/*.cpp)
# Hidden files are editor locks.
list(FILTER ATTN_SOURCES EXCLUDE REGEX "/\\.[^/]*$|/kernels/(kernels|backward|int8_dot)\\.cpp$")
# Native only; the package has tokenizers and tasks in TypeScript.
set(attn_native context io/files io/gguf/.+ io/safetensors_file io/safetensors_shards io/tokenizer io/tokenizer/.+
  models/answers models/entities models/lens models/lens_model models/lens_patching models/image_model models/image_processor models/model_folder models/model_writer models/text_model models/text_model_.+ models/text_tasks models/text_generation
  parallel/executor parallel/lists tensor/float_environment tensor/large_pages)
if(EMSCRIPTEN)
  list(JOIN attn_native "|" attn_native)
  list(FILTER ATTN_SOURCES EXCLUDE REGEX "/attn/(${attn_native})\\.cpp$")
endif()

set(ATTN_HEADERS)
set(attn_found src/attn/attn.hpp src/attn/core.hpp)
while(attn_found)
  list(POP_FRONT attn_found header)
  if(NOT ${PROJECT_SOURCE_DIR}/${header} IN_LIST ATTN_HEADERS)
    list(APPEND ATTN_HEADERS ${PROJECT_SOURCE_DIR}/${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} attn_includes REGEX "^#include \"attn/")
    list(TRANSFORM attn_includes REPLACE "^#include \"(.*)\"$" "src/\\1")
    list(APPEND attn_found ${attn_includes})
  endif()
endwhile()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ATTN_HEADERS})

# Allows vectorized square roots.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/attn/train/adam.cpp PROPERTIES COMPILE_OPTIONS -fno-math-errno)
# Their functions have the same names.
foreach(part IN ITEMS decoders model normalizers post_processor pre_tokenizers tokenizer_file)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/attn/io/tokenizer/${part}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()

# Only headers use xtensor, with the user's configuration: the library is compiled with ATTN_VIEWS_ONLY.
function(attn_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE
    # attn needs infinities and NaN; kernels.hpp checks it.
    -fno-fast-math
    # Fused a·b + c would change bits between machines.
    -ffp-contract=off
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    -Wno-missing-field-initializers
    # clang warns about std::stable_sort of libstdc++ 12.
    $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
    $<$<BOOL:${ATTN_WERROR}>:-Werror>)
  attn_sanitize(${target})
endfunction()

if(ATTN_SANITIZE)
  set(attn_sanitizer -fsanitize=${ATTN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()
function(attn_sanitize target)
  if(ATTN_SANITIZE)
    target_compile_options(${target} PRIVATE ${attn_sanitizer} -UNDEBUG -O1 -g1)
    target_link_options(${target} PUBLIC -fsanitize=${ATTN_SANITIZE})
  endif()
endfunction()

# Optimized in every build type: an inline function of a header that is not inlined would become a symbol that the
# linker uses for all callers (tools/check-symbols.mjs).
function(attn_add_kernels target source arch)
  add_library(${target} OBJECT ${PROJECT_SOURCE_DIR}/src/attn/kernels/${source})
  attn_compile_options(${target})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
  target_compile_definitions(${target} PRIVATE ATTN_ARCH=${arch})
  if(ATTN_SANITIZE)
    target_compile_options(${target} PRIVATE -O2)
  endif()
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>:-O2> ${ARGN})
  if(TARGET xsimd)
    target_link_libraries(${target} PRIVATE xsimd)
  endif()
endfunction()

# Every processor supports the first; kernels/dispatch.cpp chooses.
if(EMSCRIPTEN)
  set(attn_architectures wasm)
else()
  set(attn_processors other)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(attn_processors x86_64)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    list(APPEND attn_processors aarch64)
  endif()
  set(attn_table ${PROJECT_SOURCE_DIR}/src/attn/kernels/architectures.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${attn_table})
  set(attn_row "^ATTN_([A-Z0-9]+)\\(([a-z0-9_]+), ([a-z0-9_]+), \"([^\"]*)\"")
  file(STRINGS ${attn_table} attn_rows REGEX "${attn_row}")
  foreach(row IN LISTS attn_rows)
    string(REGEX MATCH "${attn_row}" match "${row}")
    set(arch ${CMAKE_MATCH_2})
    set(attn_row_${arch} "${row}")
    separate_arguments(ATTN_FLAGS_${arch} UNIX_COMMAND "${CMAKE_MATCH_4}")
    if(CMAKE_MATCH_3 IN_LIST attn_processors)
      list(APPEND attn_architectures ${arch})
    endif()
    if(row MATCHES "^ATTN_INT8.*, ([a-z0-9_]+)\\)$")
      list(PREPEND ATTN_FLAGS_${arch} ${ATTN_FLAGS_${CMAKE_MATCH_1}})
    endif()
  endforeach()
endif()
set(ATTN_MAX_ARCH "" CACHE STRING "The last kernels to compile of ${attn_architectures}: a smaller library; empty: all")
if(ATTN_MAX_ARCH)
  list(FIND attn_architectures "${ATTN_MAX_ARCH}" attn_last)
  if(attn_last LESS 0)
    message(FATAL_ERROR "ATTN_MAX_ARCH is '${ATTN_MAX_ARCH}', expected nothing or one of ${attn_architectures}")
  endif()
  math(EXPR attn_last "${attn_last} + 1")
  list(SUBLIST attn_architectures 0 ${attn_last} attn_architectures)
endif()
# Instrumented kernels take minutes: sanitizers get the first architecture and this machine's, ThreadSanitizer the
# first.
if(ATTN_SANITIZE AND "sse4_2" IN_LIST attn_architectures)
  set(attn_architectures sse4_2)
  if(EXISTS /proc/cpuinfo AND NOT ATTN_SANITIZE MATCHES thread)
    file(STRINGS /proc/cpuinfo flags REGEX "^flags" LIMIT_COUNT 1)
    if(flags MATCHES " avx512bw ")
      list(APPEND attn_architectures avx512f avx512_vnni)
    else()
      list(APPEND attn_architectures avx2_fma avx_vnni)
    endif()
  endif()
endif()
if(ATTN_EMULATED)
  list(PREPEND attn_architectures emulated)
endif()
if(NOT EMSCRIPTEN)
  foreach(arch IN LISTS attn_architectures)
    string(APPEND attn_included "${attn_row_${arch}}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/kernels/architectures.inc
    CONTENT "${attn_included}#undef ATTN_KERNELS\n#undef ATTN_INT8\n" @ONLY)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/attn/kernels/dispatch.cpp ${PROJECT_SOURCE_DIR}/src/attn/kernels/dispatch_backward.cpp
    PROPERTIES INCLUDE_DIRECTORIES ${PROJECT_BINARY_DIR}/kernels)
endif()

function(attn_kernel_objects variable)
  add_custom_target(attn_kernels)
  foreach(arch IN LISTS attn_architectures)
    set(flags ${ATTN_FLAGS_${arch}})
    if(arch MATCHES "^avx512")
      list(APPEND flags $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>)
    endif()
    if(attn_row_${arch} MATCHES "^ATTN_INT8")
      attn_add_kernels(attn_kernels_${arch} int8_dot.cpp ${arch} ${flags})
    else()
      attn_add_kernels(attn_kernels_${arch} kernels.cpp ${arch} ${flags})
      target_sources(attn_kernels_${arch} PRIVATE ${PROJECT_SOURCE_DIR}/src/attn/kernels/backward.cpp)
    endif()
    add_dependencies(attn_kernels attn_kernels_${arch})
    list(APPEND objects $<TARGET_OBJECTS:attn_kernels_${arch}>)
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
