"""Results of calls."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from html import escape
from reprlib import Repr
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast

import numpy
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[numpy.float32]
Offsets: TypeAlias = list[tuple[int, int] | None]
Trace: TypeAlias = dict[str, Floats]


_short = Repr()
_short.maxlist = _short.maxdict = 4
_short.maxstring = _short.maxother = 60


def _described(value: object) -> str:
    """Type and shape of arrays, and the beginning of long lists."""
    if isinstance(value, numpy.ndarray):
        array = cast("NDArray[Any]", value)
        return f"{array.dtype}{array.shape}"
    if isinstance(value, KeyValue):
        return f"KeyValue(key={_described(value.key)}, value={_described(value.value)})"
    if isinstance(value, list):
        items = cast("list[object]", value)
        first = items[0] if items else None
        if isinstance(first, numpy.ndarray):
            return f"[{len(items)} of {_described(cast('NDArray[Any]', first))}]"
    if isinstance(value, dict):
        parts = cast("dict[object, object]", value)
        return "{" + ", ".join(f"{key!r}: {_described(each)}" for key, each in parts.items()) + "}"
    return _short.repr(value)


class _Parts:
    """A result whose parts are also a mapping: result["output"], dict(result), **result. Parts that are None are left out."""

    _keys: ClassVar[tuple[str, ...]] = ()

    def keys(self) -> list[str]:
        """Returns the names of the parts that are there."""
        names = self._keys or [each.name for each in fields(self)]  # type: ignore[arg-type]
        return [name for name in names if getattr(self, name) is not None]

    def __getitem__(self, name: str) -> Any:
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        parts = ((each.name, getattr(self, each.name)) for each in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{name}={_described(part)}' for name, part in parts if part is not None)})"


class KeyValue(NamedTuple):
    """Keys and values of a call, for `past` of the next call: (B,Hkv,P,D) and (B,Hkv,P,Dv)."""

    key: Floats
    value: Floats


@dataclass(frozen=True, eq=False, repr=False)
class AttentionResult(_Parts):
    """Result of attention."""

    output: Floats
    """(..,L,Dv); for a layer (B,L,E)."""
    weights: Floats | None = None
    """(..,L,S), for a layer (B,H,L,S); with need_weights."""
    trace: Trace | None = None
    """Intermediate results by name; with trace."""
    present: KeyValue | None = None
    """Past and new keys and values; with past or output_present."""


@dataclass(frozen=True, eq=False, repr=False)
class EncoderResult(_Parts):
    """Result of an encoder."""

    output: Floats
    """(B,L,E)."""
    attentions: list[Floats] | None = None
    """(B,H,L,L) per layer; with output_attentions."""
    hidden_states: list[Floats] | None = None
    """layers + 1 arrays (B,L,E), the last one equals output; with output_hidden_states."""
    trace: dict[int, Trace] | None = None
    """Intermediate results by layer and name; with trace."""


@dataclass(frozen=True, eq=False, repr=False)
class MultiHeadAttentionGradients(_Parts):
    """Result of the backward of multi-head attention."""

    grad_query: Floats
    """(B,L,E); the sum of all three if key and value were omitted."""
    grad_key: Floats | None = None
    """(B,S,kdim); if key was passed."""
    grad_value: Floats | None = None
    """(B,S,vdim); if value was passed."""
    trace: Trace | None = None
    """Gradients of intermediate results by name; with trace."""


@dataclass(frozen=True, eq=False, repr=False)
class EncoderGradients(_Parts):
    """Result of the backward of an encoder."""

    grad_x: Floats
    """(B,L,E)."""
    trace: dict[int, Trace] | None = None
    """Gradients of intermediate results by layer and name; with trace."""


@dataclass(frozen=True, eq=False, repr=False)
class Encoding(_Parts):
    """Token ids of texts, padded to the longest. As a mapping it has the arrays, so that model(**encoding) works."""

    _keys: ClassVar[tuple[str, ...]] = ("input_ids", "attention_mask", "token_type_ids")

    input_ids: NDArray[numpy.int32]
    """(B,L)."""
    attention_mask: NDArray[numpy.uint8]
    """(B,L), 1 for tokens and 0 for padding."""
    token_type_ids: NDArray[numpy.int32]
    """(B,L)."""
    tokens: list[list[str]]
    """Tokens of each text, padding included."""
    offsets: list[Offsets]
    """Character range [start, end) of each token in its text; None for padding and added special tokens."""
    sequence_ids: list[list[int | None]]
    """Text of a pair that a token belongs to, 0 or 1."""
    truncated: list[bool]
    """Whether each text was truncated."""
    words: list[list[int | None]] | None = None
    """Index of each token's word; from tokenize_words()."""


