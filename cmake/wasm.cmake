# The WebAssembly binaries:
#
#                  simd                      relaxed                       glue
#   single thread  attn-simd.wasm            attn-relaxed.wasm             attn.mjs
#   threads        attn-simd-threads.wasm    attn-relaxed-threads.wasm     attn-threads.mjs, attn-threads-node.mjs
#
# simd and relaxed differ in kernels.cpp only, so the other objects are shared and one glue file serves both; that the
# two links really made the same glue is checked. And all of it once more as attn-train-*, with gradients, losses and optimisers, for who
# trains: the others have not a byte of that.

set(ATTN_WASM_CHECKS "" CACHE STRING "Empty for the release binaries; debug or asan for one checked binary, which is for training")
find_program(ATTN_NODE NAMES node REQUIRED NO_CMAKE_FIND_ROOT_PATH)

set(attn_compile_all
  # Exceptions as the engines' own instructions: the JavaScript kind costs a call for every call that may throw.
  -fwasm-exceptions
  # xsimd's batches are v128 values; without this its wasm architecture does not exist.
  -msimd128
  # Every engine with SIMD and exceptions has it: without, each number from JavaScript is looked at before it becomes a whole one.
  -mnontrapping-fptoint
  # The kernels' tables are chosen when the module starts; no other static has anything to do with threads.
  -fno-threadsafe-statics
  # Types by address: nothing asks for their names, which would be in the binary.
  -fno-rtti -DEMSCRIPTEN_HAS_UNBOUND_TYPE_NAMES=0)
set(attn_embind_unused ${PROJECT_SOURCE_DIR}/cmake/embind-unused.js)
set(attn_link_all
  -fwasm-exceptions
  # Of Embind's library the half that goes with it.
  -fno-rtti
  # Functions and classes for JavaScript are declared in C++ (src/bindings).
  -lembind
  # Without what Embind has that no binding uses.
  --js-library ${attn_embind_unused}
  # The glue is an ES module whose default export makes an instance.
  -sMODULARIZE -sEXPORT_ES6
  # No new Function(), no eval(): pages forbid them with script-src 'self' 'wasm-unsafe-eval'.
  -sDYNAMIC_EXECUTION=0
  # The default of 64 KB overflows silently, into the data below it.
  -sSTACK_SIZE=1MB
  # Little at first, so that a small page stays small; grows as tensors come.
  -sINITIAL_MEMORY=2MB -sALLOW_MEMORY_GROWTH
  # The caller makes the memory, and so sets the limit: a shared one reserves its maximum where it is made.
  -sIMPORTED_MEMORY
  # malloc returns null when memory ends: the library turns that into a MEMORY error and goes on.
  -sABORTING_MALLOC=0
  # No files: bytes come in as typed arrays.
  -sFILESYSTEM=0
  # What web/lib reads and writes tensors through, and how it puts the stack right after an error.
  -sEXPORTED_RUNTIME_METHODS=wasmMemory,HEAPU8,HEAP32,HEAPU32,HEAPF32,stackSave,stackRestore)
set(attn_compile_threads -pthread)
set(attn_link_threads
  -pthread
  # All workers exist before the first call: one that is made later starts only when the caller returns to its event loop.
  "-sPTHREAD_POOL_SIZE=Module[\"threads\"]-1"
  # A thread beyond those is an error, instead of a wait that never ends.
  -sPTHREAD_POOL_SIZE_STRICT=2
  # Growing shared memory makes the glue look for it at each access; tensors are copied in bulk, so that is little.
  -Wno-pthreads-mem-growth)
# Without `node`, whose glue imports modules that bundlers stumble over. Node gets the same glue, and the bytes from web/lib.
set(attn_link_web -sENVIRONMENT=web,worker)
# Worker URLs pass through a policy, for pages with require-trusted-types-for 'script'.
set(attn_link_web_threads ${attn_link_web} -sTRUSTED_TYPES)
# Node has no global Worker: its threads take glue of their own, for the same .wasm.
set(attn_link_node_threads -sENVIRONMENT=node)

# Link-time optimization makes the binaries a tenth smaller and takes minutes, so only a release has it. The kernels do without: their register
# allocation was checked with each compiled by itself.
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
  set(attn_kinds "" -train)
  list(APPEND attn_link_all
    $<IF:$<BOOL:${ATTN_WASM_RELEASE}>,-O3,-O1>
    # Half the size of dlmalloc, and as fast for the few allocations of a call.
    -sMALLOC=emmalloc
    # Addresses up to 4 GB; the memory that the caller makes may have less.
    -sMAXIMUM_MEMORY=4GB
    # The overrides that web/lib gives; support for the others is left out of the glue.
    -sINCOMING_MODULE_JS_API=wasmMemory,instantiateWasm)
