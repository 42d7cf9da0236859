"""What calls return."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[numpy.float32]
Offsets: TypeAlias = list[tuple[int, int] | None]
Trace: TypeAlias = dict[str, Floats]


class KeyValue(NamedTuple):
    """Keys and values of a call, for the `past` of the next one: (B,Hkv,P,D) and (B,Hkv,P,Dv)."""

    key: Floats
    value: Floats


@dataclass(frozen=True, eq=False)
class AttentionResult:
    """What attention returns."""

    output: Floats
    """(..,L,Dv); of a layer (B,L,E)."""
    weights: Floats | None = None
    """(..,L,S); of a layer (B,H,L,S), where need_weights was asked for."""
    trace: Trace | None = None
    """Intermediate results by name, where a trace was asked for."""
    present: KeyValue | None = None
    """Past and new keys and values, where there was a past or output_present was asked for."""


@dataclass(frozen=True, eq=False)
class EncoderResult:
    """What an encoder returns."""

    output: Floats
    """(B,L,E)."""
    attentions: list[Floats] | None = None
    """By layer (B,H,L,L), where output_attentions was asked for."""
    hidden_states: list[Floats] | None = None
    """Layers + 1 of (B,L,E), the last equals output, where output_hidden_states was asked for."""
    trace: dict[int, Trace] | None = None
    """By layer, where a trace was asked for."""


@dataclass(frozen=True, eq=False)
class MultiHeadAttentionGradients:
    """What the backward of multi-head attention returns."""

    grad_query: Floats
    """(B,L,E); of all three where key and value were left to be the query."""
    grad_key: Floats | None = None
    """(B,S,kdim), where it was given."""
    grad_value: Floats | None = None
    """(B,S,vdim), where it was given."""
    trace: Trace | None = None
    """Of intermediate results by name, where a trace was asked for."""


@dataclass(frozen=True, eq=False)
class EncoderGradients:
    """What the backward of an encoder returns."""

    grad_x: Floats
    """(B,L,E)."""
    trace: dict[int, Trace] | None = None
    """Of intermediate results by layer and name, where a trace was asked for."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """Token ids of texts, padded to the longest."""

    input_ids: NDArray[numpy.int32]
    """(B,L)."""
    attention_mask: NDArray[numpy.uint8]
    """(B,L), 1 where there is a token."""
    token_type_ids: NDArray[numpy.int32]
    """(B,L)."""
    tokens: list[list[str]]
    """By text; padding is there too."""
    offsets: list[Offsets]
    """Places [start, end) in the text, as Python counts; None for padding and special tokens that were added."""
    sequence_ids: list[list[int | None]]
    """Which text of a pair a token is from, 0 or 1."""
    truncated: list[bool]
    """Which texts were cut."""
    words: list[list[int | None]] | None = None
    """Of tokenize_words: which word of its list a token is of."""


@dataclass(frozen=True, eq=False)
class TextModelOutput:
    """What a model makes of token ids."""

    last_hidden_state: Floats
    """(B,L,E)."""
    logits: Floats | None = None
    """Where the checkpoint has a head: (B,C); of token-classification and fill-mask (B,L,C), C the labels or the vocabulary; of
    question-answering (B,L,2), the start and the end of an answer; of multiple-choice (B,1), a row for each choice."""
    attentions: list[Floats] | None = None
    """By layer (B,H,L,L), where output_attentions was asked for."""
    hidden_states: list[Floats] | None = None
    """Layers + 1 of (B,L,E), where output_hidden_states was asked for."""
    trace: dict[int, Trace] | None = None
    """By layer, where a trace was asked for."""


class LabelScore(NamedTuple):
    """A label, and how much the model is for it."""

    label: str
    score: float


@dataclass(frozen=True)
class Entity:
    """Something that a text names."""

    label: str
    """Without B- and I- where tokens are put together."""
    score: float
    """Of several tokens the mean."""
    text: str
    """text[start:end] of the text."""
    start: int
    end: int


@dataclass(frozen=True)
class FilledMask:
    """A token in the place of a mask."""

    token: str
    """As text: ' good' of Ġgood."""
    id: int
    score: float
    """Of the whole vocabulary."""
    text: str
    """With the token in the place of the mask; where there are other masks they stay."""


@dataclass(frozen=True)
class Answer:
    """A part of a context that answers a question."""

    text: str
    """context[start:end]; empty where there is no answer."""
    score: float
    """The probability of its start times that of its end; of several places with the same words the sum."""
    start: int
    end: int


@dataclass(frozen=True)
class RankedDocument:
    """A document's place in the list, and how relevant it is."""

    index: int
    score: float


@dataclass(frozen=True, eq=False)
class Gradients:
    """Gradients of one number of a model."""

    value: float
    """The number itself."""
    embeddings: Floats | None = None
    """(B,L,E), of the word embedding at each place."""
    attentions: list[Floats] | None = None
    """By layer (B,H,L,L); 0 where a query does not see a key."""
    parameters: dict[str, Floats] | None = None
    """By the names of state_dict()."""


@dataclass(frozen=True, eq=False)
class Attribution:
    """What each token of a text has to do with an answer."""

    tokens: list[str]
    """Special ones included."""
    offsets: Offsets
    """As Encoding has them."""
    scores: Floats
    """(L)."""
    delta: float | None = None
    """|Σ scores - (f(text) - f(baseline))| / |f(text) - f(baseline)|, of integrated_gradients."""


@dataclass(frozen=True)
class FineTuneProgress:
    """After each step of fine_tune."""

    epoch: int
    """Counted from 1, as step."""
    step: int
    steps: int
    """Of the whole run."""
    loss: float
    """Of the step's batch, before it."""
    validation_loss: float | None = None
    """After an epoch, where texts are held out."""
    validation_accuracy: float | None = None
    """The same; of a regression there is none."""


class FineTuneResult(NamedTuple):
    """How a fine_tune ended."""

    loss: float
    """Mean over the steps of the last epoch."""
    validation_accuracy: float | None