@dataclass(frozen=True, eq=False, repr=False)
class TextModelOutput(_Parts):
    """Result of a model's forward."""

    last_hidden_state: Floats
    """(B,L,E)."""
    logits: Floats | None = None
    """Logits of the head: (B,C); for token-classification, fill-mask and text-generation (B,L,C), C labels or the vocabulary, with
    output_logits='last' (B,1,C); for question-answering (B,L,2), start and end of an answer; for multiple-choice (B,1), a row per choice.
    None without a head."""
    attentions: list[Floats] | None = None
    """(B,H,L,L) per layer; with output_attentions."""
    hidden_states: list[Floats] | None = None
    """layers + 1 arrays (B,L,E); with output_hidden_states."""
    trace: dict[int, Trace] | None = None
    """Intermediate results by layer and name; with trace."""


class ImageCrop(NamedTuple):
    """A rectangle in an image, in its pixels. The sides may be fractions."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, eq=False, repr=False)
class ImageInputs(_Parts):
    """Normalized images. As a mapping it has the array, so that model(**inputs) works."""

    _keys: ClassVar[tuple[str, ...]] = ("pixel_values",)

    pixel_values: Floats
    """(B,3,height,width)."""
    grid: tuple[int, int]
    """Rows and columns of patches."""
    crops: list[ImageCrop]
    """The part of each image that the patches cover; black beyond the image."""


class LabelScore(NamedTuple):
    """A label and its score."""

    label: str
    score: float


@dataclass(frozen=True)
class Entity:
    """A named entity of a text."""

    label: str
    """Without B- and I- if tokens are joined."""
    score: float
    """Mean over the tokens."""
    text: str
    """text[start:end] of the text."""
    start: int
    end: int


@dataclass(frozen=True)
class FilledMask:
    """A prediction for a mask."""

    token: str
    """Decoded: ' good' for Ġgood."""
    id: int
    score: float
    """Probability over the whole vocabulary."""
    text: str
    """The text with this token instead of the mask; other masks stay."""


@dataclass(frozen=True)
class Answer:
    """A part of a context that answers a question."""

    text: str
    """context[start:end]; empty if there is no answer."""
    score: float
    """Probability of the start times that of the end; summed over places with the same words."""
    start: int
    end: int


@dataclass(frozen=True)
class Neighbor:
    """A row of a table and its cosine similarity to the target."""

    id: int
    similarity: float


@dataclass(frozen=True)
class RankedDocument:
    """Index of a document in the list, and its relevance."""

    index: int
    score: float


@dataclass(frozen=True)
class GeneratedToken:
    """A token that generate() has added to a text."""

    id: int
    text: str
    """What the token adds to the text; empty while the bytes of a character are incomplete."""
    probability: float
    """Probability of the model, before any option changes it."""


@dataclass(frozen=True)
class GeneratedText:
    """Result of generate()."""

    text: str
    """The new part, without special tokens and without the stop string."""
    ids: list[int]
    """Ids of all new tokens."""
    tokens: list[str]
    """The same tokens in the vocabulary's spelling."""
    finish_reason: Literal["length", "eos", "stop", "aborted"]
    """'length': max_new_tokens, or no more positions; 'eos': the model ended the text; 'stop': a stop string; 'aborted': on_token."""


@dataclass(frozen=True)
class NextToken:
    """A token that may follow a text."""

    id: int
    token: str
    """In the vocabulary's spelling, for example 'Ġgood'."""
    text: str
    """Decoded, for example ' good'."""
    logit: float
    probability: float


@dataclass(frozen=True)
class ScoredToken:
    """How well a model predicts a token from the tokens before it. The numbers of a text's first token are None."""

    id: int
    token: str
    log_probability: float | None
    """Natural logarithm of the probability."""
    rank: int | None
    """1: no token is likelier."""
    entropy: float | None
    """Of the prediction, in nats."""


