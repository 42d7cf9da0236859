"""The classes of each code point in Hugging Face tokenizers, determined by running that library on all of them. Writes for the package
web/lib/src/tokenizer/unicode_table.ts and unicode_scripts.ts, for C++ src/attn/io/tokenizer/unicode_table.hpp.

Parts of the library come from crates with different Unicode versions (8 for punctuation and marks, 9 for normalisation, 16 and 17 elsewhere), and
\\p{...} of JavaScript engines and utf8proc have yet others, so the results are stored. Takes three minutes.
Usage: python testdata/make/goldens/unicode_classes.py
"""

import collections
import json
import struct
import subprocess
import unicodedata
from pathlib import Path

import tokenizers
from tokenizers import Regex
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

ROOT = Path(__file__).resolve().parents[3]
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def becomes(normalizer, expected, make=chr):
    return {c for c in CODE_POINTS if normalizer.normalize_str(make(c)) == expected(c)}


def splits(pre_tokenizer, parts):
    """Code points that split a text of two letters around them into this many parts."""
    return {c for c in CODE_POINTS if len(pre_tokenizer.pre_tokenize_str("a" + chr(c) + "a")) == parts}


def matches(pattern):
    split = P.Split(Regex(pattern), "isolated")
    return {c for c in CODE_POINTS if len(split.pre_tokenize_str("\0" + chr(c) + "\0")) == 3}


def charsmap(key, value):
    """A Precompiled normaliser with one rule: a double array with one path."""
    units = [0] * 65536
    units[0] = 256 << 10
    position, offset = 256, 1024
    for i, byte in enumerate(key.encode()):
        last = i == len(key.encode()) - 1
        units[position ^ byte] = byte | offset << 10 | last << 8
        position, offset = position ^ byte ^ offset, offset * 2
    units[position] = 1 << 31
    return N.Precompiled(struct.pack("<I", 4 * len(units)) + struct.pack(f"<{len(units)}I", *units) + value.encode() + b"\0")


def bert(**options):
    return N.BertNormalizer(**(dict.fromkeys(("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"), False) | options))


# Characters that engines normalise but older Unicode tables do not: new compositions and their first letters, new
# combining classes.
NEWER = """
const known = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const newer = new Set();
for (let c = 0; c < 0x110000; c++) {
  if (c >= 0xd800 && c < 0xe000) continue;
  const s = String.fromCodePoint(c);
  for (const form of ['NFD', 'NFC', 'NFKD', 'NFKC'])
    if (s.normalize(form) !== (known[form][c] ?? s)) {
      newer.add(c);
      if (form === 'NFD') newer.add(s.normalize(form).codePointAt(0));
    }
  if (('a\\u0345' + s).normalize('NFD') !== (known.marks[c] ?? 'a\\u0345' + s.normalize('NFD'))) newer.add(c);
}
console.log(JSON.stringify([...newer]));
"""


def newer():
    known = {}
    for form in ("NFD", "NFC", "NFKD", "NFKC"):
        normalizer = getattr(N, form)()
        known[form] = {c: normalizer.normalize_str(chr(c)) for c in CODE_POINTS}
    normalizer = N.NFD()
    known["marks"] = {c: normalizer.normalize_str("a\u0345" + chr(c)) for c in CODE_POINTS}
    changed = {name: {c: text for c, text in of.items() if name == "marks" or text != chr(c)} for name, of in known.items()}
    out = subprocess.run(["node", "-e", NEWER], input=json.dumps(changed), capture_output=True, text=True, check=True).stdout
    return set(json.loads(out))


