"""testdata/word_piece.json: small WordPiece tokenizers that together use every option of their parts, and the results of Hugging Face tokenizers for
difficult texts with them."""

import json
import random

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

import common

CHARACTERS = (
    "abcdefghijklmnopqrstuvwxyzABCÀàéÉßσςΣıi0123456789中文字日本東京한국어ㅎㅏㄴ가각\u0301\u0323\u0345\u1abf\u0bc6\u0f71ёЁאבגاأآँनमस्ते🙂👍.,!-_?…。、"
)
PIECES = ["hello", "world", "un", "##able", "##ing", "the", "[mask]", "constructor", "__proto__", "##proto", "Ġx", " ", "日本", "##本語", " a"]
POOLS = [
    "abcdefghijklmnopqrstuvwxyz ",
    "ABCXYZ hello world",
    "  \t\n\r\x0b\x0c\x85\xa0\u1680\u2003\u2028\u3000\u200b\u200d\ufeff",
    ".,!?-_#$^~`|<>[]{}()@'\"…。、¿«»\u166d",
    "ÀàéÉßσςΣıİǅŉǰΐﬁﬀſKÅ\ua7dc\u1c89",
    "中文字日本東京々〇\uf900\U00020000\U0002b81e",
    "한국어가각힣ㅎㅏㄴ\u1100\u1161\u11a8\u302e\u302f",
    "\u0300\u0301\u0323\u0345\u0327\u031b\u1abf\u1ac1\u0f71\u0f72\u0f73\u0344\u0340\u0bc6\u0bd7\u0f74\u0f80\u1734",
    "אבגד\u05bc\u05b7\u200f اأآ\u0651\u064e",
    "👩\u200d👩\u200d👧\u200d👦🏽🇩🇪🙂\ufe0f❤",
    "\x00\x01\x7f\x9f\xad\ufffd\ue000\U000f0000\u0378",
    "नमस्तेक्षि\u0b95\u0bcaதமிழ்",
    "\U0001d15e\U0001d165\U0001d16d\U0001d1bb\U00011131\U00011127\U000110a5\U000110ba\U00011938\U00011935\U00011930",
]
WORDS = ["[MASK]", "[mask]", "<mask>", "[CLS]", "hello", "world", "Héllo Wörld", "he\u0301llo wo\u0308rld", "constructor", "__proto__", "unableing"]
WORDS += ["<m>", "abc", "ab", "É中", "É", "e\u0301", " a", "\u0301a", "Σίσυφος", "İstanbul", "日本語", "  ", "x" * 101, "a" * 12, "aaaaaé", "Ġx"]
FIXED = ["", " ", "\n\t", "Hello, world!", " [MASK] ", "a[MASK]b", "Σίσυφος ΣΑΣ", "👩\u200d👩\u200d👧 ok"]


def tokenizer(normalizer, added, post_processor, prefix="##", most=100):
    vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "[PAD]": 4}
    for piece in [each for c in CHARACTERS for each in (c, prefix + c)] + [piece.replace("##", prefix) for piece in PIECES]:
        vocabulary.setdefault(piece, len(vocabulary))
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", continuing_subword_prefix=prefix, max_input_chars_per_word=most))
    made.normalizer, made.post_processor, made.pre_tokenizer = normalizer, post_processor, pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(["[UNK]", "[CLS]", "[SEP]", "[PAD]"])
    for token in added:
        (made.add_special_tokens if token.special else made.add_tokens)([token])
    return made


