
set(ATTN_SOURCES
  src/attn/io/json.cpp
  src/attn/io/json_events.cpp
  src/attn/io/json_text.cpp
  src/attn/io/safetensors.cpp
  src/attn/io/safetensors_header.cpp
  src/attn/io/safetensors_stream.cpp
  src/attn/io/safetensors_writer.cpp
  src/attn/kernels/dispatch.cpp
  src/attn/kernels/pack.cpp
  src/attn/layers/embedding.cpp
  src/attn/layers/gradients.cpp
  src/attn/layers/linear.cpp
  src/attn/layers/multi_head_attention.cpp
  src/attn/layers/norm.cpp
  src/attn/layers/parameter.cpp
  src/attn/layers/rotary.cpp
  src/attn/layers/state_dict.cpp
  src/attn/layers/transformer_classifier.cpp
  src/attn/layers/transformer_encoder.cpp
  src/attn/layers/transformer_encoder_layer.cpp
  src/attn/models/albert.cpp
  src/attn/models/bert.cpp
  src/attn/models/checkpoint_tensor.cpp
  src/attn/models/distilbert.cpp
  src/attn/models/deberta.cpp
  src/attn/models/electra.cpp
  src/attn/models/encoder_model.cpp
  src/attn/models/ernie.cpp
  src/attn/models/gte.cpp
  src/attn/models/head.cpp
  src/attn/models/jina_bert.cpp
  src/attn/models/model_config.cpp
  src/attn/models/model_loader.cpp
  src/attn/models/modernbert.cpp
  src/attn/models/mpnet.cpp
  src/attn/models/nomic_bert.cpp
  src/attn/models/quantization_config.cpp
  src/attn/models/roberta.cpp
  src/attn/models/sentence_config.cpp
  src/attn/ops/activation.cpp
  src/attn/ops/attention.cpp
  src/attn/ops/attention_core.cpp
  src/attn/ops/attention_inputs.cpp
  src/attn/ops/attention_plan.cpp
  src/attn/ops/cosine.cpp
  src/attn/ops/dropout.cpp
  src/attn/ops/elementary.cpp
  src/attn/ops/embedding.cpp
  src/attn/ops/init.cpp
  src/attn/ops/linear.cpp
  src/attn/ops/mask_rows.cpp
  src/attn/ops/mask_view.cpp
  src/attn/ops/norm.cpp
  src/attn/ops/pooling.cpp
  src/attn/ops/positions.cpp
  src/attn/ops/relative_scores.cpp
  src/attn/ops/score_functions.cpp
  src/attn/ops/softmax.cpp
  src/attn/parallel/thread_pool.cpp
  src/attn/store/packed_linear.cpp
  src/attn/store/panels.cpp
  src/attn/store/scratch.cpp
  src/attn/store/table.cpp
  src/attn/store/tied_linear.cpp
  src/attn/tensor/error.cpp
  src/attn/tensor/owner.cpp
  src/attn/tensor/rows.cpp
  src/attn/tensor/shape.cpp
  src/attn/tensor/state.cpp
  src/attn/tensor/text.cpp)
# Headers included by attn.hpp, which are installed; all others are private.
set(ATTN_HEADERS
  src/attn/attn.hpp
  src/attn/core.hpp
  src/attn/io/file_path.hpp
  src/attn/io/safetensors.hpp
  src/attn/kernels/activation_name.hpp
  src/attn/layers/embedding.hpp
  src/attn/layers/encoder_backward.hpp
  src/attn/layers/encoder_forward.hpp
  src/attn/layers/gradients.hpp
  src/attn/layers/linear.hpp
  src/attn/layers/module.hpp
  src/attn/layers/multi_head_attention.hpp
  src/attn/layers/norm.hpp
  src/attn/layers/parameter.hpp
  src/attn/layers/rotary.hpp
  src/attn/layers/state_dict.hpp
  src/attn/layers/transformer_classifier.hpp
  src/attn/layers/transformer_encoder.hpp
  src/attn/layers/transformer_encoder_layer.hpp
  src/attn/ops/activation.hpp
  src/attn/ops/attention.hpp
  src/attn/ops/attention_plan.hpp
  src/attn/ops/attention_trace.hpp
  src/attn/ops/dropout.hpp
  src/attn/ops/elementary.hpp
  src/attn/ops/fully_masked.hpp
  src/attn/ops/init.hpp
  src/attn/ops/linear.hpp
  src/attn/ops/mask.hpp
  src/attn/ops/mask_view.hpp
  src/attn/ops/norm.hpp
  src/attn/ops/pooling.hpp
  src/attn/ops/positions.hpp
  src/attn/ops/score_functions.hpp
  src/attn/ops/softmax.hpp
  src/attn/ops/trace.hpp
  src/attn/parallel/thread_pool.hpp
  src/attn/store/packed_linear.hpp
  src/attn/store/panels.hpp
  src/attn/store/scratch.hpp
  src/attn/store/table.hpp
  src/attn/tensor/aligned.hpp
  src/attn/tensor/error.hpp
  src/attn/tensor/owner.hpp
  src/attn/tensor/results.hpp
  src/attn/tensor/rows.hpp
  src/attn/tensor/shape.hpp
  src/attn/tensor/state.hpp
  src/attn/tensor/tensor.hpp
  src/attn/tensor/text.hpp
  src/attn/tensor/view.hpp)
