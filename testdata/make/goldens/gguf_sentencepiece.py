"""testdata/gguf/sentencepiece.gguf, a Llama of one layer whose SentencePiece vocabulary was trained on the LICENSE, and the ids that the sentencepiece
library gives to texts (sentencepiece.json): "ids" with tokenizer.ggml.add_space_prefix, "plain" without. Runs without torch."""

import io
import json
import random
import re

import numpy as np
import sentencepiece
from gguf_files import FOLDER, TESTDATA, finish, start
from sentencepiece import sentencepiece_model_pb2

TOOL = "<tool>"
SPECIAL = ("<s>", "</s>", "<unk>", TOOL)
TEXTS = [
    "", " ", "  ", "   leading", "trailing  ", "Hello world", "a", "▁", "▁▁ a▁b", "one\ntwo\n\n three\r\n", "tab\tand\ttab", "x = 12345; y=0.5",
    "naïve café, e\u0301tude", "日本語 テスト", "🙂", "👩‍👩‍👧‍👦 🙂🙂 !", "\x00\x7f\u200b\ufeff", "ﬁ ① Ⅷ ½", "<0x41> <0x0A>", "<s>", "<s> a</s>b <unk>", "<s>  a",
    f"{TOOL}", f"a {TOOL} b", f"{TOOL}{TOOL}x", f"</s>{TOOL} <s>a", "< s></ s><to ol>", "aaaaaaaaaaaaaaaaa", "-" * 50, " " * 70 + "deep",
]  # fmt: skip


def train():
    license = (TESTDATA.parent / "LICENSE").read_text().splitlines()
    others = ["naïve café über straße", "привет мир", "日本語 テスト", "aaa aaaa aaaaa", "--- ---- -----", "    deep", "        deeper"]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(license + others * 4), model_writer=model, model_type="bpe", vocab_size=640, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True,
        character_coverage=0.999, num_threads=1, minloglevel=2, user_defined_symbols=[TOOL],
    )  # fmt: skip
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto


def texts():
    """Fixed texts, parts of the LICENSE, and random texts of words, runs and single characters."""
    choose = random.Random(20261128)
    license = (TESTDATA.parent / "LICENSE").read_text()
    words = license.split()
    characters = "ab the-.▁ \n\té日本ü🙂ж1\u0301"
    made = list(TEXTS)
    while len(made) < 360:
        kind = len(made) % 4
        if kind == 0:
            at = choose.randrange(len(license) - 60)
            text = license[at : at + choose.randrange(1, 60)]
        elif kind == 1:
            text = "".join(choose.choice([" ", choose.choice(words)]) * choose.randrange(1, 4) for _ in range(choose.randrange(1, 8)))
        elif kind == 2:
            text = "".join(choose.choice("a -▁") * choose.randrange(1, 18) for _ in range(choose.randrange(1, 5)))
        else:
            text = "".join(choose.choice(characters) for _ in range(choose.randrange(1, 24)))
        if choose.randrange(8) == 0:
            at = choose.randrange(len(text) + 1)
            text = text[:at] + choose.choice(SPECIAL) + text[at:]
        made.append(text)
    return made


def encode(processor, text):
    """Special tokens are found first, as in llama.cpp, and each text between two of them is one for sentencepiece."""
    parts = re.split(f"({'|'.join(map(re.escape, SPECIAL))})", text)
    ids = [[processor.piece_to_id(part)] if part in SPECIAL else processor.encode(part) for part in parts]
    return [processor.bos_id(), *sum(ids, [])]


def write_model(proto):
    config = {
        "max_position_embeddings": 256, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
        "intermediate_size": 8, "rms_norm_eps": 1e-5, "rope_parameters": {"rope_theta": 10000.0}, "vocab_size": len(proto.pieces),
    }  # fmt: skip
    writer = start(FOLDER / "sentencepiece.gguf", "llama", config)
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([piece.piece for piece in proto.pieces])
    writer.add_token_scores([piece.score for piece in proto.pieces])
    writer.add_token_types([piece.type for piece in proto.pieces])
    values = np.random.Generator(np.random.PCG64(3))
    for name, *shape in [
        ("token_embd", len(proto.pieces), 8), ("output_norm", 8), ("blk.0.attn_norm", 8), ("blk.0.attn_q", 8, 8), ("blk.0.attn_k", 4, 8),
        ("blk.0.attn_v", 4, 8), ("blk.0.attn_output", 8, 8), ("blk.0.ffn_norm", 8), ("blk.0.ffn_gate", 8, 8), ("blk.0.ffn_up", 8, 8),
        ("blk.0.ffn_down", 8, 8),
    ]:  # fmt: skip
        writer.add_tensor(f"{name}.weight", values.standard_normal(shape, np.float32))
    finish(writer)


def generate():
    proto = train()
    write_model(proto)
    processors = {}
    for name, adds_space in (("ids", True), ("plain", False)):
        proto.normalizer_spec.add_dummy_prefix = adds_space
        processors[name] = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
    cases = []
    for text in texts():
        cases.append({"text": text} | {name: encode(processor, text) for name, processor in processors.items()})
        # Without a space in front, user-defined tokens do not depend on who finds them.
        if not any(token in text for token in SPECIAL if token != TOOL):
            assert cases[-1]["plain"][1:] == processors["plain"].encode(text), text
    (FOLDER / "sentencepiece.json").write_text("[\n" + ",\n".join("  " + json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    generate()