def tokenizers():
    bert = normalizers.BertNormalizer
    specials = [("[CLS]", 1), ("[SEP]", 2)]
    sep, cls = ("[SEP]", 2), ("[CLS]", 1)
    template = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=specials)
    odd = processors.TemplateProcessing(single="$A:3 [SEP]:5", pair="$B:2 [SEP] $A:7", special_tokens=specials)

    def roberta(trim_offsets, add_prefix_space):
        return processors.RobertaProcessing(sep, cls, trim_offsets=trim_offsets, add_prefix_space=add_prefix_space)

    def token(content, **flags):
        return AddedToken(content, **{"normalized": False, **flags})

    return {
        "uncased": tokenizer(bert(), [token("[MASK]", lstrip=True, special=True)], template),
        "cased": tokenizer(
            bert(lowercase=False),
            [token("[MASK]", rstrip=True, normalized=True), token("abc", single_word=True), token("ab"), token("É", normalized=True)],
            processors.BertProcessing(sep, cls),
        ),
        "cased, no accents, trimmed": tokenizer(
            bert(strip_accents=True, lowercase=False),
            [
                token("<mask>", lstrip=True, special=True),
                token("<m>", lstrip=True, rstrip=True, normalized=True),
                token("Héllo Wörld", normalized=True),
            ],
            roberta(True, False),
        ),
        "lower case with accents, trimmed but for the first": tokenizer(
            bert(strip_accents=False, lowercase=True),
            [
                token("<mask>", lstrip=True, special=True),
                token("É中", normalized=True, single_word=True),
                token(" a", normalized=True, lstrip=True),
                token("中", normalized=True),
            ],
            roberta(True, True),
        ),
        "raw, no prefix": tokenizer(
            bert(clean_text=False, handle_chinese_chars=False),
            [token("[MASK]", single_word=True, lstrip=True, rstrip=True, normalized=True)],
            odd,
            prefix="",
        ),
        "bare": tokenizer(None, [token("[MASK]"), token("\u0301a", lstrip=True)], None, most=5),
        "not trimmed": tokenizer(bert(clean_text=False), [token("  ", rstrip=True), token(" x")], roberta(False, True)),
    }


def text(draw):
    pool = draw.choice(POOLS) if draw.random() < 0.4 else None
    parts = []
    for _ in range(draw.choice([1, 2, 3, 5, 8, 13, 20])):
        kind = draw.random()
        if kind < 0.2:
            parts.append(draw.choice(WORDS))
        elif kind < 0.35:
            parts.append(" " * draw.choice([1, 1, 1, 2, 3]))
        elif pool and kind < 0.8:
            parts.append(draw.choice(pool))
        elif kind < 0.95:
            parts.append(draw.choice(draw.choice(POOLS)))
        else:
            code = draw.randrange(0x110000)
            parts.append(chr(code) if not 0xD800 <= code < 0xE000 else " ")
    return "".join(parts)


def case(made, texts, max_length):
    made.no_truncation()
    if max_length is not None:
        made.enable_truncation(max_length)
    encoding = made.encode(*texts)

    def in_bytes(i, offsets):
        sequence = encoding.sequence_ids[i]
        return None if sequence is None else [len(texts[sequence][:end].encode()) for end in offsets]

    return {
        "texts": texts,
        "max_length": max_length,
        "ids": encoding.ids,
        "type_ids": encoding.type_ids,
        "tokens": encoding.tokens,
        "offsets": [in_bytes(i, offsets) for i, offsets in enumerate(encoding.offsets)],
        "truncated": len(encoding.overflowing) > 0,
    }


def generate():
    found = []
    for number, (name, made) in enumerate(tokenizers().items()):
        draw = random.Random(number)
        file = json.loads(made.to_str())
        made = Tokenizer.from_str(made.to_str())
        cases = [case(made, [each], None) for each in FIXED]
        for i in range(60):
            texts = [text(draw) for _ in range(1 if i % 3 else 2)]
            cases.append(case(made, texts, draw.choice([None, None, None, 5, 8, 11])))
        words = {word: made.token_to_id(word) for word in ["[MASK]", "<mask>", "É中", "é 中 ", "Héllo Wörld", "constructor", "toString", "", " a"]}
        ids = {str(i): made.id_to_token(i) for i in range(made.get_vocab_size() + 1)}
        found.append({"name": name, "file": file, "size": made.get_vocab_size(), "ids": words, "tokens": ids, "cases": cases})
    out = json.dumps(found, ensure_ascii=True, separators=(",", ":"))
    (common.TESTDATA / "word_piece.json").write_text(out + "\n")


if __name__ == "__main__":
    generate()
