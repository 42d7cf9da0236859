"""testdata/tokenizers/options.json: texts without special tokens, and texts that are truncated at the start, as in Hugging Face tokenizers."""

from tokenizers import Tokenizer

import common
import tokenizer_cases as cases


def runs(tokenizer):
    tokenizer.no_padding()
    for text in cases.TEXTS[:40]:
        yield cases.case(tokenizer, text, special=False)
    for first, second in cases.PAIRS:
        yield cases.case(tokenizer, first, second, special=False)
    for special in (True, False):
        single, pair = (len(tokenizer.encode("", second, add_special_tokens=special).ids) for second in (None, ""))
        for side in ("left", "right")[: 1 if special else 2]:
            for index, kept in cases.CUTS:
                yield cases.case(tokenizer, cases.TEXTS[index], max_length=kept + single, special=special, side=side)
            for index, kept in cases.PAIR_CUTS:
                yield cases.case(tokenizer, *cases.PAIRS[index], max_length=kept + pair, special=special, side=side)


def generate():
    made = []
    for name in cases.CHECKPOINTS:
        tokenizer = Tokenizer.from_file(str(common.TESTDATA / "models" / name / "tokenizer.json"))
        made.append(cases.line({"checkpoint": name, "cases": list(runs(tokenizer))}))
    cases.write("options", {}, "runs", made)


if __name__ == "__main__":
    generate()
