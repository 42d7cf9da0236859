"""Small tokenizers of every kind, as transformers writes them: WordPiece, byte-level BPE, Unigram.

The trainers below learn the pieces from the lines below. Those of the tokenizers package break ties by the order of hash maps, but goldens are
compared byte for byte. Unigram is trained by sentencepiece with one thread."""

import collections
import io
import string
import tempfile
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    AlbertTokenizer,
    BertTokenizer,
    DebertaV2Tokenizer,
    DistilBertTokenizer,
    MPNetTokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    XLMRobertaTokenizer,
)

LINES = """
A happy person smiles at the child.
A sad person walks home in the rain.
The film was not bad at all, it was great!
The film was bad, the worst of the year.
Is it good? Yes, it is very good.
Was it the best film of the year? No, it was not.
The old man sleeps; he is tired.
The young woman reads a book about the sea.
The animal didn't cross the street because it was too tired.
The trophy does not fit in the suitcase because it is too big.
She had lost the letter that he wrote to her.
Time flies like an arrow; fruit flies like a banana.
I can open the can and I can close it.
The children were playing in the garden while their mother was reading.
He walked slowly, talking and laughing with his friends.
Nothing works: the screen is black, the button is broken.
The battery lasts 10 hours, the price is 99.50 dollars (or 100).
This product is wonderful, I use it every day and I love it.
They're sure that we've been there, I'm not; he'd say so, she'll see.
Unhappiness and happiness, kindness and unkindness.
Reading, writing, playing, walking, thinking, talking.
The king and the queen, the man and the woman, the prince and the princess.
email@example.org, 50 % off - 3 + 4 = 7 & more #1 / 2 * 5
Das schöne Mädchen grüßt die Straße, überraschend schön!
Le garçon a mangé une crêpe au café, où est la fenêtre?
El niño pequeño está en la montaña.
Зима была холодной, а лето тёплым.
Η ζωή είναι ωραία, ο δρόμος μεγάλος.
السلام عليكم
שלום עולם
今日は天気がいい。
中文很好
안녕하세요
नमस्ते
😀 🎉 👍
""".strip().split("\n")

# Small examples of a charsmap: widths, ligatures, white space, composition, expansion, removal.
RULES = [
    *((chr(0xFF01 + i), chr(0x21 + i)) for i in range(94)),
    *((chr(code), " ") for code in (0x09, 0x0A, 0x0D, 0xA0, 0x2003, 0x2009, 0x200B, 0x3000)),
    *((chr(code), "") for code in (0x00AD, 0x200E, 0x200F, 0xFEFF)),
    *zip(("e\u0301", "a\u0300", "o\u0302", "u\u0308", "n\u0303", "c\u0327"), "éàôüñç"),
    *(("ﬁ", "fi"), ("ﬂ", "fl"), ("ﬃ", "ffi"), ("Ⅷ", "VIII"), ("½", "1⁄2"), ("²", "2"), ("…", "..."), ("㍿", "株式会社"), ("℃", "°C")),
    *(("ｶﾞ", "ガ"), ("ｶ", "カ"), ("\u1112\u1161\u11ab", "한"), ("İ", "I"), ("ǆ", "dž")),
]


def merges(words, count, join):
    """Byte pair encoding: repeats merging the most frequent pair of neighbours, `count` times. Ties go to the pair that sorts first."""
    words, found = [(list(symbols), n) for symbols, n in words.items()], []
    for _ in range(count):
        pairs = collections.Counter()
        for symbols, n in words:
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += n
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        found.append(best)
        for symbols, _ in words:
            i = 0
            while i + 1 < len(symbols):
                if (symbols[i], symbols[i + 1]) == best:
                    symbols[i : i + 2] = [join(*best)]
                i += 1
    return found


def split(normalizer, pre_tokenizer):
    words = collections.Counter()
    for line in LINES:
        text = normalizer.normalize_str(line) if normalizer else line
        words.update(word for word, _ in pre_tokenizer.pre_tokenize_str(text))
    return words


