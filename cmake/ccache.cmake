# Relative paths let all clones share the cache.
find_program(ATTN_CCACHE ccache NO_CMAKE_FIND_ROOT_PATH DOC "Keeps what was compiled; empty when it is not there")
mark_as_advanced(ATTN_CCACHE)

function(attn_ccache variable)
  set(${variable} "" PARENT_SCOPE)
  if(ATTN_CCACHE)
    set(${variable} ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${ATTN_CCACHE_ROOT} CCACHE_NOHASHDIR=1
      # Not header times: a header changed while compiling would be cached as new.
      CCACHE_SLOPPINESS=pch_defines,time_macros
      ${ARGN} ${ATTN_CCACHE} PARENT_SCOPE)
  endif()
endfunction()
get_filename_component(ATTN_CCACHE_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