@dataclass(frozen=True)
class ScoredText:
    """Result of score_tokens()."""

    tokens: list[ScoredToken]
    perplexity: float
    """exp of the negative mean of the log probabilities."""


@dataclass(frozen=True)
class LogitLensPrediction:
    """A token that a layer predicts."""

    id: int
    token: str
    """In the vocabulary's spelling."""
    logit: float
    probability: float
    """Softmax of the logits over the vocabulary."""


@dataclass(frozen=True)
class LogitLens:
    """Result of logit_lens()."""

    tokens: list[str]
    """Tokens of the text."""
    layers: list[int]
    positions: list[int]
    predictions: list[list[list[LogitLensPrediction]]]
    """By layer and position: the likeliest tokens, the likeliest first."""


@dataclass(frozen=True, eq=False, repr=False)
class LogitAttribution(_Parts):
    """Result of logit_attribution(): numbers that add up to `value`."""

    tokens: list[str]
    """Tokens of the text."""
    position: int
    value: float
    """The logit, minus that of the contrast."""
    embedding: float
    """Contribution of the embeddings (word and position)."""
    heads: Floats
    """(layers,H): contribution of each head."""
    mlps: Floats
    """(layers): contribution of each MLP, without its output bias."""
    biases: float
    """Contribution of the output biases of attentions and MLPs, and of the final norm's bias."""


@dataclass(frozen=True, eq=False, repr=False)
class PatchResult(_Parts):
    """Result of patch_activations() and attribution_patching()."""

    clean_tokens: list[str]
    """Tokens of the clean text."""
    corrupted_tokens: list[str]
    """Tokens of the corrupted text."""
    positions: list[int] | None
    """Columns of `recovered`; None for heads."""
    clean: float
    """The logit (difference) of the clean text."""
    corrupted: float
    """The logit (difference) of the corrupted text."""
    recovered: Floats
    """(layers,positions), or (layers,H) for heads. 0: as in the corrupted text, 1: as in the clean text."""


@dataclass(frozen=True, eq=False, repr=False)
class HeadScores(_Parts):
    """Result of head_scores()."""

    tokens: list[str]
    """Tokens of the text."""
    ids: list[int]
    scores: dict[str, Floats]
    """By kind: (layers,H), from 0 to 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Gradients(_Parts):
    """Gradients of one number of a model."""

    value: float
    """The number itself."""
    embeddings: Floats | None = None
    """(B,L,E), for the word embedding at each position."""
    attentions: list[Floats] | None = None
    """(B,H,L,L) per layer; 0 for masked keys."""
    parameters: dict[str, Floats] | None = None
    """Gradients by the names of state_dict()."""


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(_Parts):
    """Contribution of each token of a text to an answer."""

    tokens: list[str]
    """Tokens, special tokens included."""
    offsets: Offsets
    """As in Encoding."""
    scores: Floats
    """(L)."""
    delta: float | None = None
    """|Σ scores - (f(text) - f(baseline))| / |f(text) - f(baseline)|; for integrated_gradients."""

    def _repr_html_(self) -> str:
        """Notebooks draw the tokens: the stronger the colour, the farther the score from 0; violet is positive, gold negative."""
        most = max(float(numpy.abs(self.scores).max(initial=0)), 1e-30)

        def drawn(token: str, score: float) -> str:
            colour = "112, 48, 160" if score > 0 else "176, 130, 0"
            style = f"background: rgba({colour}, {0.6 * abs(score) / most:.2f}); padding: 0.1em 0.2em; border-radius: 0.2em"
            return f'<span title="{score:.4g}" style="{style}">{escape(token)}</span>'

        return f"<p>{' '.join(drawn(token, score) for token, score in zip(self.tokens, self.scores.tolist(), strict=True))}</p>"


@dataclass(frozen=True)
class FineTuneProgress:
    """State of fine_tune() after a step."""

    epoch: int
    """Counted from 1, as step."""
    step: int
    steps: int
    """Number of steps of the whole run."""
    loss: float
    """Loss of the step's batch, before the step."""
    validation_loss: float | None = None
    """After an epoch, if examples are held out."""
    validation_accuracy: float | None = None
    """As validation_loss; None for a regression."""


class FineTuneResult(NamedTuple):
    """Result of fine_tune()."""

    loss: float
    """Mean over the steps of the last epoch."""
    validation_accuracy: float | None
