#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "array.hpp"
#include "text_generation.hpp"

// attn/_sentences.py computes these.
namespace attn::python {
namespace {

using Model = Shared<TextModel>;
using Self = nb::handle_t<Model>;

nb::object function(const char* name) { return nb::module_::import_("attn._sentences").attr(name); }

constexpr const char* kEncode =
    R"(Computes a vector for a text, or one for each of several texts, as SentenceTransformer.encode does: embed() by the names of sentence-transformers.

texts: a text or a list of texts.
batch_size: texts per batch; it does not change any bit.
prompt: a text before each text. prompt_name: a name in `prompts`; default the checkpoint's default prompt.
normalize: scale vectors to length 1, also after truncate_dim; default as in the checkpoint.
truncate_dim: number of components to keep, the first ones, for models with Matryoshka embeddings (Kusupati et al. 2022); default all.
max_length: as in tokenize().
progress: show a progress bar of the package tqdm.

Returns (E) for one text, (N,E) for a list. Raises the errors of embed(), ConfigError for truncate_dim below 1, and UnsupportedError if tqdm is not
installed.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.encode("A warm film.").shape, model.encode(["A warm film.", "Far too long."], truncate_dim=8).shape
((64,), (2, 8)))";

constexpr const char* kEncodeQuery = R"(Computes vectors of queries: encode() with the prompt named 'query', if the checkpoint has it.

The arguments, the result and the errors are those of encode().

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.similarity(model.encode_query("film"), model.encode_document(["A warm film.", "Far too long."])).shape
(1, 2))";

constexpr const char* kEncodeDocument =
    R"(Computes vectors of documents: encode() with the prompt named 'document', 'passage' or 'corpus', if the checkpoint
has one of them.

The arguments, the result and the errors are those of encode().

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> model.encode_document(["A warm film.", "Far too long."]).shape
(2, 64))";

constexpr const char* kSimilarity = R"(Compares each vector of a with each one of b, as SentenceTransformer.similarity does.

By the function that config_sentence_transformers.json names: 'cosine' (the default), 'dot', or 'euclidean' and 'manhattan', the negative distance.

a: (E) or (N,E). b: (E) or (M,E).

Returns (N,M). Raises ShapeError if widths disagree, and ConfigError for another function.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> one, other = model.encode(["A warm film.", "Far too long."])
>>> bool(abs(model.similarity(one, one)[0, 0] - 1) < 1e-6), bool(model.similarity(one, other)[0, 0] < 1)
(True, True))";

}  // namespace

void define_sentence_model(nb::class_<Model>& model) {
  const auto define = [&](const std::string& name, const std::string& signature, const char* text) {
    model.def(
        name.c_str(), [name](Self self, const nb::args& args, const nb::kwargs& options) { return function(name.c_str())(self, *args, **options); },
        nb::sig(("def " + name + signature + " -> numpy.typing.NDArray[numpy.float32]").c_str()), text);
  };
  const std::string of_texts =
      "(self, texts: str | collections.abc.Iterable[str], *, batch_size: int = 32, prompt: str | None = None, prompt_name: str | None = None, "
      "normalize: bool | None = None, truncate_dim: int | None = None, max_length: int | None = None, progress: bool = False)";
  define("encode", of_texts, kEncode);
  define("encode_query", of_texts, kEncodeQuery);
  define("encode_document", of_texts, kEncodeDocument);
  define("similarity", "(self, a: numpy.typing.ArrayLike, b: numpy.typing.ArrayLike)", kSimilarity);
  model
      .def_prop_ro(
          "prompts", [](const Model& self) { return self.read("prompts", [](const TextModel& of) { return of.prompts(); }); },
          "Texts for prompt_name by name: those of config_sentence_transformers.json, and empty ones named query and document, which "
          "sentence-transformers has for every model.")
      .def_prop_ro(
          "num_layers", [](const Model& self) { return self.read("num_layers", [](const TextModel& of) { return of.num_layers(); }); },
          "Number of layers; ALBERT's shared layers count once per pass.")
      .def_prop_ro(
          "num_heads", [](const Model& self) { return self.read("num_heads", [](const TextModel& of) { return of.num_heads(); }); },
          "Number of attention heads of a layer.")
      .def_prop_ro(
          "embedding_dimension", [](const Model& self) { return self.read("embed", [](const TextModel& of) { return of.check_embed(1, {})[1]; }); },
          "Number of components of a vector of embed().");
}

}  // namespace attn::python