def classes():
    acute = charsmap("\u0301", "Y")
    a = charsmap("a", "X")
    return {
        "LETTER": matches(r"\p{L}"),
        "NUMBER": matches(r"\p{N}"),
        "WORD": splits(P.Whitespace(), 1),
        "PUNCTUATION": splits(P.Punctuation(), 3),
        "SPACE": splits(P.WhitespaceSplit(), 2),
        "NUMERIC": splits(P.Digits(individual_digits=True), 3),
        "CONTROL": becomes(bert(clean_text=True), lambda c: ""),
        "CHINESE": becomes(bert(handle_chinese_chars=True), lambda c: f" {chr(c)} "),
        "MARK": becomes(bert(strip_accents=True), lambda c: ""),
        "ACCENT": becomes(N.StripAccents(), lambda c: ""),
        # Precompiled processes grapheme clusters: characters that join the cluster before them, end a cluster, or
        # join the next one.
        "EXTEND": becomes(a, lambda c: "X", lambda c: "a" + chr(c)),
        "BREAK": becomes(acute, lambda c: chr(c) + "Y", lambda c: chr(c) + "\u0301\u0301"),
        "PREPEND": becomes(a, lambda c: chr(c) + "X\u0301", lambda c: chr(c) + "a\u0301"),
        "NEWER": newer(),
        # Characters that o200k accepts at the beginning and inside of a word.
        "UPPER": matches(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
        "LOWER": matches(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
        "ANY_MARK": matches(r"\p{M}"),
    }


def lower_case_since_14():
    """[first, last, distance]: characters that have had a lowercase form since Unicode 14, which Python 3.11 has."""
    runs = []
    lower = N.Lowercase()
    for c in CODE_POINTS:
        now = lower.normalize_str(chr(c))
        if now != chr(c).lower() and not (len(now) == 1 and now == "\u03c3"):
            assert len(now) == 1, hex(c)
            distance = ord(now) - c
            if runs and runs[-1][1] == c - 1 and runs[-1][2] == distance:
                runs[-1][1] = c
            else:
                runs.append([c, c, distance])
    return runs


def number(n):
    text = ""
    while True:
        n, digit = divmod(n, 32)
        text += DIGITS[digit + (32 if n else 0)]
        if not n:
            return text


def pictographs():
    """Code points that join an emoji before them. Only two-byte emojis matter (precompiled.cpp), so © is tested. The package uses its engine."""
    joined = charsmap("\u00a9\u200d", "X")
    return becomes(joined, lambda c: "\u00a9\u200d" + chr(c), lambda c: "\u00a9\u200d" + chr(c))


def scripts():
    """[script, number of code points] for all code points: indices of scripts in UnicodeScripts, 0 for characters of any script."""
    cut = lambda text: len(P.UnicodeScripts().pre_tokenize_str(text))
    known = {}
    runs, last = [], None
    surrogates = range(0xD800, 0xE000)
    for c in range(0x110000):
        script = 0
        if c not in surrogates and not (cut("a" + chr(c)) == cut("\u042f" + chr(c)) == 1):
            tried = [last] if last else []
            tried += [script for script in known if script != last]
            script = next((script for script in tried if cut(known[script] + chr(c)) == 1), len(known) + 1)
            known.setdefault(script, chr(c))
            last = script
        if runs and runs[-1][0] == script:
            runs[-1][1] += 1
        else:
            runs.append([script, 1])
    return runs


def runs_of(sets):
    """[class bits, number of code points], and the occurring sets of classes, the most frequent first."""
    runs = []
    for c in range(0x110000):
        bits = sum((c in members) << i for i, members in enumerate(sets.values()))
        if runs and runs[-1][0] == bits:
            runs[-1][1] += 1
        else:
            runs.append([bits, 1])
    return runs, [bits for bits, _ in collections.Counter(bits for bits, _ in runs).most_common()]


def write_package(sets):
    runs, kinds = runs_of(sets)
    lines = [
        f"// Written by testdata/make/goldens/unicode_classes.py from tokenizers {tokenizers.__version__}.",
        "",
        *(f"export const {name} = {1 << i};" for i, name in enumerate(sets)),
        "",
        "/** Letters with a lowercase since Unicode 14: first, last, distance. */",
        f"export const lowerSince14 = [{', '.join(str(n) for run in lower_case_since_14() for n in run)}];",
        "/** Sets of classes that occur. */",
        f"export const kinds = [{', '.join(map(str, kinds))}];",
        "/** Kind of each run of code points, as a letter. */",
        "export const runKinds =",
        f"  '{''.join(DIGITS[kinds.index(bits)] for bits, _ in runs)}';",
        "/** Lengths of the runs, less one: base 32, lowest digit first, 32 added to all digits but the last. */",
        "export const runLengths =",
        f"  '{''.join(number(length - 1) for _, length in runs)}';",
        "",
    ]
    write_pretty(ROOT / "web/lib/src/tokenizer/unicode_table.ts", lines)
    print(len(runs), "runs", len(kinds), "kinds", {name: len(s) for name, s in sets.items()})


def write_scripts(runs):
    lines = [
        f"// Written by testdata/make/goldens/unicode_classes.py from tokenizers {tokenizers.__version__}.",
        "",
        "/** Numbers of the scripts of all runs, 0 for any script: base 32, lowest digit first, 32 added to all digits but the last. */",
        f"export const runScripts = '{''.join(number(script) for script, _ in runs)}';",
        "/** Lengths of the runs, less one. */",
        f"export const scriptLengths = '{''.join(number(length - 1) for _, length in runs)}';",
        "",
    ]
    write_pretty(ROOT / "web/lib/src/tokenizer/unicode_scripts.ts", lines)


def write_pretty(path, lines):
    path.write_text("\n".join(lines))
    subprocess.run([ROOT / "node_modules/.bin/prettier", "--write", path], stdout=subprocess.DEVNULL, check=True)
    print(path.relative_to(ROOT), path.stat().st_size, "bytes")


# ---------------------------------------------------------------- C++


def ranges(belongs, bridge=lambda c: False):
    """[first, last] of the ranges of code points that belong; two are joined if `bridge` is true for all code points in between."""
    found = []
    for c in CODE_POINTS:
        if not belongs(c):
            continue
        if found and all(bridge(between) for between in range(found[-1][1] + 1, c)):
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


ACUTE_IOTA = "\u0345"  # combining class 240, the highest: characters with a lower one except 0 are moved before it


def reordered():
    """Characters with a combining class other than 0, in ranges that may include others of class 0. Newer marks have class 0."""
    nfd = N.NFD().normalize_str
    harmless = lambda c: unicodedata.category(chr(c)) != "Cn" and unicodedata.combining(chr(c)) == 0
    return ranges(lambda c: chr(c) == ACUTE_IOTA or nfd(ACUTE_IOTA + chr(c)) == chr(c) + ACUTE_IOTA, harmless)


def decomposed():
    """Characters that NFKD decomposes, without Hangul. utf8proc gives the library's result, because Unicode never changes decompositions."""
    nfd, nfkd = N.NFD().normalize_str, N.NFKD().normalize_str
    found = [c for c in CODE_POINTS if nfkd(chr(c)) != chr(c) and not 0xAC00 <= c < 0xD7A4]
    for c in found:
        assert nfkd(chr(c)) == unicodedata.normalize("NFKD", chr(c)) and nfd(chr(c)) == unicodedata.normalize("NFD", chr(c)), hex(c)
    members = set(found)
    return ranges(members.__contains__)


def compositions():
    """(first, second, composition), without Hangul."""
    nfd, nfc = N.NFD().normalize_str, N.NFC().normalize_str
    found = []
    for c in CODE_POINTS:
        parts = nfd(chr(c))
        if parts == chr(c) or nfc(chr(c)) != chr(c) or 0xAC00 <= c < 0xD7A4:
            continue
        first = nfc(parts[:-1])
        assert len(first) == 1 and nfc(first + parts[-1]) == chr(c), hex(c)
        found.append((ord(first), ord(parts[-1]), c))
    return sorted(found)


def lower_case_since_14_by_one():
    return [(c, c + distance) for first, last, distance in lower_case_since_14() for c in range(first, last + 1)]


def rows(items, width=146):
    line = ""
    for item in items:
        if len(line) + len(item) + 1 > width:
            yield line
            line = ""
        line += (" " if line else "") + item
    yield line


def with_starts(runs):
    at = 0
    for value, length in runs:
        yield at, value
        at += length


def write_library(sets, script_runs):
    runs, kinds = runs_of(sets)
    starts = [(at, kinds.index(bits)) for at, bits in with_starts(runs)]
    lines = [
        f"// Written by testdata/make/goldens/unicode_classes.py from tokenizers {tokenizers.__version__}: do not edit.",
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        "namespace attn::detail {",
        "",
        "// Sets of code points, as Hugging Face's tokenizers classify them.",
        *(f"inline constexpr std::uint32_t k{name.title().replace('_', '')} = 1U << {i};" for i, name in enumerate(sets)),
        "",
        "struct CodePointRange {",
        "  char32_t first, last;",
        "};",
        "struct CodePointRun {",
        "  char32_t first;",
        "  std::uint8_t kind;",
        "};",
        "struct LowerCase {",
        "  char32_t upper, lower;",
        "};",
        "struct Composition {",
        "  char32_t first, second, both;",
        "};",
        "",
        "// clang-format off",
    ]

    def table(words, kind, name, items):
        lines.extend([f"/// {words}", f"inline constexpr {kind} {name}[] = {{", *(f"  {row}" for row in rows(items)), "};"])

    script_starts = [f"{{0x{first:X},{script}}}," for first, script in with_starts(script_runs)]
    table("Scripts as UnicodeScripts tells them apart, by number; 0 goes with any.", "CodePointRun", "kScripts", script_starts)
    ranges_of = lambda found: [f"{{0x{first:X},0x{last:X}}}," for first, last in found]
    table("The sets of classes that occur.", "std::uint32_t", "kKinds", [f"0x{bits:X}," for bits in kinds])
    table("All code points in runs, each to the next one's first.", "CodePointRun", "kRuns", [f"{{0x{first:X},{kind}}}," for first, kind in starts])
    table(reordered.__doc__, "CodePointRange", "kReordered", ranges_of(reordered()))
    table(decomposed.__doc__, "CodePointRange", "kDecomposed", ranges_of(decomposed()))
    pairs = [f"{{0x{first:X},0x{second:X},0x{both:X}}}," for first, second, both in compositions()]
    table("Compositions of two characters, sorted, without Hangul.", "Composition", "kCompositions", pairs)
    lowered = [f"{{0x{upper:X},0x{lower:X}}}," for upper, lower in lower_case_since_14_by_one()]
    table("Lower case that an older utf8proc has not heard of.", "LowerCase", "kNewLowerCase", lowered)
    lines += ["// clang-format on", "", "}  // namespace attn::detail", ""]
    path = ROOT / "src/attn/io/tokenizer/unicode_table.hpp"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))
    print(path.relative_to(ROOT), len(runs), "runs", len(kinds), "kinds", path.stat().st_size, "bytes")


def generate():
    assert unicodedata.unidata_version == "14.0.0"
    sets = classes()
    write_package(sets)
    del sets["NEWER"]
    script_runs = scripts()
    write_scripts(script_runs)
    write_library(sets | {"PICTOGRAPH": pictographs() - sets["EXTEND"]}, script_runs)


if __name__ == "__main__":
    generate()
