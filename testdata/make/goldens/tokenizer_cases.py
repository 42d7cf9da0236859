"""testdata/tokenizers/: results of Hugging Face tokenizers for unusual texts, with the tokenizers of the checkpoints and with small ones that have
one part each, and for all code points. Offsets are in UTF-16 units."""

import json
import pathlib
import random
import shutil
import tempfile

import tokenizers
import transformers
from tokenizers import Tokenizer

import common
import tiny_tokenizers
from fetch_models import fetch

FOLDER = common.TESTDATA / "tokenizers"
CHECKPOINTS = ("tiny-bert", "tiny-distilbert", "tiny-roberta", "tiny-xlm-roberta", "tiny-mpnet", "tiny-modernbert", "tiny-deberta", "tiny-albert")
LONG = 1000  # characters; longer texts are stored as their repeated part

TEXTS = [
    "",
    " ",
    " \t\r\n\u00a0\u3000\u2028\u0085\u200b\ufeff",
    "a",
    "A happy person smiles at the child.",
    "  Leading, trailing   and\tinner\n\nspaces  ",
    "They're sure that we've been there, I'm not; he'd say so, she'll see. 'S 'RE 'ſ ''",
    "don't can't O'Neill rock 'n' roll 'tis",
    "unhappiness UNHAPPINESS UnHappiness",
    "price: $1,299.99 (-20 %), e-mail me@example.org, see https://example.org/a_b?c=1#d",
    "1234567 12 345,678.90 ١٢٣ ४५६ ²³ ½ Ⅷ 〇 𝟘𝟙",
    "x = y*z; if (a<b) { return a^b | ~c & d; } // `code` \\n",
    "[MASK]",
    "a [MASK] b[MASK]c [mask] [MASK",
    "  <mask>  x<mask>y <mask>",
    "<s>hello</s> <pad> <unk> [CLS][SEP] [UNK] [PAD]",
    "constructor __proto__ toString hasOwnProperty valueOf prototype null undefined",
    "naïve café résumé Übung façade Ångström",
    "nai\u0308ve cafe\u0301 re\u0301sume\u0301 U\u0308bung A\u030angstro\u0308m",
    "e\u0323\u0302 e\u0302\u0323 \u1ec7 q\u0307\u0323 q\u0323\u0307 \u0344 \u0f73\u0f71",
    "a\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309\u030a\u030b\u030c\u0316\u0317\u0318\u0327\u0328\u0345\u0334z",
    "\u0301begins with a mark \u0301 between",
    "ΟΔΥΣΣΕΥΣ Σ ΣΑΣ ΑΣ. ς ᾳ ᾼ ΐ",
    "İstanbul IĞDIR ı İ̇ ǅ ǆ ß ẞ ﬁ ﬃ ŉ",
    "Зима была холодной, Ёжик й и\u0306",
    "中文很好。我喜欢机器学习，非常！",
    "今日はいい天気ですね、カタカナとﾊﾝｶｸｶﾞも、が か\u3099",
    "한국어 문장입니다. \u1112\u1161\u11ab\u1100\u1173\u11af 각\u11a8",
    "豈 更 車 \uf900\uf901 丽 \U0002f800 \U00020000\U0002a6d6 \U0002a700",
    "السلام عليكم مَرْحَبًا ﷺ ﻻ \u0600١ \u06dd٣",
    "שלום עולם בְּרֵאשִׁית",
    "नमस्ते क्षत्रिय \u0915\u094d\u0937\u093f \u0958 \u0915\u093c",
    "ภาษาไทย ไม่มีช่องว่าง ທ່ານ",
    "\u0b95\u0bca \u0b95\u0bc6\u0bbe தமிழ்",
    "😀",
    "👩‍👩‍👧‍👦 and 🏳️‍🌈 went to 🇫🇷 🤷🏽‍♀️ ❤️ 1️⃣",
    "😀😀 😀a😀 é😀é",
    "©\u200d❤\u0301 ™\u0301 ℹ️ \u200d \ufe0f",
    "𝕳𝖊𝖑𝖑𝖔 𝒲ℴ𝓇𝓁𝒹 ｆｕｌｌｗｉｄｔｈ ＡＢＣ１２３！",
    "ﬁne ½ℓ ㍿ … ℃ № ℵ ⅓ ㌔ ①②③",
    "\u0000nul \u0001\u0007\u001b\u007f\u009f controls \ufffd \u00ad soft",
    "\u200eLRM\u200f RLM \u202eoverride\u202c \u2066isolate\u2069",
    "private \ue000\uf8ff \U000f0000 unassigned \u0378 \U000e0fff tag \U000e0041",
    "zero\u200bwidth\u200cjoin\u200der \u2060word\ufeffjoiner",
    "tabs\tand\vvertical\fform\u0085next\u2029para",
    "“quotes” ‘single’ «angle» — dash – en … ¿¡ § ¶ † ‡ • 、。「」",
    "¦ + < = > | ~ ^ ` ´ ¨ ¯ ¸ × ÷ ± ∞ ≠ ₿ €",
    "\U0001e900\U0001e921 \U00010400\U00010428 \U000118a0 \u10a0\u1c90 \uab70\u13a0",
    "\U00010d50\U00016ea0\ua7ce\ua7dc\u1c89 newer letters",
    "\U000105d2\u0307 \U00011382\U000113c9 \U00016d67\U00016d67 \u0898\u0301 newer than the normaliser",
    "\U0001d15e \U0001d160 \u2126 \u212b \u1e9b\u0323 \u2adc",
    "line one\r\nline two\n\rline three\r",
    "a  b   c    d     e",
    "\u3000full　width\u3000",
    "______ ------ ...... !!!!!! ######",
    "snake_case camelCase kebab-case dot.case",
    "ab\u00e9\U0001f600\u4e2d\u0301z" * 3,
    "##ing ##s ▁the Ġthe </w> <0x0A>",
    "\u2581under\u2581\u2581score \u2581",
    "The film was bad, the worst of the year. " * 4,
    "\ud7a3\uabcd\u1100",
    {"repeat": "a", "times": 10_000},
    {"repeat": "not", "times": 40},
    {"repeat": "e\u0323\u0301", "times": 5_000},
    {"repeat": "word ", "times": 3_000},
]
PAIRS = [
    ("How old are you?", "I'm ten."),
    ("", "only the second"),
    ("only the first", ""),
    ("", ""),
    ("😀 [MASK] café", "中文 <mask> \u0301x"),
    ("The trophy does not fit in the suitcase because it is too big.", "Is it good?"),
]
CUTS = [(4, 1), (4, 2), (4, 3), (4, 5), (4, 8), (9, 6), (34, 3), (35, 7), (12, 4)]  # text, and number of tokens besides the special ones
PAIR_CUTS = [(0, 2), (0, 5), (5, 0), (5, 1), (5, 7), (5, 16), (1, 2), (2, 2)]


