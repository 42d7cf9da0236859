# simd and relaxed differ only in kernels.cpp and backward.cpp and share the glue, which is compared: attn.mjs; with
# threads attn-threads.mjs and attn-threads-node.mjs.

set(ATTN_WASM_CHECKS "" CACHE STRING "Empty for the release binaries; debug or asan for one checked binary")
find_program(ATTN_NODE NAMES node REQUIRED NO_CMAKE_FIND_ROOT_PATH)

set(attn_compile_all
  # JavaScript exceptions slow down every call that may throw.
  -fwasm-exceptions
  -msimd128
  # Otherwise each conversion to an integer is checked.
  -mnontrapping-fptoint
  # Threads share only the kernel table, initialised at start.
  -fno-threadsafe-statics
  -fno-rtti -DEMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)
set(attn_embind_unused ${PROJECT_SOURCE_DIR}/cmake/embind-unused.js)
set(attn_link_all
  -fwasm-exceptions
  -fno-rtti
  -lembind
  --js-library ${attn_embind_unused}
  -sMODULARIZE -sEXPORT_ES6
  # For pages with CSP script-src 'self' 'wasm-unsafe-eval'.
  -sDYNAMIC_EXECUTION=0
  # The default of 64 KB overflows silently into data.
  -sSTACK_SIZE=1MB
  -sINITIAL_MEMORY=2MB -sALLOW_MEMORY_GROWTH
  # The caller sets the limit: shared memory reserves its maximum.
  -sIMPORTED_MEMORY
  -sABORTING_MALLOC=0
  -sFILESYSTEM=0
  -sEXPORTED_RUNTIME_METHODS=wasmMemory,HEAPU8,HEAP32,HEAPU32,HEAPF32,stackSave,stackRestore)
set(attn_compile_threads -pthread)
set(attn_link_threads
  -pthread
  # A worker created later starts only when the caller returns to its event loop.
  "-sPTHREAD_POOL_SIZE=Module[\"threads\"]-1"
  -sPTHREAD_POOL_SIZE_STRICT=2
  # The warning is about slow access from JavaScript, but tensors are copied in bulk.
  -Wno-pthreads-mem-growth)
# `node` glue imports modules that bundlers cannot resolve; Node uses this glue with bytes.
set(attn_link_web -sENVIRONMENT=web,worker)
# For pages with require-trusted-types-for 'script'.
set(attn_link_web_threads ${attn_link_web} -sTRUSTED_TYPES)
# Node has no global Worker.
set(attn_link_node_threads -sENVIRONMENT=node)

# LTO saves a tenth of the size but takes minutes. Not for kernels, whose register allocation was checked per file.
option(ATTN_WASM_RELEASE "Everything that is published: with threads, optimized when linked; without, what a demo needs, in a fraction of the time" ON)
if(ATTN_WASM_RELEASE AND ATTN_WASM_CHECKS STREQUAL "")
  set(attn_compile_core -flto)
endif()
if(ATTN_WASM_CHECKS STREQUAL "")
  set(attn_release --release)
  set(attn_models single)
  if(ATTN_WASM_RELEASE)
    list(APPEND attn_models threads)
  endif()
  set(attn_variants simd relaxed)
  list(APPEND attn_link_all
    $<IF:$<BOOL:${ATTN_WASM_RELEASE}>,-O3,-O1>
    # Half of dlmalloc's size, as fast for a call's few allocations.
    -sMALLOC=emmalloc
    -sMAXIMUM_MEMORY=4GB
    -sINCOMING_MODULE_JS_API=wasmMemory,instantiateWasm)
  if(ATTN_WASM_RELEASE)
    # Inlines only for clearly smaller code.
    list(APPEND attn_link_all -Wl,-mllvm,-inline-threshold=-50)
  endif()
else()
  set(attn_models single)
  set(attn_variants simd)
  # ASSERTIONS refuse an unlisted environment.
  set(attn_link_web -sENVIRONMENT=web,worker,node)
  list(APPEND attn_link_all -O1 --profiling-funcs)
  if(ATTN_WASM_CHECKS STREQUAL "debug")
    list(APPEND attn_link_all -sMAXIMUM_MEMORY=4GB
      # The linker adds all checks, so the objects are those of the preset wasm.
      -sSAFE_HEAP=1 -sASSERTIONS=2 -sSTACK_OVERFLOW_CHECK=2 -sMALLOC=emmalloc
      -sINCOMING_MODULE_JS_API=wasmMemory,instantiateWasm,print,printErr)
  elseif(ATTN_WASM_CHECKS STREQUAL "asan")
    list(APPEND attn_compile_all -fsanitize=address)
    list(APPEND attn_link_all -fsanitize=address
      # Shadow memory takes an eighth of the maximum, so this build creates its own memory; with quarantine, a suite of
      # all models needs more than 1 GB.
      -sMAXIMUM_MEMORY=2GB -sINITIAL_MEMORY=320MB
      -sINCOMING_MODULE_JS_API=instantiateWasm,print,printErr)
  else()
    message(FATAL_ERROR "ATTN_WASM_CHECKS is '${ATTN_WASM_CHECKS}', expected nothing, debug or asan")
  endif()
