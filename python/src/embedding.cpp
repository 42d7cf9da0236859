#include "embedding.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "errors.hpp"
#include "layers.hpp"

namespace attn::python {
namespace {

using Layer = Shared<Embedding>;
using Model = Shared<TextModel>;
using Target = Typed<"int | numpy.typing.ArrayLike">;
using Neighbors = Typed<"list[attn.Neighbor]">;

/// In the model's memory.
struct WordEmbeddings {
  nb::object model;

  template <class F>
  auto read(std::string_view op, F f) const {
    return nb::cast<Model&>(model).read(op, [&](const TextModel& of) { return f(of.word_embeddings()); });
  }
};

Neighbors to_list(const std::vector<Neighbor>& found) {
  nb::list list;
  for (const Neighbor& each : found) list.append(make_result("Neighbor", each.id, each.similarity));
  return list;
}

template <class Table>
Neighbors nearest(const Table& self, const Target& target, std::int64_t k) {
  constexpr const char* kOp = "nearest";
  // numpy arrays also have __index__.
  if (PyIndex_Check(target.ptr()) != 0 && !nb::hasattr(target, "__len__")) {
    std::int64_t id = 0;
    if (!nb::try_cast(nb::object(nb::module_::import_("operator").attr("index")(target)), id))
      detail::fail(ErrorCode::out_of_range, kOp, "target", {"an id of the table"}, {"a number of more than 64 bits"});
    return to_list(self.read(kOp, [&](const Embedding& of) { return of.nearest(id, k); }));
  }
  const Floats vector(target, kOp, "target");
  return to_list(self.read(kOp, [&](const Embedding& of) { return of.nearest(static_cast<const TensorView&>(vector), k); }));
}

Array<float> rows(const Embedding& of, const Array<std::int32_t>& ids, bool for_backward) {
  const std::vector<std::int64_t> values(ids.begin(), ids.end());
  Array<float> y(of.check(values, to_shape(ids.shape())));
  of.run(values, y.data());
  of.keep(values, to_shape(y.shape()), {.for_backward = for_backward});
  return y;
}

template <class Table>
void define_table(nb::class_<Table>& of) {
  of.def("nearest", &nearest<Table>, nb::arg("target"), nb::arg("k"),
         R"(Finds the rows with the largest cosine similarity. A row of zeros has cosine 0; of equal rows the lower id is first.

target: an id, whose own row is left out, or a vector (E).
k: number of results; there may be fewer.

Returns a list of Neighbor. Raises OutOfRangeError if there is no row of this id, ShapeError if the vector has another width, ArgumentError for
a negative k.

>>> words = attn.Embedding(3, 2)
>>> words.load_state_dict({"weight": [[1, 0], [1, 1], [0, 1]]})
>>> [each.id for each in words.nearest(0, 2)]
[1, 2])")
      .def(
          "similarity",
          [](const Table& self, std::int64_t a, std::int64_t b) {
            return self.read("similarity", [&](const Embedding& table) { return table.similarity(a, b); });
          },
          nb::arg("a"), nb::arg("b"), R"(Returns the cosine of the angle between the rows of two ids, a · b / (|a| |b|); 0 for a row of zeros.

a, b: ids.

Raises OutOfRangeError if there is no row of an id.

>>> words = attn.Embedding(2, 2)
>>> words.load_state_dict({"weight": [[1, 0], [1, 1]]})
>>> round(words.similarity(0, 1), 4)
0.7071)")
      .def(
          "analogy",
          [](const Table& self, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t k) {
            return to_list(self.read("analogy", [&](const Embedding& table) { return table.analogy(a, b, c, k); }));
          },
          nb::arg("a"), nb::arg("b"), nb::arg("c"), nb::arg("k"),
          R"(Answers "a is to b as c is to ?" by the rows nearest to b - a + c, without a, b and c (Mikolov et al. 2013).

a, b, c: ids. k: number of results.

Returns a list of Neighbor. Raises OutOfRangeError if there is no row of an id, ArgumentError for a negative k.

>>> words = attn.Embedding(4, 2)
>>> man, king, woman, queen = range(4)
>>> words.load_state_dict({"weight": [[1, 0], [1, 1], [-1, 0.1], [-1, 1]]})
>>> words.analogy(man, king, woman, 1)[0].id == queen
True)");
}

}  // namespace

void define_embedding(nb::module_& module) {
  nb::class_<Layer> layer(module, "Embedding", nb::type_slots(calling_init()), R"(A table of vectors by id (torch.nn.Embedding).

The state dictionary has one name, weight (N,E). A new table is drawn from N(0,1) as torch's, from seed 0.

>>> words = attn.Embedding(5, 3)
>>> words([[4, 0], [1, 1]]).shape
(2, 2, 3))");
  layer.def(
      "__init__",
      [](Layer* self, std::int64_t num_embeddings, std::int64_t embedding_dim, std::optional<std::int64_t> padding_idx, Threads threads) {
        new (self)
            Layer{.object = Embedding(EmbeddingOptions{.num_embeddings = num_embeddings, .embedding_dim = embedding_dim, .padding_idx = padding_idx}),
                  .threads = threads};
      },
      nb::arg("num_embeddings"), nb::arg("embedding_dim"), nb::kw_only(), nb::arg("padding_idx") = nb::none(), nb::arg("threads") = nb::none(),
      R"(num_embeddings: number of rows N.
embedding_dim: width E of a row.
padding_idx: a row that is 0 at first and gets no gradient.
threads: of the calls; default those of set_num_threads().

Raises ConfigError for sizes below 1 or a padding_idx that is not a row, OutOfMemoryError if the table does not fit into memory.)");
  for (const char* name : {"forward", "__call__"})
    layer.def(
        name,
        [](Layer& self, const ArrayLike& given, bool for_backward) -> FloatArray {
          const Array<std::int32_t> ids = ids_of(given, "Embedding", "ids");
          const auto compute = [&](const Embedding& of) { return rows(of, ids, for_backward); };
          // Storing ids for backward changes the layer.
          return to_python(for_backward ? self.change("Embedding", compute) : self.read("Embedding", compute));
        },
        nb::arg("ids"), nb::kw_only(), nb::arg("for_backward") = false,
        R"(Returns the rows of ids (torch.nn.functional.embedding); calling the object does the same.

ids: whole numbers from 0 to N - 1, of any shape.
for_backward: keep the ids for backward().

Returns (..,E). Raises OutOfRangeError if there is no row of an id, DtypeError unless ids are whole numbers, ShapeError for a rank above 7,
OutOfMemoryError if the result does not fit into memory.

>>> words = attn.Embedding(3, 2)
>>> words.load_state_dict({"weight": [[1, 0], [0, 1], [1, 1]]})
>>> words.forward([2, 0])
array([[1., 1.],
       [1., 0.]], dtype=float32))");
  layer.def(
      "backward",
      [](Layer& self, const ArrayLike& grad) {
        const Floats view(grad, "Embedding.backward", "grad");
        self.change("Embedding.backward", [&](Embedding& of) { of.run_backward(view); });
      },
      nb::arg("grad"), R"(Adds the rows of a gradient to gradients(), each to the row of its id (torch.autograd of nn.functional.embedding).

grad: (..,E), the gradient of the result of the last forward with for_backward.

Raises ArgumentError if there was no such forward since the last backward or change of weights, ShapeError if grad does not have the shape of
that result, UnsupportedError for an int8 table, OutOfMemoryError if the gradient does not fit into memory.

>>> words = attn.Embedding(3, 1)
>>> _ = words.forward([2], for_backward=True)
>>> words.backward([[5]])
>>> words.gradients()["weight"].ravel()
array([0., 0., 5.], dtype=float32))");
  define_table(layer);
  define_module(layer);

  nb::class_<WordEmbeddings> words(module, "WordEmbeddings", nb::type_slots(calling_init()),
                                   R"(The embedding matrix of a model by token id, from TextModel.word_embeddings. It is in the model's memory.

>>> model = attn.TextModel.load("testdata/models/sentiment")
>>> words = model.word_embeddings
>>> len(words.nearest(model.token_to_id("good"), 3)), words([[1, 2]]).shape
(3, (1, 2, 64)))");
  words.def(
      "__call__",
      [](const WordEmbeddings& self, const ArrayLike& given) -> FloatArray {
        const Array<std::int32_t> ids = ids_of(given, "WordEmbeddings", "ids");
        return to_python(self.read("WordEmbeddings", [&](const Embedding& of) { return rows(of, ids, false); }));
      },
      nb::arg("ids"), R"(Returns the rows of token ids, of any shape.

ids: whole numbers.

Returns (..,E). Raises OutOfRangeError if there is no row of an id, DtypeError unless ids are whole numbers, ShapeError for a rank above 7,
OutOfMemoryError if the result does not fit into memory.)");
  define_table(words);
  words.def_prop_ro("_model", [](const WordEmbeddings& self) { return self.model; });
}

void define_word_embeddings(nb::class_<Model>& model) {
  model.def_prop_ro(
      "word_embeddings", [](nb::handle_t<Model> self) { return WordEmbeddings{nb::borrow<nb::object>(self)}; },
      "The embedding matrix by token id: nearest(), similarity() and analogy() of words.");
}

}  // namespace attn::python