def random_texts():
    """Characters from all of Unicode, also mixed."""
    draw = random.Random(1)
    ranges = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x591, 0x6FF), (0x900, 0xDFF), (0xE00, 0xFFF)]
    ranges += [(0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x22FF), (0x3000, 0x33FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFFFF)]
    ranges += [(0x10000, 0x11FFF), (0x1D100, 0x1D7FF), (0x1F300, 0x1FAFF), (0, 0xD7FF), (0xE000, 0x10FFFF)]
    for _ in range(24):
        some = draw.choices(ranges, k=draw.choice((1, 2, 4))) + [(0x61, 0x7A), (0x20, 0x20)]
        yield "".join(chr(draw.randint(*draw.choice(some))) for _ in range(24))


def expand(text):
    return text["repeat"] * text["times"] if isinstance(text, dict) else text


def utf16(text):
    """Converts an offset in code points to UTF-16 units."""
    places = [0]
    for char in text:
        places.append(places[-1] + (2 if ord(char) > 0xFFFF else 1))
    return places


def case(tokenizer, text, pair=None, max_length=None, special=True, side="right"):
    """Without max_length nothing is truncated."""
    if max_length is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_length, direction=side)
    whole = expand(text)
    encoding = tokenizer.encode(whole, pair, add_special_tokens=special)
    places = [utf16(whole), utf16(pair or "")]
    offsets = [
        None if special else [places[sequence or 0][start], places[sequence or 0][end]]
        for (start, end), special, sequence in zip(encoding.offsets, encoding.special_tokens_mask, encoding.sequence_ids)
    ]
    result = {"text": text}
    if pair is not None:
        result["pair"] = pair
    if max_length is not None:
        result |= {"maxLength": max_length, "truncated": bool(encoding.overflowing)}
    if not special:
        result["addSpecialTokens"] = False
    if side != "right":
        result["truncationSide"] = side
    result["ids"] = encoding.ids
    if any(encoding.type_ids):
        result["typeIds"] = encoding.type_ids
    return result | {"tokens": encoding.tokens, "offsets": offsets}


