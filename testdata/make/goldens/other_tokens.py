"""testdata/tokenizers/other_tokens.json: tokens that are only in files other than tokenizer.json, and split_special_tokens, as in transformers."""

import json
import shutil
import tempfile
from pathlib import Path

import transformers

import common
import tokenizer_cases as cases

TEXT = "word [MASK] <mask> <e1>Anna</e1> covid19 Covid20 acovid19 </E1><z><a>the"
CONFIG, MAP, IDS = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"


def token(content, **flags):
    return {"__type": "AddedToken", "content": content, "lstrip": False, "rstrip": False, "single_word": False, "normalized": False, **flags}


def changes(mask, mask_id):
    """name, files: members to add to tokenizer_config.json, and complete other files."""
    yield "nothing", {}
    yield "split_special_tokens", {CONFIG: {"split_special_tokens": True}}
    yield "additional_special_tokens", {CONFIG: {"additional_special_tokens": ["<e1>", "</e1>", "the"]}}
    yield "additional and empty extra_special_tokens", {CONFIG: {"additional_special_tokens": ["<e1>"], "extra_special_tokens": []}}
    yield "additional and extra_special_tokens", {CONFIG: {"additional_special_tokens": ["<e1>"], "extra_special_tokens": ["<z>"]}}
    yield "extra_special_tokens with flags", {CONFIG: {"extra_special_tokens": ["<e1>", token("</e1>", normalized=True, special=False)]}}
    yield "extra_special_tokens by name", {CONFIG: {"extra_special_tokens": {"q_token": "<z>", "r_token": "<a>"}}}
    words = {"1340": {"content": "Covid20"}, "1339": {"content": "covid19", "single_word": True}, "999": {"content": "<z>", "special": True}}
    yield "added_tokens_decoder", {CONFIG: {"added_tokens_decoder": words}}
    yield "other tokens by name", {CONFIG: {"ent_token": "<e1>", "other_token": token("<z>", rstrip=True), "add_some_token": True}}
    yield "usual tokens by name", {CONFIG: {"sep_token": "<z>", "bos_token": token("<e1>", lstrip=True)}}
    for flags in ({"special": False}, {"special": True, "lstrip": True}, {"special": False, "normalized": False, "single_word": True}):
        for splits in (False, True):
            config = {"added_tokens_decoder": {mask_id: {"content": mask, **flags}}, "split_special_tokens": splits}
            yield f"the mask, {flags}, split {splits}", {CONFIG: config}
    yield "split, and others", {
        CONFIG: {
            "split_special_tokens": True,
            "additional_special_tokens": ["<e1>"],
            "added_tokens_decoder": {"1400": {"content": "<z>", "normalized": False}},
        }
    }
    old_map = {"ent_token": {"content": "<z>", "lstrip": True}, "additional_special_tokens": ["<e1>"], "cls_token": "<a>"}
    old_ids = {"</e1>": 1501, "covid19": 1500, "<e1>": 1502, mask: int(mask_id)}
    yield "special_tokens_map.json", {MAP: old_map}
    yield "special_tokens_map.json, and extra tokens twice", {CONFIG: {"additional_special_tokens": ["<a>"]}, MAP: {"extra_special_tokens": ["<z>"]}}
    yield "added_tokens.json", {IDS: old_ids}
    yield "both", {MAP: old_map, IDS: old_ids}
    yield "both, with added_tokens_decoder", {CONFIG: {"added_tokens_decoder": {}}, MAP: old_map, IDS: old_ids}


def runs():
    for name in cases.CHECKPOINTS:
        source = common.TESTDATA / "models" / name
        config = json.loads((source / CONFIG).read_text()) if (source / CONFIG).exists() else {}
        added = json.loads((source / "tokenizer.json").read_text())["added_tokens"]
        mask = next(each for each in added if each["content"] in ("[MASK]", "<mask>"))
        for what, files in changes(mask["content"], str(mask["id"])):
            # Uses tokenizer.json instead of the vocabulary conversion of a class.
            written = {CONFIG: {**config, "tokenizer_class": "PreTrainedTokenizerFast", **files.get(CONFIG, {})}}
            written.update({key: value for key, value in files.items() if key != CONFIG})
            with tempfile.TemporaryDirectory() as folder:
                for file in ("tokenizer.json", "config.json"):
                    shutil.copy(source / file, folder)
                for file, value in written.items():
                    (Path(folder) / file).write_text(json.dumps(value))
                tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
                encoding = tokenizer(TEXT)
                ids, tokens = encoding["input_ids"], encoding.tokens()
                run = {"checkpoint": name, "what": what, "files": written, "ids": ids, "tokens": tokens, "size": len(tokenizer)}
                yield {**run, "text": tokenizer.decode(ids, skip_special_tokens=True)}


def generate():
    cases.write("other_tokens", {"transformers": transformers.__version__, "text": TEXT}, "runs", [cases.line(run) for run in runs()])


if __name__ == "__main__":
    generate()