endif()

set(attn_bindings ${PROJECT_SOURCE_DIR}/src/bindings)
file(GLOB ATTN_BINDINGS CONFIGURE_DEPENDS ${attn_bindings}/[a-z]*.cpp)
list(REMOVE_ITEM ATTN_BINDINGS ${attn_bindings}/variant.cpp)

function(attn_core target)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${ATTN_SOURCES} ${ATTN_BINDINGS})
  attn_compile_options(${target})
  target_compile_definitions(${target} PRIVATE ATTN_VIEWS_ONLY)
  target_compile_definitions(${target} PRIVATE ATTN_VERSION="${PROJECT_VERSION}")
  target_compile_options(${target} PRIVATE ${compile} ${attn_compile_core}
    # An eighth smaller than -Os.
    -Oz)
  target_include_directories(${target} SYSTEM PRIVATE ${ATTN_WASM_INCLUDE})
endfunction()
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/attn/kernels/pack.cpp ${PROJECT_SOURCE_DIR}/src/attn/ops/mask_rows.cpp
  ${PROJECT_SOURCE_DIR}/src/attn/train/sgd.cpp ${PROJECT_SOURCE_DIR}/src/attn/train/clip_grad_norm.cpp
  ${PROJECT_SOURCE_DIR}/src/attn/layers/embedding_layer_backward.cpp PROPERTIES COMPILE_OPTIONS -O3)
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/attn/train/adam.cpp APPEND PROPERTY COMPILE_OPTIONS -O3)

function(attn_wasm_kernels target variant)
  set(flags ${compile})
  if(variant STREQUAL relaxed)
    list(APPEND flags -mrelaxed-simd)
  endif()
  # As fast in V8, and kernels are a third smaller.
  list(APPEND flags "SHELL:-mllvm -unroll-runtime=false")
  attn_add_kernels(${target} kernels.cpp wasm ${flags})
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/attn/kernels/backward.cpp)
  target_include_directories(${target} SYSTEM PRIVATE ${ATTN_WASM_INCLUDE})
endfunction()

function(attn_link target name objects options)
  add_executable(${target} ${objects})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX .mjs LINK_DEPENDS ${attn_embind_unused}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/link/${target})
  target_link_options(${target} PRIVATE ${options})
endfunction()

foreach(model IN LISTS attn_models)
  if(model STREQUAL single)
    set(compile ${attn_compile_all})
    set(link ${attn_link_all} ${attn_link_web})
    set(suffix "")
  else()
    set(compile ${attn_compile_all} ${attn_compile_threads})
    set(link ${attn_link_all} ${attn_link_threads} ${attn_link_web_threads})
    set(suffix -threads)
  endif()

  attn_core(attn_core_${model})
  foreach(variant IN LISTS attn_variants)
    attn_wasm_kernels(attn_kernels_${variant}_${model} ${variant})
    set(named attn_variant_${variant}_${model})
    add_library(${named} OBJECT ${attn_bindings}/variant.cpp)
    attn_compile_options(${named})
    target_compile_options(${named} PRIVATE ${compile})
    target_compile_definitions(${named} PRIVATE ATTN_WASM_VARIANT="${variant}${suffix}")

    set(objects $<TARGET_OBJECTS:attn_core_${model}> $<TARGET_OBJECTS:attn_kernels_${variant}_${model}> $<TARGET_OBJECTS:${named}>)
    set(target attn_${variant}_${model})
    attn_link(${target} attn${suffix} "${objects}" "${link}")
    list(APPEND attn_wasm_links ${variant}${suffix}=${PROJECT_BINARY_DIR}/link/${target}/attn${suffix}.mjs)
    list(APPEND attn_wasm_targets ${target})
    if(model STREQUAL threads AND variant STREQUAL relaxed)
      set(target attn_node_threads)
      attn_link(${target} attn-threads-node "${objects}" "${attn_link_all};${attn_link_threads};${attn_link_node_threads}")
      list(APPEND attn_wasm_links relaxed-threads=${PROJECT_BINARY_DIR}/link/${target}/attn-threads-node.mjs)
      list(APPEND attn_wasm_targets ${target})
    endif()
  endforeach()
endforeach()

if(EXISTS ${PROJECT_SOURCE_DIR}/node_modules/.bin/tsc AND ATTN_WASM_CHECKS STREQUAL "")
  target_link_options(attn_simd_single PRIVATE --emit-tsd attn.d.ts)
endif()

add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/attn.mjs
  COMMAND ${ATTN_NODE} ${PROJECT_SOURCE_DIR}/cmake/collect-wasm.mjs ${attn_release} ${PROJECT_BINARY_DIR} ${attn_wasm_links}
  DEPENDS ${attn_wasm_targets} ${PROJECT_SOURCE_DIR}/cmake/collect-wasm.mjs
  COMMENT "Checking the glue and naming the binaries" VERBATIM)
add_custom_target(attn_wasm ALL DEPENDS ${PROJECT_BINARY_DIR}/attn.mjs)
if(ATTN_BUILD_BENCHMARKS)
  add_subdirectory(benchmarks/wasm)
endif()
