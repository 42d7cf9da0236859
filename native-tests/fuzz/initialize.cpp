#include "attn/tensor/shape.hpp"
#include "fuzz.hpp"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  attn::set_memory_limit(attn::fuzz::kMemoryLimit);
  return 0;
}