def word_piece(first, last=(), lowercase=True, count=150):
    """A WordPiece vocabulary: special tokens, all occurring and all ASCII characters, pieces, and `last` at the end."""
    normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    words = split(normalizer, pre_tokenizers.BertPreTokenizer())
    marked = collections.Counter()
    for word, n in words.items():
        marked[(word[0], *("##" + c for c in word[1:]))] += n
    letters = string.digits + (string.ascii_lowercase if lowercase else string.ascii_letters)
    ascii = {*letters, *("##" + c for c in letters), *string.punctuation}
    alphabet = sorted(ascii.union(*marked))
    join = lambda a, b: a + b.removeprefix("##")
    pieces = dict.fromkeys([*first, *alphabet, *(join(*pair) for pair in merges(marked, count, join)), *last])
    return {piece: i for i, piece in enumerate(pieces)}


def byte_level(first, last=(), count=120, normalizer=None):
    """Vocabulary and merges of byte-level BPE: special tokens, all 256 bytes, pieces, and `last` at the end."""
    words = split(normalizer, pre_tokenizers.ByteLevel(add_prefix_space=False))
    pairs = merges({tuple(word): n for word, n in words.items()}, count, str.__add__)
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = dict.fromkeys([*first, *bytes_, *(a + b for a, b in pairs), *last])
    return {piece: i for i, piece in enumerate(pieces)}, pairs


BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def bert(lowercase=True):
    return BertTokenizer(vocab=word_piece(BERT, lowercase=lowercase), do_lower_case=lowercase, model_max_length=64)


def distilbert():
    return DistilBertTokenizer(vocab=word_piece(BERT, lowercase=False), do_lower_case=False)


def mpnet():
    return MPNetTokenizer(vocab=word_piece(("<s>", "<pad>", "</s>", "<unk>", "[UNK]"), ("<mask>",)), model_max_length=32)


def roberta():
    vocab, pairs = byte_level(("<s>", "<pad>", "</s>", "<unk>"), ("<mask>",))
    mask = AddedToken("<mask>", lstrip=True, rstrip=False, normalized=False, special=True)
    return RobertaTokenizer(vocab=vocab, merges=pairs, mask_token=mask, model_max_length=64)


def unigram(kind, name, mask, more, **options):
    """Trained by sentencepiece, converted by transformers."""
    with tempfile.TemporaryDirectory() as folder:
        rules, model = Path(folder, "rules.tsv"), Path(folder, name)
        code = lambda text: " ".join(f"{ord(c):X}" for c in text)
        rules.write_text("".join(f"{code(a)}\t{code(b)}\n" for a, b in RULES))
        written = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES),
            model_writer=written,
            model_type="unigram",
            vocab_size=280,
            character_coverage=1.0,
            normalization_rule_tsv=str(rules),
            num_threads=1,
            minloglevel=2,
            **options,
        )
        model.write_bytes(written.getvalue())
        if mask is not None:
            more = {"mask_token": AddedToken(mask, lstrip=True, rstrip=False, normalized=False, special=True), **more}
        return kind.from_pretrained(folder, model_max_length=64, **more)


def xlm_roberta():
    return unigram(XLMRobertaTokenizer, "sentencepiece.bpe.model", "<mask>", {})


def albert():
    special = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
    types = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    return unigram(AlbertTokenizer, "spiece.model", "[MASK]", types, **special)


def deberta(**options):
    """The same with the special tokens of DeBERTa."""
    ids = {f"{name}_id": i for i, name in enumerate(("pad", "bos", "eos", "unk"))}
    pieces = dict(zip(("pad_piece", "bos_piece", "eos_piece", "unk_piece"), ("[PAD]", "[CLS]", "[SEP]", "[UNK]")))
    return unigram(DebertaV2Tokenizer, "spm.model", None, options, **ids, **pieces)


def modernbert():
    """Like the published tokenizer of ModernBERT: NFC, BERT's special tokens, and runs of spaces as separate tokens."""
    vocab, pairs = byte_level(BERT, normalizer=normalizers.NFC())
    tokenizer = Tokenizer(models.BPE(vocab, pairs))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[(t, vocab[t]) for t in ("[CLS]", "[SEP]")]
    )
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in (8, 4, 2)])
    names = {f"{token[1:-1].lower()}_token": token for token in BERT if token != "[MASK]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        mask_token=AddedToken("[MASK]", lstrip=True, normalized=False, special=True),
        model_input_names=["input_ids", "attention_mask"],
        model_max_length=64,
        **names,
    )
