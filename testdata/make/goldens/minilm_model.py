"""testdata/models/all-MiniLM-L6-v2.safetensors and .words.json: results of all-MiniLM-L6-v2 for real and unusual texts, and nearest neighbours in its
word embeddings."""

import json

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer

import common
import minilm
import models
from fetch_models import fetch
from words import nearest

INSIDE = ["The cat sat on the mat.", "Time flies like an arrow.", "A [MASK] is not a 猫 😀"]

SENTENCES = [
    "A happy person",
    "That person is glad.",
    "The stock market fell by three percent on Monday.",
    "How do I reset my password?",
    "Where can I find the nearest train station?",
    "Attention is all you need.",
    "She didn't say that he couldn't come, did she?",
    "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG!!!",
    "Ein schöner Tag für Übungen; naïve café, Ελλάδα: ΟΔΥΣΣΕΥΣ, İstanbul.",
    "price: $1,299.99 (-20 %), e-mail me@example.org, see https://example.org/a_b?c=1#d",
    "",
    " \t\n\u00a0\u3000 ",
    "😀",
    "👩‍👩‍👧‍👦 and 🏳️‍🌈 went to 🇫🇷 🤷🏽‍♀️",
    "我喜欢机器学习。",
    "今日はいい天気ですね、カタカナとﾊﾝｶｸも。",
    "한국어 문장입니다.",
    "هذا نص باللغة العربية مع أرقام ١٢٣",
    "שלום, מה שלומך היום?",
    "Z\u0351\u036b\u0343\u036aa\u0308\u0301l\u0327go\u0300 c\u0327a va? e\u0301 = é, n\u0303 = ñ, \u1100\u1161\u11a8",
    "a" * 10_000,
    "My [MASK] is [UNK] and [SEP] is not [CLS]; [mask] is a word, [PAD] is not.",
    "constructor __proto__ toString hasOwnProperty null undefined NaN",
    "zero\u200bwidth, soft\u00adhyphen, nul\u0000 bell\u0007 bom\ufeff replacement\ufffd",
    "𝓜𝓪𝓽𝓱 𝟙𝟚𝟛 and 𠀀𠀁, ﬁne ½ ² ℃ Ⅷ",
    "supercalifragilisticexpialidocious antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "नमस्ते दुनिया, ສະບາຍດີ, สวัสดีชาวโลก",
    " ".join(f"Sentence number {i} of a text that is cut." for i in range(1, 60)),
]

NEAREST = ("king", "dog", "paris", "monday", "red", "music", "computer", "happy", "doctor", "three", "walked", "guitar", "cheese", "angry")
SIMILARITY = (("king", "queen"), ("dog", "puppy"), ("dog", "music"), ("happy", "unhappy"), ("paris", "france"), ("red", "red"))
ANALOGY = (
    ("man", "king", "woman", "queen"),
    ("boy", "girl", "son", "daughter"),
    ("uncle", "aunt", "brother", "sister"),
    ("paris", "france", "rome", "italy"),
    ("germany", "berlin", "japan", "tokyo"),
    ("walk", "walked", "talk", "talked"),
    ("good", "better", "bad", "worse"),
    ("slow", "slower", "fast", "faster"),
    ("car", "cars", "tree", "trees"),
    ("he", "his", "she", "her"),
)


def utf16(text):
    """The offset of every code point of text, and of its end, in UTF-16 code units."""
    starts = [0]
    for c in text:
        starts.append(starts[-1] + (2 if ord(c) > 0xFFFF else 1))
    return starts


def offsets(encoded, text):
    starts = utf16(text)
    return [None if added else [starts[a], starts[b]] for (a, b), added in zip(encoded.offsets, encoded.special_tokens_mask)]


def numbers(folder):
    # Uses the model's own limit instead of the 128 in the published tokenizer.json, as sentence-transformers does.
    limit = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(limit)
    single, double = models.load(folder, torch.float32), models.load(folder, torch.float64)
    golden = common.GoldenFile(**minilm.ABOUT, transformers=transformers.__version__, max_length=str(limit))

    def forward(text):
        encoded = tokenizer.encode(text)
        inputs = {"input_ids": encoded.ids, "attention_mask": encoded.attention_mask, "token_type_ids": encoded.type_ids}
        inputs = {name: torch.tensor([values]) for name, values in inputs.items()}
        about = {"pooling": "mean", "normalize": True}
        return encoded, inputs, models.run(single, inputs, about), models.run(double, inputs, about)

    texts = INSIDE + SENTENCES
    described = {"name": "sentences", "op": "embed", "texts": texts, "ids": [], "offsets": [], "truncated": [], "errors": [], "expected": {}}
    golden.cases.append(described)
    embeddings = []
    for i, text in enumerate(texts):
        encoded, inputs, values32, values64 = forward(text)
        described["ids"].append(encoded.ids)
        described["offsets"].append(offsets(encoded, text))
        described["truncated"].append(bool(encoded.overflowing))
        described["errors"].append(common.max_error(values32["embedding"], values64["embedding"]))
        embeddings.append(values64["embedding"])
        if i < len(INSIDE):
            case = {"name": f"inside_{i}", "op": "text_model", "options": {}, "texts": [text], "tokens": [encoded.tokens]}
            case |= {"inputs": list(inputs), "expected": {}}
            golden.cases.append(case)
            for name, value in inputs.items():
                golden.add(f"{case['name']}/{name}", value)
            for name, value in values64.items():
                golden.expect(case, name, values32[name], value)
    assert max(described["errors"]) < 1e-6
    described["expected"]["embedding"] = max(described["errors"])
    golden.add("sentences/expected.embedding", torch.cat(embeddings))
    golden.write(models.FOLDER / "all-MiniLM-L6-v2.safetensors", limit=1_000_000)


def words(folder):
    table = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"].double()
    directions = F.normalize(table, dim=-1)
    vocabulary = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    by_id = {i: word for word, i in vocabulary.items()}

    result = {"similarity": [], "nearest": [], "analogy": []}
    for a, b in SIMILARITY:
        result["similarity"].append({"a": a, "b": b, "similarity": round(float(directions[vocabulary[a]] @ directions[vocabulary[b]]), 12)})
    for word in NEAREST:
        id_ = vocabulary[word]
        result["nearest"].append({"target": word, "k": 5, "expected": nearest(table, by_id, table[id_], {id_}, 5)})
    for a, b, c, answer in ANALOGY:
        ids = [vocabulary[word] for word in (a, b, c)]
        found = nearest(table, by_id, table[ids[1]] - table[ids[0]] + table[ids[2]], set(ids), 5)
        assert found[0]["word"] == answer, (a, b, c, found)
        result["analogy"].append({"a": a, "b": b, "c": c, "k": 5, "expected": found})

    lines = lambda entries: "[\n" + ",\n".join("    " + json.dumps(entry, ensure_ascii=False) for entry in entries) + "\n  ]"
    text = "{\n" + ",\n".join(f'  "{name}": {lines(entries)}' for name, entries in result.items()) + "\n}\n"
    assert json.loads(text) == result
    path = models.FOLDER / "all-MiniLM-L6-v2.words.json"
    path.write_text(text, encoding="utf-8")
    print(f"{path.relative_to(common.ROOT)}: {len(text)} bytes")


def generate():
    folder = fetch()
    numbers(folder)
    words(folder)


if __name__ == "__main__":
    generate()