set(ATTN_BACKWARD_SOURCES
  src/attn/kernels/dispatch_backward.cpp
  src/attn/layers/embedding_backward.cpp
  src/attn/layers/kept.cpp
  src/attn/layers/linear_backward.cpp
  src/attn/layers/multi_head_attention_backward.cpp
  src/attn/layers/norm_backward.cpp
  src/attn/layers/rotary_backward.cpp
  src/attn/layers/rows_with_gradient.cpp
  src/attn/layers/transformer_classifier_backward.cpp
  src/attn/layers/transformer_encoder_backward.cpp
  src/attn/layers/transformer_encoder_layer_backward.cpp
  src/attn/models/attribution.cpp
  src/attn/models/encoder_model_backward.cpp
  src/attn/models/encoder_model_head.cpp
  src/attn/models/fine_tuning.cpp
  src/attn/models/head_backward.cpp
  src/attn/models/model_gradient.cpp
  src/attn/ops/activation_backward.cpp
  src/attn/ops/attention_backward.cpp
  src/attn/ops/attention_backward_core.cpp
  src/attn/ops/embedding_backward.cpp
  src/attn/ops/linear_backward.cpp
  src/attn/ops/losses.cpp
  src/attn/ops/norm_backward.cpp
  src/attn/ops/pooling_backward.cpp
  src/attn/ops/row_sums.cpp
  src/attn/ops/score_functions_backward.cpp
  src/attn/ops/softmax_backward.cpp
  src/attn/ops/tree_sum.cpp
  src/attn/train/adam.cpp
  src/attn/train/clip_grad_norm.cpp
  src/attn/train/module_ref.cpp
  src/attn/train/optimizer.cpp
  src/attn/train/schedules.cpp
  src/attn/train/sgd.cpp)
# Allows vectorized square roots: errno is not used.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/attn/train/adam.cpp PROPERTIES COMPILE_OPTIONS -fno-math-errno)
set(ATTN_BACKWARD_HEADERS
  src/attn/models/attribution.hpp
  src/attn/models/model_gradient.hpp
  src/attn/ops/activation_backward.hpp
  src/attn/ops/attention_backward.hpp
  src/attn/ops/linear_backward.hpp
  src/attn/ops/losses.hpp
  src/attn/ops/norm_backward.hpp
  src/attn/ops/rotary_backward.hpp
  src/attn/ops/score_functions_backward.hpp
  src/attn/ops/softmax_backward.hpp
  src/attn/train/adam.hpp
  src/attn/train/clip_grad_norm.hpp
  src/attn/train/module_ref.hpp
  src/attn/train/optimizer.hpp
  src/attn/train/schedules.hpp
  src/attn/train/sgd.hpp)
# Native only: contexts, large pages, and the tokenizer, which the package has in TypeScript.
if(NOT EMSCRIPTEN)
  list(APPEND ATTN_SOURCES ${ATTN_BACKWARD_SOURCES})
  list(APPEND ATTN_HEADERS ${ATTN_BACKWARD_HEADERS})
  list(APPEND ATTN_SOURCES
    src/attn/context.cpp
    src/attn/io/files.cpp
    src/attn/io/safetensors_file.cpp
    src/attn/io/tokenizer.cpp
    src/attn/io/tokenizer/added_tokens.cpp
    src/attn/io/tokenizer/bpe.cpp
    src/attn/io/tokenizer/budget.cpp
    src/attn/io/tokenizer/decoders.cpp
    src/attn/io/tokenizer/early_end.cpp
    src/attn/io/tokenizer/model.cpp
    src/attn/io/tokenizer/normalizers.cpp
    src/attn/io/tokenizer/other_tokens.cpp
    src/attn/io/tokenizer/patterns.cpp
    src/attn/io/tokenizer/post_processor.cpp
    src/attn/io/tokenizer/pre_tokenizers.cpp
    src/attn/io/tokenizer/precompiled.cpp
    src/attn/io/tokenizer/sequences.cpp
    src/attn/io/tokenizer/schema.cpp
    src/attn/io/tokenizer/tokenizer_file.cpp
    src/attn/io/tokenizer/trie.cpp
    src/attn/io/tokenizer/unicode.cpp
    src/attn/io/tokenizer/unigram.cpp
    src/attn/io/tokenizer/vocabulary.cpp
    src/attn/io/tokenizer/word_level.cpp
    src/attn/io/tokenizer/word_piece.cpp
    src/attn/models/answers.cpp
    src/attn/models/entities.cpp
    src/attn/models/model_writer.cpp
    src/attn/models/text_model.cpp
    src/attn/models/text_tasks.cpp
    src/attn/parallel/executor.cpp
    src/attn/parallel/lists.cpp
    src/attn/tensor/float_environment.cpp
    src/attn/tensor/large_pages.cpp)
  list(APPEND ATTN_HEADERS src/attn/context.hpp src/attn/io/old_token_files.hpp src/attn/io/side.hpp src/attn/io/tokenizer.hpp src/attn/models/task.hpp src/attn/models/text_model.hpp
    src/attn/models/text_tasks.hpp src/attn/parallel/executor.hpp
    src/attn/tensor/large_pages.hpp)