def cases(tokenizer):
    tokenizer.no_padding()
    for text in (*TEXTS, *random_texts()):
        yield case(tokenizer, text, max_length=40 if len(expand(text)) > LONG else None)
    for first, second in PAIRS:
        yield case(tokenizer, first, second)
    single, pair = (len(tokenizer.encode("", second).ids) for second in (None, ""))
    for index, kept in CUTS:
        yield case(tokenizer, TEXTS[index], max_length=kept + single)
    for index, kept in PAIR_CUTS:
        yield case(tokenizer, *PAIRS[index], max_length=kept + pair)


# ---------------------------------------------------------------- one part each

# An unknown token is the word, so that the output shows the results of the earlier stages.
MIRROR = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["[CLS]", 0.0], ["[SEP]", 0.0], ["\u0000\u0000", 0.0]], "byte_fallback": False}
BASE = dict.fromkeys(("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"))
BEHAVIORS = ("Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]%s|\s+(?!\S)|\s+"
# Those of Qwen 3.5, which treats marks as letters, GPT-4o and Mistral's Tekken.
MARKS = GPT4.replace(r"\p{L}+|", r"[\p{L}\p{M}]+|").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]") % ("", "+")
CAPITALS, SMALL = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}*{SMALL}+%s|[^\r\n\p{{L}}\p{{N}}]?{CAPITALS}+{SMALL}*%s|\p{{N}}%s"
CASED += r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
O200K, TEKKEN = CASED % ("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "{1,3}"), CASED % ("", "", "")


def part(kind, **options):
    return {"type": kind, **options}


def sequence(name, *parts):
    return {"type": "Sequence", name: list(parts)}


def bert(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False):
    return part("BertNormalizer", clean_text=clean_text, handle_chinese_chars=handle_chinese_chars, strip_accents=strip_accents, lowercase=lowercase)


def replace(content, **pattern):
    return part("Replace", pattern={name.title(): text for name, text in pattern.items()}, content=content)


def split(behavior, invert=False, **pattern):
    return part("Split", pattern={name.title(): text for name, text in pattern.items()}, behavior=behavior, invert=invert)


def charsmap():
    file = json.loads((common.TESTDATA / "models/tiny-xlm-roberta/tokenizer.json").read_text())
    assert file["normalizer"]["type"] == "Precompiled"
    return file["normalizer"]


def added(content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True):
    flags = {"single_word": single_word, "lstrip": lstrip, "rstrip": rstrip, "normalized": normalized, "special": special}
    return {"id": 0, "content": content, **flags}


def template():
    token = lambda name, type_id: {"SpecialToken": {"id": name, "type_id": type_id}}
    text = lambda name, type_id: {"Sequence": {"id": name, "type_id": type_id}}
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}, "two": {"id": "two", "ids": [2, 1], "tokens": ["[SEP]", "x"]}}
    return part(
        "TemplateProcessing",
        single=[token("[CLS]", 0), text("A", 3), token("two", 1)],
        pair=[text("B", 1), token("two", 2), text("A", 0), token("[CLS]", 0)],
        special_tokens=tokens,
    )


