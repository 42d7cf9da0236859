# Toolchain of the preset native-arm64.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
find_program(attn_arm64_compiler ${CMAKE_LIBRARY_ARCHITECTURE}-g++ NO_CACHE)
find_program(attn_qemu qemu-aarch64 NO_CACHE)
get_filename_component(attn_arm64_libraries ${CMAKE_CURRENT_LIST_DIR}/../.setup/arm64 ABSOLUTE)
if(NOT attn_arm64_compiler OR NOT attn_qemu OR NOT EXISTS ${attn_arm64_libraries})
  message(FATAL_ERROR "attn for arm64 needs ${CMAKE_LIBRARY_ARCHITECTURE}-g++, qemu-aarch64 and libraries: tools/setup arm.")
endif()
set(CMAKE_CXX_COMPILER ${attn_arm64_compiler})
set(CMAKE_CROSSCOMPILING_EMULATOR ${attn_qemu} -L /usr/${CMAKE_LIBRARY_ARCHITECTURE})

# Header-only packages come from this machine, after the target's libraries.
set(CMAKE_FIND_ROOT_PATH ${attn_arm64_libraries} /usr/${CMAKE_LIBRARY_ARCHITECTURE})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
