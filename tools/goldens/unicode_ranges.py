"""Writes src/attn/io/unicode_ranges.hpp: what Hugging Face's tokenizers (the Rust library) take characters for, swept over all code points.

    python tools/goldens/unicode_ranges.py          # in the environment of make.sh

Their tables are of several ages (general categories of Unicode 8, decompositions of Unicode 9, lower case and words of today), so no Unicode
library agrees with them everywhere. C++ asks utf8proc where it does and these ranges where it may not.
"""

import unicodedata
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ACUTE_IOTA = "\u0345"  # combining class 240, the highest: whatever has a lower one but 0 is moved before it

nfd = normalizers.NFD().normalize_str
lower = normalizers.Lowercase().normalize_str


def bert(**options):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **options}).normalize_str


clean, accents, chinese = bert(clean_text=True), bert(strip_accents=True), bert(handle_chinese_chars=True)


def pieces(text, split=pre_tokenizers.BertPreTokenizer()):
    return [piece for piece, _ in split.pre_tokenize_str(text)]


def new(c):
    """Not in Python's Unicode, and so perhaps not in utf8proc's."""
    return unicodedata.category(chr(c)) == "Cn"


word_after = Tokenizer(models.WordPiece({"[UNK]": 0, "X": 1}, unk_token="[UNK]"))
word_after.add_tokens([AddedToken("X", single_word=True, normalized=False)])


def ranges(belongs, bridge=lambda c: False):
    """[first, last] of the code points that belong; two are joined across those that `bridge` calls harmless."""
    found = []
    for c in CODE_POINTS:
        if not belongs(c):
            continue
        if found and all(bridge(between) for between in range(found[-1][1] + 1, c)):
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


TABLES = [
    ("kRemoved", "clean_text takes them out: categories Cc, Cf and Co, but unassigned ones stay.", ranges(lambda c: clean(f"a{chr(c)}b") == "ab")),
    ("kWhiteSpace", "Property White_Space.", ranges(lambda c: pieces(f"a{chr(c)}b") == ["a", "b"])),
    ("kChinese", "handle_chinese_chars puts spaces around them.", ranges(lambda c: chinese(chr(c)) == f" {chr(c)} ")),
    ("kNonspacingMarks", "Category Mn, which strip_accents takes out.", ranges(lambda c: accents(f"a{chr(c)}") == "a")),
    ("kPunctuation", "ASCII punctuation and categories P.", ranges(lambda c: pieces(f"a{chr(c)}b") == ["a", chr(c), "b"])),
    (
        "kReordered",
        "All that have a combining class but 0, and neighbours that never will have one: newer marks have class 0.",
        ranges(
            lambda c: chr(c) == ACUTE_IOTA or nfd(ACUTE_IOTA + chr(c)) == chr(c) + ACUTE_IOTA,
            lambda c: not new(c) and unicodedata.combining(chr(c)) == 0,
        ),
    ),
    ("kAstralDecompositions", "Above U+FFFF: newer ones are left whole.", ranges(lambda c: c > 0xFFFF and nfd(chr(c)) != chr(c))),
    (
        "kNewWords",
        "Characters of words (\\\\w) that an older utf8proc has not heard of.",
        ranges(lambda c: new(c) and 1 not in word_after.encode(f"X{chr(c)}").ids),
    ),
]


def rows(items, width=146):
    line = ""
    for item in items:
        if len(line) + len(item) + 1 > width:
            yield line
            line = ""
        line += (" " if line else "") + item
    yield line


def main():
    lowered = [(c, [ord(each) for each in lower(chr(c))]) for c in CODE_POINTS if new(c) and lower(chr(c)) != chr(c)]
    assert all(len(to) == 1 for _, to in lowered)
    special = [c for c in CODE_POINTS if len(lower(chr(c))) > 1]
    assert special == [0x130] and lower("\u0130") == "i\u0307"
    out = [
        f"// Written by tools/goldens/unicode_ranges.py from tokenizers {tokenizers.__version__}: do not edit.",
        "#pragma once",
        "",
        "namespace attn::detail {",
        "",
        "struct CodePointRange {",
        "  char32_t first, last;",
        "};",
        "struct LowerCase {",
        "  char32_t upper, lower;",
        "};",
        "",
        "// clang-format off",
    ]
    for name, words, table in TABLES:
        out += [f"/// {words}".replace("\\\\", "\\"), f"inline constexpr CodePointRange {name}[] = {{"]
        out += [f"  {row}" for row in rows([f"{{0x{first:X},0x{last:X}}}," for first, last in table])]
        out += ["};"]
    out += ["/// Lower case that an older utf8proc has not heard of.", "inline constexpr LowerCase kNewLowerCase[] = {"]
    out += [f"  {row}" for row in rows([f"{{0x{c:X},0x{to[0]:X}}}," for c, to in lowered])]
    out += ["};", "// clang-format on", "", "}  // namespace attn::detail", ""]
    Path(__file__).parents[2].joinpath("src/attn/io/unicode_ranges.hpp").write_text("\n".join(out))


if __name__ == "__main__":
    main()