endif()
# These files have functions of the same names, so they cannot share a unity file.
foreach(part IN ITEMS decoders model normalizers post_processor pre_tokenizers tokenizer_file)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/attn/io/tokenizer/${part}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()
list(TRANSFORM ATTN_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM ATTN_BACKWARD_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/)
list(TRANSFORM ATTN_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/)

# attn_compile_options(TARGET): options for the library and its programs. The library itself is also compiled with
# ATTN_VIEWS_ONLY: xtensor is used only in headers, which users compile with their own configuration.
function(attn_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${target} PRIVATE
    # attn computes with infinities and NaN, even if the including project enables fast math. kernels.hpp checks it.
    -fno-fast-math
    # No fusing of a·b + c: the same source must give the same bits everywhere.
    -ffp-contract=off
    # Reproducible builds: no local paths in assertions and debug information.
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

# attn_add_kernels(TARGET SOURCE ARCH FLAG...): compiles a kernel source for one architecture. Inline functions of
# other headers must be inlined, hence optimized in every build type: the linker could use their symbols for all
# callers (tools/check-symbols.mjs).
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

# kernels/dispatch.cpp chooses an architecture at run time. Every processor supports the first one.
if(EMSCRIPTEN)
  set(attn_architectures wasm)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(attn_architectures sse4_2 avx2_fma avx_vnni avx512f avx512_vnni)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(attn_architectures default_arch neon_dotprod)
else()
  set(attn_architectures default_arch)
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
# Instrumented kernels take minutes to compile: sanitizers get the first architecture and this machine's,
# ThreadSanitizer only the first.
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
  list(APPEND attn_architectures emulated)
endif()
set(ATTN_FLAGS_sse4_2 -msse4.2)
set(ATTN_FLAGS_avx2_fma -mavx2 -mfma)
set(ATTN_FLAGS_avx_vnni ${ATTN_FLAGS_avx2_fma} -mavxvnni)
set(ATTN_FLAGS_avx512f -mavx512f -mavx512cd -mavx512dq -mavx512bw -mavx2 -mfma
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>)
set(ATTN_FLAGS_avx512_vnni ${ATTN_FLAGS_avx512f} -mavx512vnni)
set(ATTN_FLAGS_neon_dotprod -march=armv8.2-a+dotprod)
list(TRANSFORM attn_architectures TOUPPER OUTPUT_VARIABLE ATTN_KERNEL_DEFINITIONS)
list(TRANSFORM ATTN_KERNEL_DEFINITIONS PREPEND ATTN_HAVE_)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/attn/kernels/dispatch.cpp ${PROJECT_SOURCE_DIR}/src/attn/kernels/dispatch_backward.cpp
  PROPERTIES COMPILE_DEFINITIONS "${ATTN_KERNEL_DEFINITIONS}")
# xsimd's target enables xtl's complex numbers, with which its emulated batches (13.2) do not compile.
set(ATTN_FLAGS_emulated -DXSIMD_WITH_EMULATED=1 -UXSIMD_ENABLE_XTL_COMPLEX)

function(attn_kernel_objects variable)
  add_custom_target(attn_kernels)
  foreach(arch IN LISTS attn_architectures)
    set(source kernels.cpp)
    if(arch MATCHES "_(vnni|dotprod)$")
      set(source int8_dot.cpp)
    endif()
    attn_add_kernels(attn_kernels_${arch} ${source} ${arch} ${ATTN_FLAGS_${arch}})
    if(source STREQUAL kernels.cpp)
      target_sources(attn_kernels_${arch} PRIVATE ${PROJECT_SOURCE_DIR}/src/attn/kernels/backward.cpp)
    endif()
    add_dependencies(attn_kernels attn_kernels_${arch})
    list(APPEND objects $<TARGET_OBJECTS:attn_kernels_${arch}>)
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()
