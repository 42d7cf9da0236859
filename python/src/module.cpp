#include <nanobind/nanobind.h>

#include "errors.hpp"
#include "layers.hpp"
#include "options.hpp"
#include "running.hpp"

NB_MODULE(_attn, module) {
  using namespace attn::python;
  translate_errors();
  watch_process();
  module.def("set_num_threads", &set_num_threads, nb::arg("count"),
             R"(Threads of each call, unless the call, model or layer says otherwise. Default 1; 0: one per core.

The number changes speed only, never a bit of a result. Threads start with the first call that uses them, and after a fork() anew.)");
  module.def("get_num_threads", &get_num_threads, "What set_num_threads() says.");
  define_masks(module);
  define_attention(module);
  define_functions(module);
  define_multi_head_attention(module);
  define_encoders(module);
  define_text_model(module);
  define_safetensors(module);
}
