#include "c/handles.hpp"

using attn::c::guarded;

extern "C" {

const char* attn_version(void) { return ATTN_VERSION; }

attn_status attn_arch(const char** name, attn_error** error) {
  return guarded(error, [&] {
    attn::c::check_pointer("arch", name, "name");
    *name = attn::Context::arch().data();  // a null-terminated literal
  });
}

attn_status attn_set_num_threads(unsigned count, attn_error** error) {
  return guarded(error, [&] { attn::set_num_threads(count); });
}

unsigned attn_num_threads(void) { return attn::num_threads(); }

void attn_set_memory_limit(uint64_t bytes) { attn::set_memory_limit(bytes); }

}  // extern "C"
