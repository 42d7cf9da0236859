# ccache where it is found, unless a launcher was named (-DCMAKE_CXX_COMPILER_LAUNCHER= means none). It sees paths relative to
# the folder of the project, so that what one clone compiled serves every other.
find_program(ATTN_CCACHE ccache NO_CMAKE_FIND_ROOT_PATH DOC "Keeps what was compiled; empty when it is not there")
mark_as_advanced(ATTN_CCACHE)

# attn_ccache(VARIABLE [NAME=VALUE...]): the words before a compiler that make ccache call it; none without ccache.
function(attn_ccache variable)
  set(${variable} "" PARENT_SCOPE)
  if(ATTN_CCACHE)
    set(${variable} ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${ATTN_CCACHE_ROOT} CCACHE_NOHASHDIR=1
      # What ccache asks for with precompiled headers. Not the ages of what is included: a header that changes while it is
      # compiled would be kept under its new content.
      CCACHE_SLOPPINESS=pch_defines,time_macros
      ${ARGN} ${ATTN_CCACHE} PARENT_SCOPE)
  endif()
endfunction()
get_filename_component(ATTN_CCACHE_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
