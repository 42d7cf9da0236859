"""Language models: generation and scores against transformers, caches, refusals."""

import json

import attn
import numpy as np
import pytest

from golden import testdata

DECODERS = ["tiny-gpt2", "tiny-llama", "tiny-llama-3", "tiny-mistral", "tiny-qwen2", "tiny-qwen3", "tiny-neox", "tiny-neox-serial"]
DECODERS += ["tiny-llama-yarn", "tiny-gemma-2", "tiny-gemma-3"]


@pytest.fixture(scope="module")
def models() -> dict[str, attn.TextModel]:
    return {name: attn.TextModel.load(testdata / "models" / name) for name in DECODERS}


def test_texts_next_tokens_and_scores_agree_with_transformers(models: dict[str, attn.TextModel]) -> None:
    cases = json.loads((testdata / "tasks" / "generated.json").read_text("utf-8"))
    assert len(cases) >= 200
    for case in cases:
        model, text = models[case["model"]], case["text"]
        penalty = case["options"].get("repetitionPenalty", 1.0)
        if case["ids"]:
            result = model.generate(text, max_new_tokens=len(case["ids"]), repetition_penalty=penalty)
            assert result.ids == case["ids"], (case["model"], text)
            assert result.tokens == [model.id_to_token(i) for i in result.ids]
        for got, (id_, logit, probability) in zip(model.next_token(text, top_k=3) if "next" in case else [], case.get("next", []), strict=True):
            assert (got.id, got.token, got.text) == (id_, model.id_to_token(id_), model.decode([id_]))
            assert abs(got.logit - logit) < 1e-5 and abs(got.probability - probability) < 1e-6
        if "scores" in case:
            first, *others = model.score_tokens(text).tokens
            assert (first.log_probability, first.rank, first.entropy) == (None, None, None)
            for got, (log_probability, rank, entropy) in zip(others, case["scores"], strict=True):
                assert abs(got.log_probability - log_probability) < 1e-5 and abs(got.entropy - entropy) < 1e-5
                assert got.rank == rank


@pytest.mark.parametrize("name", DECODERS)
def test_a_cache_and_padding_change_no_bit(models: dict[str, attn.TextModel], name: str) -> None:
    model = models[name]
    ids = (5 + np.arange(24) * 31 % 300).reshape(2, 12)
    whole = model(ids)
    cache = model.create_cache(max_length=16, batch_size=2)
    for start, end in ((0, 1), (1, 7), (7, 12)):
        logits = model(ids[:, start:end], cache=cache).logits
        assert logits.tobytes() == np.ascontiguousarray(whole.logits[:, start:end]).tobytes()
    assert (cache.length, cache.max_length) == (12, 16)
    cache.truncate(11)
    assert model(ids[:, 11:], cache=cache, output_logits="last").logits.tobytes() == np.ascontiguousarray(whole.logits[:, 11:]).tobytes()
    assert model(ids, output_logits=False).logits is None
    mask = np.ones((2, 15), np.uint8)
    mask[:, :3] = 0
    padded = model(np.concatenate([np.zeros((2, 3), int), ids], axis=1), mask, output_logits="last")
    assert padded.logits.tobytes() == np.ascontiguousarray(whole.logits[:, 11:]).tobytes()


def test_sampling_stops_and_reports(models: dict[str, attn.TextModel]) -> None:
    model = models["tiny-gpt2"]
    draw = {"do_sample": True, "temperature": 1.5, "top_k": 50, "max_new_tokens": 20}
    assert model.generate("The old man", seed=1, **draw) == model.generate("The old man", seed=1, **draw)
    assert model.generate("The old man", seed=1, **draw) != model.generate("The old man", seed=2, **draw)
    plain = model.generate("The old man", max_new_tokens=30)
    stopped = model.generate("The old man", max_new_tokens=30, stop=[plain.text[2:5]])
    assert (stopped.finish_reason, stopped.text) == ("stop", plain.text[: plain.text.index(plain.text[2:5])])
    seen: list[int] = []

    def on_token(token: attn.GeneratedToken) -> bool:
        seen.append(token.id)
        return len(seen) < 4

    aborted = model.generate("The old man", on_token=on_token)
    assert (aborted.finish_reason, aborted.ids) == ("aborted", seen)
    assert seen == plain.ids[:4]


def test_bad_arguments_are_refused(models: dict[str, attn.TextModel]) -> None:
    model, other = models["tiny-gpt2"], models["tiny-llama"]
    bert = attn.TextModel.load(testdata / "models" / "tiny-bert")
    for name, value in (("max_new_tokens", 0), ("temperature", 0.0), ("top_k", -1), ("top_p", 0.0), ("min_p", 2.0), ("repetition_penalty", 0.0)):
        with pytest.raises(attn.ConfigError, match=name):
            model.generate("The", **{name: value})
    with pytest.raises(attn.ArgumentError, match="at least one token"):
        model.generate("")
    with pytest.raises(attn.OutOfRangeError, match="64"):
        model.generate("and so on " * 100)
    with pytest.raises(attn.UnsupportedError, match="text-generation"):
        bert.generate("The")
    with pytest.raises(attn.UnsupportedError, match="causal"):
        bert.create_cache()
    cache = model.create_cache(max_length=4)
    with pytest.raises(attn.ArgumentError, match="cache"):
        other([[1]], cache=cache)
    with pytest.raises(attn.OutOfRangeError, match="room"):
        model([[1, 2, 3, 4, 5]], cache=cache)
    with pytest.raises(attn.OutOfRangeError, match="length"):
        cache.truncate(1)
    with pytest.raises(attn.ArgumentError, match="output_logits"):
        model([[1]], output_logits="first")  # type: ignore[arg-type]

    def fail(token: attn.GeneratedToken) -> None:
        raise ValueError("own fault")

    with pytest.raises(ValueError, match="own fault"):
        model.generate("The", on_token=fail)
