"""testdata/model_keys.json: the keys that the files of a model may have according to the classes of transformers and sentence-transformers."""

import ast
import importlib.util
import inspect
import json
import re
from pathlib import Path

import transformers

import common

CONFIGS = (
    "Albert Bert Camembert Data2VecText DebertaV2 DistilBert Electra Ernie Gte MPNet ModernBert NomicBert Roberta XLMRoberta "
    "GPT2 Llama Mistral Qwen2 Qwen3 GPTNeoX Gemma2 Gemma3Text".split()
)
TOKENIZERS = "Albert Bert Camembert DebertaV2 MPNet Roberta XLMRoberta".split()
MODULES = {"sentence_bert_config.json": "transformer", "Dense": "dense", "Normalize": "normalize"}


def of_tokenizers():
    base = inspect.getsource(transformers.PreTrainedTokenizerBase.__init__)
    keys = set(re.findall(r'kwargs\.pop\("(\w+)"', base)) | set(transformers.PreTrainedTokenizerBase.SPECIAL_TOKENS_ATTRIBUTES)
    for name in TOKENIZERS:
        keys |= set(inspect.signature(getattr(transformers, f"{name}Tokenizer").__init__).parameters)
    return sorted(keys - {"self", "kwargs", "args", "vocab", "merges", "unk_id"})


def of_module(path):
    tree = ast.parse(path.read_text())
    lists = [node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.AnnAssign)) and "config_keys" in ast.dump(node)]
    return sorted({ast.literal_eval(item) for node in lists if isinstance(node.value, ast.List) for item in node.value.elts})


def generate():
    files = {"config.json": {}, "tokenizer_config.json": of_tokenizers()}
    for name in CONFIGS:
        config = getattr(transformers, f"{name}Config")()
        files["config.json"][config.model_type] = sorted(key for key in config.to_dict() if not key.startswith("_"))
    package = Path(importlib.util.find_spec("sentence_transformers").submodule_search_locations[0])
    for name, module in MODULES.items():
        files[name] = of_module(package / "base/modules" / f"{module}.py")
    files["Pooling"] = of_module(package / "sentence_transformer/modules/pooling.py")
    made = json.dumps({"transformers": transformers.__version__, "files": files}, indent=1)
    (common.TESTDATA / "model_keys.json").write_text(made + "\n")


if __name__ == "__main__":
    generate()
