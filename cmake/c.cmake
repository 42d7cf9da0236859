add_library(attn_c SHARED
  src/c/attention.cpp
  src/c/handles.cpp
  src/c/lens.cpp
  src/c/process.cpp
  src/c/tensors.cpp
  src/c/text_generation.cpp
  src/c/text_model.cpp)
add_library(attn::c ALIAS attn_c)
attn_compile_options(attn_c)
target_include_directories(attn_c PRIVATE src INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_compile_definitions(attn_c PRIVATE ATTN_VIEWS_ONLY ATTN_VERSION="${PROJECT_VERSION}")
target_link_libraries(attn_c PRIVATE attn nlohmann_json::nlohmann_json)
set_target_properties(attn_c PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
if(APPLE)
  target_link_options(attn_c PRIVATE -Wl,-exported_symbol,_attn_*)
else()
  set(map ${PROJECT_SOURCE_DIR}/src/c/libattn_c.map)
  target_link_options(attn_c PRIVATE -Wl,--version-script=${map} -Wl,--no-undefined)
  set_target_properties(attn_c PROPERTIES LINK_DEPENDS ${map})
endif()