else()
  set(attn_models single)
  set(attn_variants simd)
  set(attn_kinds -train)
  # These run in Node only, and ASSERTIONS refuse an environment that was not named.
  set(attn_link_web -sENVIRONMENT=web,worker,node)
  # Stack traces keep the functions' names.
  list(APPEND attn_link_all -O1 --profiling-funcs)
  if(ATTN_WASM_CHECKS STREQUAL "debug")
    list(APPEND attn_link_all -sMAXIMUM_MEMORY=4GB
      # Every load and store is checked for null, alignment and bounds; Embind and the runtime check themselves; so does the stack. All of it
      # is added by the linker, so the objects are those of the preset wasm, and ccache has them.
      -sSAFE_HEAP=1 -sASSERTIONS=2 -sSTACK_OVERFLOW_CHECK=2 -sMALLOC=emmalloc
      -sINCOMING_MODULE_JS_API=wasmMemory,instantiateWasm,print,printErr)
  elseif(ATTN_WASM_CHECKS STREQUAL "asan")
    list(APPEND attn_compile_all -fsanitize=address)
    list(APPEND attn_link_all -fsanitize=address
      # An eighth of the maximum is shadow memory from the start, so this one makes its memory itself, whatever the caller offers.
      -sMAXIMUM_MEMORY=1GB -sINITIAL_MEMORY=192MB
      -sINCOMING_MODULE_JS_API=instantiateWasm,print,printErr)
  else()
    message(FATAL_ERROR "ATTN_WASM_CHECKS is '${ATTN_WASM_CHECKS}', expected nothing, debug or asan")
  endif()
endif()

set(attn_bindings ${PROJECT_SOURCE_DIR}/src/bindings)
set(ATTN_BINDINGS attention embedding encoder_forward errors heap libc multi_head_attention ops positions runtime safetensors score_functions
  signature tensors text_model transformer_encoder)
set(ATTN_TRAINING_BINDINGS attention_backward losses ops_backward optimizers schedules)
foreach(list ATTN_BINDINGS ATTN_TRAINING_BINDINGS)
  list(TRANSFORM ${list} REPLACE ".+" "${attn_bindings}/\\0.cpp")
endforeach()
# What ATTN_TRAINING changes: layers, what holds them, and the bindings of both. The other objects serve every binary.
set(attn_of_layers ${ATTN_SOURCES} ${ATTN_BINDINGS})
list(FILTER attn_of_layers INCLUDE REGEX "/attn/(layers|models)/|/bindings/(attention|embedding|multi_head_attention|text_model|transformer_encoder)\\.cpp")
set(attn_for_all ${ATTN_SOURCES} ${ATTN_BINDINGS})
list(REMOVE_ITEM attn_for_all ${attn_of_layers})

# attn_core(TARGET SOURCE...): all but kernels.
function(attn_core target)
  # Checked builds link only some of these libraries.
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${ARGN})
  attn_compile_options(${target})
  target_compile_definitions(${target} PRIVATE ATTN_VIEWS_ONLY)
  target_compile_definitions(${target} PRIVATE ATTN_VERSION="${PROJECT_VERSION}")
  target_compile_options(${target} PRIVATE ${compile} ${attn_compile_core}
    # The time goes into the kernels, which keep -O3; all else is an eighth smaller than with -Os.
    -Oz)
  target_include_directories(${target} SYSTEM PRIVATE ${ATTN_WASM_INCLUDE})
endfunction()
# Except these loops over numbers.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/attn/kernels/pack.cpp ${PROJECT_SOURCE_DIR}/src/attn/ops/mask_rows.cpp
  ${PROJECT_SOURCE_DIR}/src/attn/train/sgd.cpp ${PROJECT_SOURCE_DIR}/src/attn/train/clip_grad_norm.cpp
  ${PROJECT_SOURCE_DIR}/src/attn/layers/embedding_backward.cpp PROPERTIES COMPILE_OPTIONS -O3)
set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/attn/train/adam.cpp APPEND PROPERTY COMPILE_OPTIONS -O3)