def bpe(**options):
    words = "hello world the there abc aab ab ba cab low lower newest widest é 中".split()
    join = lambda a, b: a + b.removeprefix(options.get("continuing_subword_prefix") or "\0")
    prefix, suffix = options.get("continuing_subword_prefix") or "", options.get("end_of_word_suffix") or ""
    symbols = [tuple((prefix if i else "") + c + (suffix if i == len(word) - 1 else "") for i, c in enumerate(word)) for word in words]
    pairs = tiny_tokenizers.merges(dict.fromkeys(symbols, 1), 24, join)
    letters = sorted({symbol for word in symbols for symbol in word} | {prefix + c for c in "abcdehlo"})
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)] if options.get("byte_fallback") else []
    vocab = dict.fromkeys(["<unk>", "[CLS]", "[SEP]", *letters, *(join(*pair) for pair in pairs), *bytes_, "newest"])
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    model |= {"fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    return model | options | {"vocab": {token: i for i, token in enumerate(vocab)}, "merges": [list(pair) for pair in pairs]}


def word_piece(**options):
    tokens = "[UNK] [CLS] [SEP] a b c ##a ##b ##c ab ##ab abc un ##happ ##iness happy ##y é ##é 中 ##中 ##国".split()
    tokens += ["constructor", "##or", "__proto__", "toString"]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return model | options | {"vocab": {token: i for i, token in enumerate(tokens)}}


def word_level():
    tokens = "[UNK] [CLS] [SEP] the a ab hello happy é 中 中文很好 __proto__ , film".split()
    return part("WordLevel", unk_token="[UNK]", vocab={token: i for i, token in enumerate(tokens)})


def unigram(**options):
    pieces = [("a", -2.0), ("b", -2.5), ("ab", -3.0), ("abc", -4.25), ("c", -2.5), ("bc", -4.0), ("▁", -1.5), ("▁a", -2.75), ("aa", -4.0)]
    pieces += [("é", -6.0), ("中文", -5.0), ("the", -3.5), ("▁the", -3.25), ("he", -4.0), ("t", -5.0), ("h", -5.0), ("e", -5.0)]
    # A tie, and a word that almost loses to unknown letters.
    pieces += [("x", -2.0), ("y", -2.0), ("xy", -4.0), ("u", 9.5), ("qu", -6.0)]
    bytes_ = [(f"<0x{byte:02X}>", -12.0) for byte in range(256)] if options.get("byte_fallback") else []
    model = {"type": "Unigram", "unk_id": 0, "byte_fallback": False}
    return model | options | {"vocab": [["<unk>", 0.0], ["[CLS]", 0.0], ["[SEP]", 0.0], *(list(piece) for piece in [*pieces, *bytes_])]}


def variants():
    white = part("WhitespaceSplit")
    for name, normalizer in {
        "nothing": None,
        "clean_text": bert(clean_text=True),
        "handle_chinese_chars": bert(handle_chinese_chars=True),
        "strip_accents": bert(strip_accents=True),
        "lowercase": bert(lowercase=True),
        "lowercase, accents left to it": bert(strip_accents=None, lowercase=True),
        **{name: part(name) for name in ("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Nmt")},
        "Strip": part("Strip", strip_left=True, strip_right=True),
        "Strip left": part("Strip", strip_left=True, strip_right=False),
        "Replace a string": replace("xy", string="e"),
        "Replace by nothing": replace("", string="a "),
        "Replace blanks": replace("▁", regex=" {2,}"),
        "Replace spaces": replace(" ", regex=r"\s+"),
        "Replace spaces and line ends": replace("_", regex=r"\s{2,}|[\n\r\t]"),
        "Prepend": part("Prepend", prepend="▁x"),
        "Precompiled": charsmap(),
        "ByteLevel, normalizer": part("ByteLevel"),
        "Sequence": sequence("normalizers", part("NFKD"), part("StripAccents"), part("Lowercase"), charsmap(), part("NFC")),
        "Sequence of none": sequence("normalizers"),
    }.items():
        yield name, {"normalizer": normalizer, "pre_tokenizer": None if name in ("Strip", "Prepend") else white}
    for name, pre_tokenizer in {
        "no pre-tokenizer": None,
        "BertPreTokenizer": part("BertPreTokenizer"),
        "Whitespace": part("Whitespace"),
        "ByteLevel": part("ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True),
        "ByteLevel with a prefix": part("ByteLevel", add_prefix_space=True, trim_offsets=True),
        "ByteLevel without words": part("ByteLevel", add_prefix_space=True, trim_offsets=False, use_regex=False),
        "Metaspace": part("Metaspace", replacement="▁", prepend_scheme="always", split=True),
        "Metaspace first": sequence("pretokenizers", part("Metaspace", replacement="▁", prepend_scheme="first", split=True), part("Punctuation")),
        "Metaspace never, not split": part("Metaspace", replacement="_", prepend_scheme="never", split=False),
        "Metaspace as of old": part("Metaspace", replacement="▁", add_prefix_space=True, str_rep="▁"),
        **{f"Punctuation {behavior}": part("Punctuation", behavior=behavior) for behavior in BEHAVIORS},
        "Digits": part("Digits", individual_digits=False),
        "Digits one by one": part("Digits", individual_digits=True),
        "Split by a string": split("MergedWithPrevious", string=" "),
        "Split into GPT-2's words": split("Removed", True, regex=GPT2),
        "Split into GPT-4's words": split("Isolated", regex=GPT4 % ("{1,3}", "+")),
        "Split into Qwen's words": split("Isolated", regex=GPT4 % ("", "+")),
        "Split into Qwen 3.5's words": split("Isolated", regex=MARKS),
        "Split into GPT-4o's words": split("Isolated", regex=O200K),
        "Split into Tekken's words": split("Isolated", regex=TEKKEN),
        "CharDelimiterSplit": part("CharDelimiterSplit", delimiter="e"),
        "FixedLength": part("FixedLength", length=3),
        "UnicodeScripts": part("UnicodeScripts"),
        "Sequence of pre-tokenizers": sequence("pretokenizers", white, part("Digits", individual_digits=True), part("Punctuation")),
    }.items():
        yield name, {"pre_tokenizer": pre_tokenizer}
    for name, model in {
        "BPE": bpe(),
        "BPE, unknown": bpe(unk_token="<unk>"),
        "BPE, unknown ones as one": bpe(unk_token="<unk>", fuse_unk=True),
        "BPE, bytes": bpe(unk_token="<unk>", byte_fallback=True),
        "BPE, prefix and suffix": bpe(unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>"),
        "BPE, whole words": bpe(ignore_merges=True),
        "BPE, merges as strings": (lambda model: model | {"merges": [" ".join(pair) for pair in model["merges"]]})(bpe(unk_token="<unk>")),
        "WordPiece": word_piece(),
        "WordPiece, short words": word_piece(max_input_chars_per_word=3),
        "WordPiece without a prefix": word_piece(continuing_subword_prefix=""),
        "WordLevel": word_level(),
        "Unigram": unigram(),
        "Unigram, bytes": unigram(byte_fallback=True),
    }.items():
        meta = part("Metaspace", replacement="▁", prepend_scheme="always", split=True)
        yield name, {"model": model, "pre_tokenizer": meta if model["type"] == "Unigram" else part("Whitespace")}
    # DeBERTa's as written by versions 4 and 5 of transformers, the latter with all options.
    both, spaces = part("Strip", strip_left=True, strip_right=True), replace(" ", regex=r"\s{2,}|[\n\r\t]")
    for name, normalizer, punctuation in (
        ("DeBERTa, version 4", sequence("normalizers", both, charsmap(), replace(" ", regex=" {2,}")), []),
        (
            "DeBERTa, version 5",
            sequence("normalizers", part("Lowercase"), spaces, part("NFC"), both | {"strip_left": False}),
            [part("Punctuation", behavior="Isolated")],
        ),
    ):
        yield name, {"model": unigram(), "normalizer": normalizer, "pre_tokenizer": sequence("pretokenizers", *punctuation, meta)}
    byte_level = part("ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True)
    around = {"sep": ["[SEP]", 2], "cls": ["[CLS]", 1]}
    for name, processor in {
        "TemplateProcessing": template(),
        "BertProcessing": part("BertProcessing", **around),
        "RobertaProcessing": part("RobertaProcessing", **around, trim_offsets=True, add_prefix_space=True),
        "RobertaProcessing, offsets as they are": part("RobertaProcessing", **around, trim_offsets=False, add_prefix_space=True),
        "ByteLevel at the end": byte_level,
        "ByteLevel, then a template": sequence("processors", byte_level | {"add_prefix_space": False}, template()),
    }.items():
        yield name, {"post_processor": processor, "pre_tokenizer": byte_level}
    yield "ByteLevel trims what was put around characters of two units", {
        "normalizer": bert(handle_chinese_chars=True),
        "post_processor": byte_level | {"add_prefix_space": False},
    }
    tokens = [
        *(added("[MASK]"), added("<mask>", lstrip=True), added("happy", single_word=True), added("SPACES", lstrip=True, rstrip=True)),
        *(added("Café", normalized=True, special=False), added("caf", special=False), added("__proto__", rstrip=True), added("é", normalized=True)),
    ]
    yield "added tokens", {"added_tokens": tokens, "pre_tokenizer": white}
    yield "added tokens, normalised", {"added_tokens": tokens, "normalizer": bert(strip_accents=None, lowercase=True), "pre_tokenizer": white}
    yield "added tokens and a first Metaspace", {
        "added_tokens": tokens,
        "pre_tokenizer": part("Metaspace", replacement="▁", prepend_scheme="first", split=True),
    }


ASIDE = [
    "camelCase HTTPServer ABCdef XMLHttpRequest中AB中cD é\u0301É aB1C2 They'Re IT'S it's/ //\n/\n a/\n\u0301B !A !a \u0301\u0301AB ªºAa ǅǆ",
    "ab abc aab bab cabba the hello newest lowest zzzé中中国z hellö toString qu xy xyxy",
    "happy unhappy happy! <mask>  <mask> x SPACES y SPACES SPACESx caf Cafés __proto__  é É cafe\u0301",
    "it'ſome 'Sam 'REal 'lL'Ve \t\u0301a \u00ad\u0308b \u200b\u0301 \u0600e\u0301 \u1100e\u0301",
]
FEW = [*(TEXTS[i] for i in (2, 6, 16, 17, 36)), "\U00020000 a\U00020000"]
MORE = [TEXTS[i] for i in (5, 10, 11, 19, 22, 23, 26, 29, 39, 40, 49, 50, 51)]


def variant_cases(parts):
    """All texts if the pre-tokenized words show the effect, few if there is a model, which splits them into many tokens."""
    tokenizer = load(parts)
    mirror = "model" not in parts and "ByteLevel" not in line(parts)
    for text in (*ASIDE, *FEW, *(MORE if mirror else ())):
        yield case(tokenizer, text)
    yield case(tokenizer, "😀 ab", " é the")


# ---------------------------------------------------------------- every code point

CHUNK = 4096
# All planes with characters; of the unassigned and private ones only both ends.
STARTS = [start for start in range(0, 0x110000, CHUNK) if start >> 16 in (0, 1, 2, 3, 14) or start & 0xFFFF in (0, 0x10000 - CHUNK)]


def fold(digest, text):
    for char in text:
        digest = ((digest ^ ord(char)) * 0x01000193) & 0xFFFFFFFF
    return digest


def planes(result):
    """FNV-1a, one word at a time, over the results for each plane's code points, each between two letters."""
    digests = [0x811C9DC5] * 17
    for start in STARTS:
        codes = [c for c in range(start, start + CHUNK) if not 0xD800 <= c < 0xE000]
        digests[start >> 16] = fold(digests[start >> 16], result("".join(f"a{chr(c)}a\n" for c in codes)))
    return digests


def code_points():
    """The results for each part of a tokenizer."""
    normalizers_ = {name: part(name) for name in ("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents")}
    normalizers_["BertNormalizer"] = bert(True, True, True, True)
    words = {name: part(name) for name in ("BertPreTokenizer", "Whitespace")}
    words |= {"Digits": part("Digits", individual_digits=True), "GPT-4": split("Isolated", regex=GPT4 % ("{1,3}", "+"))}
    words |= {"UnicodeScripts": part("UnicodeScripts")}
    words |= {"Qwen 3.5": split("Isolated", regex=MARKS), "GPT-4o": split("Isolated", regex=O200K)}
    result = []
    for name, normalizer in normalizers_.items():
        made = load({"normalizer": normalizer}).normalizer
        result.append({"name": name, "normalizer": normalizer, "planes": planes(made.normalize_str)})
    for name, pre_tokenizer in words.items():
        made = load({"pre_tokenizer": pre_tokenizer}).pre_tokenizer
        lengths = lambda text: "".join(chr(len(word)) for word, _ in made.pre_tokenize_str(text))
        result.append({"name": name, "preTokenizer": pre_tokenizer, "planes": planes(lengths)})
    return result


# ---------------------------------------------------------------- tokenizer_config.json

# Checkpoints whose tokenizer_config.json contradicts tokenizer.json: the expected results are those of transformers'
# tokenizers.
SETTINGS = [
    ("tiny-bert", {"do_lower_case": False}),
    ("tiny-bert", {"strip_accents": False}),
    ("tiny-bert", {"tokenize_chinese_chars": False}),
    ("tiny-bert", {"do_lower_case": False, "strip_accents": True}),
    ("tiny-bert", {"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"}),
    ("tiny-distilbert", {"do_lower_case": False}),
    ("tiny-roberta", {"add_prefix_space": True}),
]
SETTINGS_TEXTS = [4, 5, 7, 8, 15, 17, 18, 22, 23, 25, 35]


def settings():
    for name, changes in SETTINGS:
        folder = common.TESTDATA / "models" / name
        config = json.loads((folder / "tokenizer_config.json").read_text()) | changes
        with tempfile.TemporaryDirectory() as place:
            for file in ("config.json", "tokenizer.json"):
                shutil.copy(folder / file, place)
            (pathlib.Path(place) / "tokenizer_config.json").write_text(json.dumps(config))
            made = transformers.AutoTokenizer.from_pretrained(place)
        made.backend_tokenizer.no_padding()
        all_cases = [case(made.backend_tokenizer, TEXTS[index]) for index in SETTINGS_TEXTS]
        all_cases += [case(made.backend_tokenizer, *pair) for pair in PAIRS]
        yield name, changes, config, all_cases


# ---------------------------------------------------------------- files


def load(parts):
    return Tokenizer.from_str(json.dumps({"version": "1.0", **BASE, "added_tokens": [], "model": MIRROR, **parts}))


def line(value):
    return json.dumps(value, separators=(",", ":"))


def write(name, head, key, entries):
    path = FOLDER / f"{name}.json"
    body = ",\n".join(entries)
    text = f"{line({'tokenizers': tokenizers.__version__, **head})[:-1]},\n{line(key)}:[\n{body}\n]}}\n"
    json.loads(text)
    path.write_text(text)
    print(f"{path.relative_to(common.ROOT)}: {len(entries)} entries, {len(text)} bytes")


def generate():
    FOLDER.mkdir(exist_ok=True)
    fetch()
    for name, file in [("all-MiniLM-L6-v2", "models/all-MiniLM-L6-v2")] + [(name, f"testdata/models/{name}") for name in CHECKPOINTS]:
        tokenizer = Tokenizer.from_file(str(common.ROOT / file / "tokenizer.json"))
        write(name, {"file": f"{file}/tokenizer.json"}, "cases", [line(c) for c in cases(tokenizer)])
    made = []
    for name, parts in variants():
        body = ",\n".join(line(c) for c in variant_cases(parts))
        made.append(f'{{"name":{line(name)},"parts":{line(parts)},"cases":[\n{body}\n]}}')
    write("variants", {"model": MIRROR}, "variants", made)
    made = []
    for name, changes, config, all_cases in settings():
        body = ",\n".join(line(c) for c in all_cases)
        made.append(f'{{"checkpoint":{line(name)},"changes":{line(changes)},"config":{line(config)},"cases":[\n{body}\n]}}')
    write("settings", {"transformers": transformers.__version__}, "settings", made)
    write("code_points", {"chunk": CHUNK, "starts": STARTS}, "sweeps", [line(c) for c in code_points()])


if __name__ == "__main__":
    generate()
