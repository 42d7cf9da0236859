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


def of_dictionary(paths, name, function=None):
    """The keys that these modules write to or read from a dictionary with this name, or return from this function."""
    keys = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Subscript(value=ast.Name(id=of), slice=ast.Constant(value=key)) if of == name:
                    keys.add(key)
                case ast.Call(func=ast.Attribute(value=ast.Name(id=of), attr="get"), args=[ast.Constant(value=key), *_]) if of == name:
                    keys.add(key)
                case ast.Assign(targets=[ast.Name(id=of)], value=ast.Dict(keys=listed)) if of == name:
                    keys |= {key.value for key in listed}
                case ast.FunctionDef(name=of, body=[*body]) if of == function:
                    values = [each.value for each in body if isinstance(each, (ast.Assign, ast.Return))]
                    dicts = [part for value in values for part in (value, getattr(value, "right", None)) if isinstance(part, ast.Dict)]
                    keys |= {key.value for each in dicts for key in each.keys}
    return sorted(keys)


def generate():
    files = {"config.json": {}, "tokenizer_config.json": of_tokenizers()}
    for name in CONFIGS:
        config = getattr(transformers, f"{name}Config")()
        files["config.json"][config.model_type] = sorted(key for key in config.to_dict() if not key.startswith("_"))
    package = Path(importlib.util.find_spec("sentence_transformers").submodule_search_locations[0])
    for name, module in MODULES.items():
        files[name] = of_module(package / "base/modules" / f"{module}.py")
    files["Pooling"] = of_module(package / "sentence_transformer/modules/pooling.py")
    models = [package / f"{kind}/model.py" for kind in ("base", "sentence_transformer", "cross_encoder")]
    read, written = of_dictionary(models, "model_config"), of_dictionary(models, "config", "_get_model_config")
    files["config_sentence_transformers.json"] = sorted({*read, *written})
    files["modules.json"] = of_dictionary(models, "module_config")
    made = json.dumps({"transformers": transformers.__version__, "files": files}, indent=1)
    (common.TESTDATA / "model_keys.json").write_text(made + "\n")


if __name__ == "__main__":
    generate()
