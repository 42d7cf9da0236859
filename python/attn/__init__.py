"""Transformer attention and encoders, computed by a C++ library; numpy in and out.

Arrays are numpy's, or whatever numpy or DLPack makes arrays of. Float32 whose rows have no gaps is read where it lies; other real
numbers are copied to float32, as numpy casts them. Results are float32 and own their memory.
"""

from ._attn import (
    LayerPatch,
    Mask,
    MultiHeadAttention,
    TextModel,
    TransformerEncoder,
    get_num_threads,
    read_safetensors,
    scaled_dot_product_attention,
    set_num_threads,
    write_safetensors,
)
from ._errors import (
    ArgumentError,
    AttnError,
    BusyError,
    ConfigError,
    DtypeError,
    FormatError,
    MaskError,
    MismatchError,
    OutOfMemoryError,
    OutOfRangeError,
    ShapeError,
    UnsupportedError,
)
from ._results import (
    AttentionResult,
    Attribution,
    EncoderResult,
    Encoding,
    FineTuneProgress,
    FineTuneResult,
    Gradients,
    KeyValue,
    LabelScore,
    TextModelOutput,
)
from ._show import AttentionView, show

__all__ = [
    "ArgumentError",
    "AttentionResult",
    "AttentionView",
    "AttnError",
    "Attribution",
    "BusyError",
    "ConfigError",
    "DtypeError",
    "EncoderResult",
    "Encoding",
    "FineTuneProgress",
    "FineTuneResult",
    "FormatError",
    "Gradients",
    "KeyValue",
    "LabelScore",
    "LayerPatch",
    "Mask",
    "MaskError",
    "MismatchError",
    "MultiHeadAttention",
    "OutOfMemoryError",
    "OutOfRangeError",
    "ShapeError",
    "TextModel",
    "TextModelOutput",
    "TransformerEncoder",
    "UnsupportedError",
    "get_num_threads",
    "read_safetensors",
    "scaled_dot_product_attention",
    "set_num_threads",
    "show",
    "write_safetensors",
]
