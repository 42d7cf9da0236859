"""models.py OUT: small static models, and what model2vec and WordLlama compute with them."""

import json
import sys
from pathlib import Path

import numpy as np
from model2vec import StaticModel
from model2vec.persistence import save_pretrained
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from wordllama.inference import WordLlamaInference

TEXTS = [
    "a warm film with a good ending",
    "The soup was cold, and the waiter slow!",
    "",
    "   ",
    "zqx zqx",
    "a zqx film",
    "unbelievable films",
    "Übergröße für Ärzte",
    "日本 film 😀 soup",
    "soup " * 20,
    "😀" * 100 + " film",
    "the battery lasts two days " * 40,
]
WIDTH = 16


def matrix(rows, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal((rows, WIDTH)).astype(dtype)


def word_piece():
    """BERT's: words in lowercase, some pieces, [CLS] and [SEP]."""
    words = "a warm film with good ending the soup was cold and waiter slow un battery lasts two days , ! ##s ##believ ##able"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words.split(), "uber", "##große", "fur", "日"]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.add_special_tokens(tokens[:4])
    tokenizer.enable_padding()
    return tokenizer


def unigram():
    """XLM-RoBERTa's: an odd number of tokens, the unknown one last."""
    words = "▁a ▁warm ▁film ▁with ▁good ▁ending ▁the ▁soup ▁was ▁cold ▁and ▁slow ▁ s o u p f i l m".split()
    tokenizer = Tokenizer(models.Unigram([*((word, -float(i)) for i, word in enumerate(words)), ("<unk>", 0.0)], unk_id=len(words)))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def byte_pairs():
    """Llama 2's: characters that are no token become bytes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=["<unk>", "<s>", "</s>", *bytes_], show_progress=False)
    tokenizer.train_from_iterator([text for text in TEXTS if text.isascii()], trainer)
    file = json.loads(tokenizer.to_str())
    file["added_tokens"] = file["added_tokens"][:3]  # bytes in a text are no tokens
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def write_model2vec(folder, tokenizer, config, embeddings, **tensors):
    save_pretrained(folder, embeddings, tokenizer, config, create_model_card=False, **tensors)
    return StaticModel.from_pretrained(folder)


def main(out):
    results = {}
    tokenizer = word_piece()
    rows = tokenizer.get_vocab_size()
    model = write_model2vec(out / "tiny-model2vec", tokenizer, {"normalize": True, "max_length": 16}, matrix(rows, 1))
    results["tiny-model2vec"] = model.encode(TEXTS)
    results["tiny-model2vec.sum"] = model.encode(TEXTS, normalize=False)
    results["tiny-model2vec.short"] = model.encode(TEXTS, normalize=False, max_length=4)

    tokenizer = unigram()
    mapping = np.random.default_rng(3).integers(0, 7, tokenizer.get_vocab_size())
    weights = np.random.default_rng(4).random(len(mapping)) + 0.5
    folder = out / "tiny-model2vec-clusters"
    tensors = {"mapping": mapping, "weights": weights}
    model = write_model2vec(folder, tokenizer, {"max_length": None}, matrix(7, 2, np.float16), **tensors)
    results["tiny-model2vec-clusters.float16"] = model.encode(TEXTS).astype(np.float32)
    model.embedding = model.embedding.astype(np.float32)  # else the means are rounded to float16
    results["tiny-model2vec-clusters"] = model.encode(TEXTS)
    results["tiny-model2vec-clusters.short"] = model.encode(TEXTS, max_length=4)

    tokenizer = byte_pairs()
    folder = out / "tiny-wordllama"
    folder.mkdir(parents=True, exist_ok=True)
    embedding = matrix(tokenizer.get_vocab_size(), 5, np.float16)
    save_file({"embedding.weight": embedding}, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    model = WordLlamaInference(embedding, tokenizer)
    results["tiny-wordllama"] = model.embed(TEXTS)
    # WordLlama divides 0 by 0 for the empty text.
    results["tiny-wordllama.unit"] = np.nan_to_num(model.embed(TEXTS, norm=True))
    results["tiny-wordllama.dim8"] = WordLlamaInference(embedding[:, :8], tokenizer).embed(TEXTS)

    save_file(results, out / "vectors.safetensors", metadata={"texts": json.dumps(TEXTS)})


main(Path(sys.argv[1]))
