"""A typed program; test_types.py runs it and checks it with mypy --strict."""

from pathlib import Path
from typing import Any, assert_type

import attn
import numpy
from numpy.typing import NDArray

Floats = NDArray[numpy.float32]


def main(folder: Path) -> None:
    query = numpy.ones((2, 4, 3, 8), numpy.float32)
    result = attn.scaled_dot_product_attention(query, query, query.tolist(), mask=attn.Mask.block(numpy.eye(3)), need_weights=True, threads=2)
    assert_type(result, attn.AttentionResult)
    assert_type(result.output, Floats)
    assert_type(result.weights, Floats | None)

    layer = attn.MultiHeadAttention(8, 2, num_key_value_heads=1)
    layer.load_state_dict(layer.state_dict(), strict=True)
    assert_type(layer(query[0], trace=["q", "scores"]).trace, dict[str, Floats] | None)
    present = layer(query[0], output_present=True).present
    assert present is not None
    assert_type(layer(query[0], past=present), attn.AttentionResult)

    encoder = attn.TransformerEncoder(8, 2, num_layers=2, dim_feedforward=16, activation="gelu", norm="rms_norm")
    assert_type(encoder(query[0], output_attentions=True).attentions, list[Floats] | None)
    assert_type(encoder.parameter_shapes(), dict[str, tuple[int, ...]])

    one = attn.TransformerEncoderLayer(8, 2, 16, norm_first=True)
    assert_type(one(query[0], for_backward=True).output, Floats)
    assert_type(one.backward(query[0], trace=True).trace, dict[int, dict[str, Floats]] | None)
    assert_type(one.gradients(), dict[str, Floats])
    one.zero_grad()
    layer(query[0], for_backward=True)
    assert_type(layer.backward(query[0]).grad_key, Floats | None)
    assert_type(attn.linear(query, [[1.0] * 8]), Floats)
    assert_type(attn.softmax(attn.layer_norm(query, bias=numpy.zeros(8)), dim=1, threads=2), Floats)
    assert_type(attn.apply_rotary(attn.activation(attn.rms_norm(query), "gelu"), interleaved=True), Floats)
    assert_type(attn.alibi_bias(2, 3), Floats)
    assert_type(attn.sinusoidal_positions(3, 4), Floats)

    model = attn.TextModel.load(folder, weights="float32", threads=1)
    assert_type(model, attn.TextModel)
    truncated: list[bool] = []
    assert_type(model.embed("a film", truncated=truncated), Floats)
    for scores in model.classify([("a", "b")]):
        for label, score in scores:
            assert_type(label, str)
            assert_type(score, float)
    assert_type(model.encode("a film", truncate_dim=8, progress=False), Floats)
    assert_type(model.similarity(model.encode_query("a film"), model.encode_document(["a film"])), Floats)
    assert_type((model.num_layers, model.num_heads, model.embedding_dimension), tuple[int, int, int])
    assert_type(model.config, dict[str, Any])
    assert_type(model.prompts, dict[str, str])
    assert_type(attn.__version__, str)
    encoding = model.tokenize(["a film", "another"])
    assert_type(encoding.offsets[0], list[tuple[int, int] | None])
    assert_type(model.tokenize_words([["a", "film"]], truncation_side="left", add_special_tokens=False).words, list[list[int | None]] | None)
    output = model(encoding, output_hidden_states=True, trace=True, trace_layers=[0])
    assert_type(output.trace, dict[int, dict[str, Floats]] | None)
    assert_type(model(encoding.input_ids, encoding.attention_mask).logits, Floats | None)
    assert_type(model.gradients(encoding, label="positive", embeddings=True).value, float)
    assert_type(model.attribute("a film", method="leave_one_out").scores, Floats)
    assert_type(model.attribute(["a film"], target=0), list[attn.Attribution])
    assert_type(model.get_parameter("classifier.bias"), Floats)

    def stop(progress: attn.FineTuneProgress) -> bool:
        return progress.step < 1

    assert_type(model.fine_tune([("a film", 0), (("a", "pair"), "positive")], epochs=1, on_progress=stop), attn.FineTuneResult)

    attn.set_num_threads(attn.get_num_threads())
    assert_type(attn.read_safetensors(folder / "model.safetensors"), dict[str, Floats])
    assert_type(attn.write_safetensors({"x": query}, {"made": "here"}), bytes)
    try:
        model.embed("a film", prompt_name="none")
    except attn.ConfigError as error:
        assert_type(error.code, str)
        assert_type(error.detail, dict[str, str | float | list[str]])
        assert_type(error.help, str | None)


