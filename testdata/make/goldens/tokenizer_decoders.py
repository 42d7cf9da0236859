"""testdata/tokenizers/decoders.json: texts that Hugging Face tokenizers decode from tokens, with each kind of decoder and with those of the
checkpoints, and the texts after transformers has cleaned up spaces."""

import json
import random

from tokenizers import Tokenizer

import common
import tokenizer_cases as cases
from tokenizer_cases import part, sequence

TOKENS = "[CLS] [SEP] hello ##s ##llo wor ld</w> the</w> ▁the ▁ er▁ Ġthe Ġ Ã © ¼ Ċ ðŁĺ Ģ ' n't s 've do not don . , ? ! 中 é 😀 aa abba ...".split()
TOKENS += "<0x0A> <0xC3> <0xA9> <0xE4> <0xB8> <0xAD> <0xf0> <0x9F> <0x+A> <0xZZ> <0x1>".split() + [" ", "  x", "a b ", "#", "##", "</w>"]
SPECIAL = ("[CLS]", "[SEP]")

REPLACE = part("Replace", pattern={"String": "▁"}, content=" ")
DECODERS = {
    "none": None,
    "ByteLevel": part("ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True),
    "WordPiece": part("WordPiece", prefix="##", cleanup=True),
    "WordPiece, as it is": part("WordPiece", prefix="##", cleanup=False),
    "BPEDecoder": part("BPEDecoder", suffix="</w>"),
    "Metaspace": part("Metaspace", replacement="▁", prepend_scheme="always", split=True),
    "Metaspace never": part("Metaspace", replacement="▁", prepend_scheme="never", split=True),
    "ByteFallback": part("ByteFallback"),
    "Fuse": sequence("decoders", part("Fuse"), part("Strip", content="[", start=1, stop=0)),
    "Strip": part("Strip", content="a", start=1, stop=1),
    "Replace": REPLACE,
    "Replace spaces": part("Replace", pattern={"Regex": r"\s+"}, content="_"),
    "Llama's": sequence("decoders", REPLACE, part("ByteFallback"), part("Fuse"), part("Strip", content=" ", start=1, stop=0)),
}


def generate():
    draw = random.Random(5)
    vocab = {token: i for i, token in enumerate(TOKENS)}
    added = [{"id": vocab[token], **cases.added(token)} | {"id": vocab[token]} for token in SPECIAL]
    file = {"model": part("WordLevel", unk_token="[CLS]", vocab=vocab), "added_tokens": added}
    runs = []
    for name, decoder in DECODERS.items():
        tokenizer = cases.load(file | {"decoder": decoder})
        made = []
        for length in (0, 1, 1, 2, 3, *[8] * 12, *[20] * 12):
            ids = [draw.randrange(len(TOKENS) + 1) for _ in range(length)]  # one beyond the vocabulary
            made.append([ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids)])
        runs.append(cases.line({"name": name, "decoder": decoder, "cases": made}))
    for name in cases.CHECKPOINTS:
        tokenizer = Tokenizer.from_file(str(common.TESTDATA / "models" / name / "tokenizer.json"))
        tokenizer.no_padding()
        made = []
        for text in (*cases.TEXTS[4:12], *cases.TEXTS[15:19], cases.TEXTS[36]):
            ids = tokenizer.encode(text).ids
            made.append([ids, tokenizer.decode(ids, skip_special_tokens=False), tokenizer.decode(ids)])
        runs.append(cases.line({"checkpoint": name, "cases": made}))
    cases.write("decoders", {"file": file}, "runs", runs)


if __name__ == "__main__":
    generate()
