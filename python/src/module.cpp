#include <nanobind/nanobind.h>

#include "embedding.hpp"
#include "errors.hpp"
#include "layers.hpp"
#include "lens.hpp"
#include "options.hpp"
#include "running.hpp"

NB_MODULE(_attn, module) {
  using namespace attn::python;
  module.attr("__version__") = ATTN_VERSION;
  translate_errors();
  watch_process();
  module.def("set_num_threads", &set_num_threads, nb::arg("count"),
             R"(Sets the number of threads of calls, models and layers that set none themselves.

The number changes the speed only, no bit of a result. Threads start with the first call that uses them; a child of fork() starts its own.

count: 1 at first; 0 for one per core.

Raises ConfigError above 4095.

>>> attn.set_num_threads(1))");
  module.def("get_num_threads", &get_num_threads, R"(Returns the number of threads that set_num_threads() has set; for 0, the number of cores.

>>> attn.get_num_threads()
1)");
  define_masks(module);
  define_attention(module);
  define_functions(module);
  define_multi_head_attention(module);
  define_encoders(module);
  define_embedding(module);
  define_tokenizer(module);
  define_text_model(module);
  define_image_model(module);
  define_lens(module);
  define_safetensors(module);
}