def tasks(folders: Path) -> None:
    ner, mlm, qa = (attn.TextModel.load(folders / f"tiny-bert-{name}") for name in ("ner", "mlm", "qa"))
    decoder = attn.TextModel.load(folders / "tiny-gpt2")
    assert_type(decoder.generate("a", max_new_tokens=2, stop=["b"]), attn.GeneratedText)
    assert_type(decoder.next_token("a")[0].probability, float)
    assert_type(decoder.score_tokens("a film").tokens[0].rank, int | None)
    assert_type(decoder.unembed(numpy.zeros((2, 24))), Floats)
    assert_type(attn.lens.logit_lens(decoder, "a film").predictions[0][0][0].probability, float)
    assert_type(attn.lens.logit_attribution(decoder, [5, 6], "a", contrast=3), attn.LogitAttribution)
    assert_type(attn.lens.patch_activations(decoder, [5, 6], [5, 7], answer=3, site="mlp").recovered, Floats)
    assert_type(attn.lens.head_scores(decoder, kinds=["induction"]).scores, dict[str, Floats])
    assert_type(attn.lens.trace(decoder, "a film", ["hook_resid_pre"]), dict[str, Floats])
    assert_type(attn.lens.run_with_hooks(decoder, [5, 6], {"attn.hook_z": lambda z: z * 2, "hook_mlp_out": lambda _: None}), attn.TextModelOutput)
    patches = [attn.LayerPatch(0, hidden_state=numpy.zeros((1, 2, 24))), attn.LayerPatch(-1, merged=numpy.zeros((1, 2, 24)))]
    assert_type(decoder([[1, 2]], patch=patches).logits, Floats | None)
    patches.append(attn.LayerPatch(1, q_proj=[[[0.0] * 24]], k_proj=None, v_proj=numpy.zeros((1, 1, 24)), weights=numpy.ones((1, 4, 1, 1))))
    assert_type(decoder(inputs_embeds=numpy.zeros((1, 2, 24))).last_hidden_state, Floats)
    cache = decoder.create_cache(max_length=8)
    assert_type(decoder([[1, 2]], cache=cache, output_logits="last").logits, Floats | None)
    if qa.task == "question-answering":
        assert_type(qa.answer("what", "a film", allow_empty=True)[0].start, int)
        assert_type(qa.answer(["what", "who"], "a film"), list[list[attn.Answer]])
        assert_type(qa.answer("what", ("a film", "a song"), max_length=32), list[list[attn.Answer]])
    ids = qa.tokenize("a film").input_ids
    assert_type(qa.decode(ids[0], skip_special_tokens=True), str)
    assert_type(qa.gradients(ids, label="start", token=1, parameters=True).parameters, dict[str, Floats] | None)
    for entities in ner.classify_tokens(["a film"], aggregation="first", ignore_labels=("O",)):
        assert_type(entities, list[attn.Entity])
    assert_type(mlm.fill_mask("a [MASK]", targets=["film"])[0][0].token, str)
    assert_type(mlm.fill_mask(["a [MASK]", "b [MASK]"], batch_size=1), list[list[list[attn.FilledMask]]])
    assert_type(mlm.mask_token, str | None)


def ranked(model: attn.TextModel) -> int:
    return model.rank("film", ["a film"], top_k=1, prompt_name="query", truncation_side="left")[0].index


def tables(folder: Path) -> None:
    tokenizer = attn.Tokenizer.from_pretrained(folder)
    assert_type(tokenizer.encode("a", max_length=3), attn.Encoding)
    assert_type(tokenizer.token_to_id("a"), int | None)
    assert_type(tokenizer.vocabulary_size, int)
    words = attn.TextModel.load(folder).word_embeddings
    assert_type(words.nearest(5, 2), list[attn.Neighbor])
    assert_type(words.analogy(1, 2, 3, 1)[0].similarity, float)
    table = attn.Embedding(3, 2, padding_idx=0)
    assert_type(table.nearest(table([1])[0], 1), list[attn.Neighbor])
    assert_type(table.get_parameter("weight"), Floats)


def wrong(model: attn.TextModel, x: Floats) -> None:
    """Each line is an error: mypy --strict reports comments that ignore none."""
    attn.scaled_dot_product_attention(x, x)  # type: ignore[call-arg]
    attn.scaled_dot_product_attention(x, x, x, attn.Mask.attend(x))  # type: ignore[call-arg]
    attn.scaled_dot_product_attention(x, x, x, mask=x)  # type: ignore[arg-type]
    attn.scaled_dot_product_attention(x, x, x, fully_masked="none")  # type: ignore[arg-type]
    attn.MultiHeadAttention(8)  # type: ignore[call-arg]
    attn.TransformerEncoder(8, 2, 1, activation="swish")  # type: ignore[arg-type]
    attn.activation(x, "swish")  # type: ignore[arg-type]
    attn.apply_rotary(x, 10000)  # type: ignore[call-arg]
    model.embed([("a", "b")])  # type: ignore[list-item]
    model.encode("a", normalize_embeddings=True)  # type: ignore[call-arg]
    model.encode(["a"], truncate_dim="8")  # type: ignore[arg-type]
    model.num_layers = 3  # type: ignore[misc]
    model.embed("a", pooling="median")  # type: ignore[arg-type]
    model.classify_tokens("a", aggregation="last")  # type: ignore[arg-type]
    model.labels = []  # type: ignore[misc]
    attn.Embedding(3)  # type: ignore[call-arg]
    model([[1]], patch=3)  # type: ignore[arg-type]
    attn.lens.run_with_hooks(model, "a", {3: None})  # type: ignore[dict-item]
    attn.widget(model, layer=1)  # type: ignore[call-arg]
    model.word_embeddings.nearest(1)  # type: ignore[call-arg]
    model.no_such_method()  # type: ignore[attr-defined]
