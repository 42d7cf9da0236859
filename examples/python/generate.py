"""Continues a text with a language model and prints it while the model writes: python examples/python/generate.py MODEL TEXT

MODEL is a folder or a .gguf file."""

import sys

import attn


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    _, path, text = sys.argv
    try:
        model = attn.TextModel.load(path)
        print(text, end="")
        made = model.generate(text, max_new_tokens=24, on_token=lambda token: print(token.text, end="", flush=True))
        print(f"\n\n{made.finish_reason} after {len(made.ids)} tokens")
        print(f"perplexity of your text: {model.score_tokens(text).perplexity:.1f}")
    except attn.AttnError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