# attn_wasm_kernels(TARGET SOURCE VARIANT): kernels of the model in `compile`.
function(attn_wasm_kernels target source variant)
  set(flags ${compile})
  if(variant STREQUAL relaxed)
    list(APPEND flags -mrelaxed-simd)
  endif()
  # Loops whose length is known only at run time stay as they are written: in V8 that is as fast, and a third of the kernels is gone.
  list(APPEND flags "SHELL:-mllvm -unroll-runtime=false")
  attn_add_kernels(${target} ${source} wasm ${flags})
  target_include_directories(${target} SYSTEM PRIVATE ${ATTN_WASM_INCLUDE})
endfunction()

# attn_link(TARGET NAME OBJECTS OPTIONS): links NAME.mjs and NAME.wasm into a folder of their own.
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

  attn_core(attn_core_${model} ${attn_for_all})
  attn_core(attn_layers_${model} ${attn_of_layers})
  attn_core(attn_layers_train_${model} ${attn_of_layers} ${ATTN_BACKWARD_SOURCES} ${ATTN_TRAINING_BINDINGS})
  target_compile_definitions(attn_layers_train_${model} PRIVATE ATTN_TRAINING)
  set(objects_${model} $<TARGET_OBJECTS:attn_core_${model}> $<TARGET_OBJECTS:attn_layers_${model}>)
  set(objects_${model}-train $<TARGET_OBJECTS:attn_core_${model}> $<TARGET_OBJECTS:attn_layers_train_${model}>)

  foreach(variant IN LISTS attn_variants)
    attn_wasm_kernels(attn_kernels_${variant}_${model} kernels.cpp ${variant})
    attn_wasm_kernels(attn_backward_${variant}_${model} backward.cpp ${variant})
    foreach(kind IN LISTS attn_kinds)
      string(REPLACE "-" "_" of_kind "${kind}")
      string(REGEX REPLACE "^-(.*)" "\\1-" prefix "${kind}")
      # Says in the binary which one it is: custom section "attn".
      set(named attn_variant${of_kind}_${variant}_${model})
      add_library(${named} OBJECT ${attn_bindings}/variant.cpp)
      attn_compile_options(${named})
      target_compile_options(${named} PRIVATE ${compile})
      target_compile_definitions(${named} PRIVATE ATTN_WASM_VARIANT="${prefix}${variant}${suffix}")

      set(objects ${objects_${model}${kind}} $<TARGET_OBJECTS:attn_kernels_${variant}_${model}> $<TARGET_OBJECTS:${named}>)
      if(kind STREQUAL -train)
        list(APPEND objects $<TARGET_OBJECTS:attn_backward_${variant}_${model}>)
      endif()
      set(target attn${of_kind}_${variant}_${model})
      attn_link(${target} attn${kind}${suffix} "${objects}" "${link}")
      list(APPEND attn_wasm_links ${prefix}${variant}${suffix}=${PROJECT_BINARY_DIR}/link/${target}/attn${kind}${suffix}.mjs)
      list(APPEND attn_wasm_targets ${target})
      # Node's own glue, for the same binary.
      if(model STREQUAL threads AND variant STREQUAL relaxed)
        set(target attn${of_kind}_node_threads)
        attn_link(${target} attn${kind}-threads-node "${objects}" "${attn_link_all};${attn_link_threads};${attn_link_node_threads}")
        list(APPEND attn_wasm_links ${prefix}relaxed-threads=${PROJECT_BINARY_DIR}/link/${target}/attn${kind}-threads-node.mjs)
        list(APPEND attn_wasm_targets ${target})
      endif()
    endforeach()
  endforeach()
endforeach()

# Embind's own view of the module: an internal check that src/bindings and web/lib have not drifted apart.
if(EXISTS ${PROJECT_SOURCE_DIR}/node_modules/.bin/tsc AND ATTN_WASM_CHECKS STREQUAL "")
  target_link_options(attn_simd_single PRIVATE --emit-tsd attn.d.ts)
endif()

add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/attn-train.mjs
  COMMAND ${ATTN_NODE} ${PROJECT_SOURCE_DIR}/cmake/collect-wasm.mjs ${attn_release} ${PROJECT_BINARY_DIR} ${attn_wasm_links}
  DEPENDS ${attn_wasm_targets} ${PROJECT_SOURCE_DIR}/cmake/collect-wasm.mjs
  COMMENT "Checking the glue and naming the binaries" VERBATIM)
add_custom_target(attn_wasm ALL DEPENDS ${PROJECT_BINARY_DIR}/attn-train.mjs)
if(ATTN_BUILD_BENCHMARKS)
  add_subdirectory(benchmarks/wasm)
endif()
