"""The Python package's reference from a wheel: griffe reads its stub and modules, and each subject becomes a page.

python python_reference.py WHEEL FOLDER
"""

import re
import sys
import tempfile
import zipfile
from pathlib import Path

import griffe

# Pages with their names in this order. Every exported name must be on a page.
PAGES = {
    "attention": ("Attention", ["scaled_dot_product_attention", "Mask"]),
    "functions": (
        "Functions",
        ["linear", "softmax", "layer_norm", "rms_norm", "activation", "apply_rotary", "sinusoidal_positions", "alibi_bias"],
    ),
    "layers": ("Layers", ["MultiHeadAttention", "TransformerEncoderLayer", "TransformerEncoder", "Embedding"]),
    "models": ("Models", ["TextModel", "ImageModel", "Tokenizer", "WordEmbeddings", "LayerPatch", "KeyValueCache"]),
    "lens": ("Lens", ["lens"]),
    "notebooks": ("Maps for notebooks", ["show", "widget", "AttentionView", "AttentionImageView", "AttentionGrid", "AttentionWidget"]),
    "results": (
        "Results",
        ["AttentionResult", "KeyValue", "EncoderResult", "MultiHeadAttentionGradients", "EncoderGradients", "Encoding"]
        + ["TextModelOutput", "ImageInputs", "ImageCrop", "LabelScore", "Entity", "FilledMask", "Answer", "RankedDocument"]
        + ["GeneratedText", "GeneratedToken", "NextToken", "ScoredText", "ScoredToken"]
        + ["LogitLens", "LogitLensPrediction", "LogitAttribution", "PatchResult", "HeadScores"]
        + ["Gradients", "Attribution", "Neighbor", "FineTuneProgress", "FineTuneResult"],
    ),
    "settings": ("Threads and files", ["set_num_threads", "get_num_threads", "read_safetensors", "write_safetensors"]),
    "errors": (
        "Errors",
        ["AttnError", "ArgumentError", "DtypeError", "ShapeError", "MaskError", "ConfigError", "OutOfRangeError", "FormatError"]
        + ["MismatchError", "UnsupportedError", "OutOfMemoryError", "BusyError"]
        + ["UnknownArgumentError", "MissingFileError", "UnwritableError"],
    ),
}
PAGE_OF = {name: page for page, (_, names) in PAGES.items() for name in names}


def read_package(wheel: str) -> griffe.Module:
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        package = griffe.load("attn", search_paths=[folder], allow_inspection=False, resolve_aliases=True)
    # griffe makes no member of overloads without an implementation, as stubs have them.
    for each in package["_attn"].classes.values():
        for name, overloads in each.overloads.items():
            if overloads and name not in each.members:
                overloads[0].overloads = overloads
                each.members[name] = overloads[0]
    exported = set(map(str, package.exports))
    if missing := exported - PAGE_OF.keys():
        raise SystemExit(f"missing from the reference: {', '.join(sorted(missing))}")
    if gone := PAGE_OF.keys() - exported:
        raise SystemExit(f"the reference names members that the package lacks: {', '.join(sorted(gone))}")
    return package


def address(name: str) -> str:
    return f"./{PAGE_OF[name]}.md#{name.lower().replace('_', '-')}"


def prose(text: str, own: str = "") -> str:
    """Escapes text as Markdown, sets names of code as such, and links public names to their description."""

    def escaped(part: str) -> str:
        return re.sub(r"[\\*_[\]|{}#]", r"\\\g<0>", part).replace("&", "&amp;").replace("<", "&lt;")

    def named(name: str) -> str:
        public = name.removeprefix("attn.").removesuffix("()").split(".")[0]
        if name == own and "_" not in name:
            return name
        return f"[`{name}`]({address(public)})" if public in PAGE_OF and public != own else f"`{name}`"

    public = "|".join(name for name in PAGE_OF if not name.islower())
    dotted = r"\b[a-zA-Z]\w*(?:\.\w+)+(?:\.\*)?|\b\w+\.\*"
    found = re.compile(rf"\b\w+(?:\.\w+)*\(\)|{dotted}|\b(?:{public})\b|\b\w+_\w*\b|(?<!\w)'\w+'")
    result, at = "", 0
    for match in found.finditer(text):
        result += escaped(text[at : match.start()]) + named(match[0])
        at = match.end()
    return result + escaped(text[at:])


def description(thing: griffe.Object, parameters: list[str], own: str) -> list[str]:
    """Paragraphs of a docstring, with a list for the arguments."""
    word = "|".join(parameters) or "(?!)"
    item = rf"(?:{word})(?:, (?:{word}))*(?: \w|[ ]?\([^)]*\))?: "
    argument = re.compile(rf"(?:^|(?<=[.;] ))(?={item})")
    text = thing.docstring.value if thing.docstring else ""
    blocks = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(">>> "):
            blocks.append(f"```python\n{paragraph}\n```")
            continue
        lines = re.sub(rf"(?<!\.)\n(?!{item})", " ", paragraph).replace(". Raises ", ".\nRaises ").split("\n")
        for part in (part for line in lines for part in argument.split(line) if part):
            if not argument.match(part):
                blocks.append(prose(part.strip(), own))
                continue
            names, what = part.split(": ", 1)
            names = re.sub(rf"(?:^|(?<=, ))(?:{word})\b(?![^(]*\))", r"`\g<0>`", names)
            line = f"- {names}: {prose(re.sub(';$', '.', what.strip()), own)}"
            if blocks and blocks[-1].startswith("- "):
                blocks[-1] += f"\n{line}"
            else:
                blocks.append(line)
    return blocks


def code(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|')}`" if text else ""


def signature(function: griffe.Function, name: str) -> str:
    arguments: list[str] = []
    kinds = griffe.ParameterKind
    before = None
    for each in function.parameters:
        if each.name == "self":
            continue
        if before is kinds.positional_only and each.kind is not before:
            arguments.append("/")
        if each.kind is kinds.keyword_only and before is not each.kind:
            arguments.append("*")
        arguments.append(f"{each.name}: {each.annotation}" + ("" if each.default is None else f" = {each.default}"))
        before = each.kind
    returns = f" -> {function.returns}" if function.returns and function.name != "__init__" else ""
    short = f"{name}({', '.join(arguments)}){returns}"
    if len(short) > 90 and len(arguments) > 1:
        short = f"{name}(\n" + "".join(f"    {each},\n" for each in arguments) + f"){returns}"
    return short


def block(*lines: str) -> str:
    return "```python\n" + "\n".join(lines) + "\n```"


def function_text(function: griffe.Function, name: str, level: int, own: str) -> list[str]:
    parameters = [each.name for each in function.parameters]
    return [
        f"{'#' * level} {prose(function.name, own)}",
        block(*(signature(each, name) for each in function.overloads or [function])),
        *description(function, parameters, own),
    ]


def class_text(each: griffe.Class, aliases: dict[str, str]) -> list[str]:
    def type_of(attribute: griffe.Attribute) -> str:
        text = str(attribute.annotation or "")
        while (expanded := re.sub(r"\w+", lambda word: aliases.get(word[0], word[0]), text)) != text:
            text = expanded
        return text

    name = each.name
    members = {key: member for key, member in each.members.items() if not key.startswith("_")}
    constructor = each.members.get("__init__")
    made = constructor is not None and constructor.docstring is not None
    bases = ", ".join(map(str, each.bases))
    head = signature(constructor, f"attn.{name}") if made else f"class attn.{name}" + (f"({bases})" if bases else "")
    attributes = [member for member in members.values() if member.is_attribute]
    rows = [
        f"| {code(member.name)} | {code(type_of(member))} | "
        + " ".join([*description(member, [], name), *(["Can be set."] if "writable" in member.labels else [])])
        + " |"
        for member in attributes
        if member.annotation
    ]
    return [
        f"## {name}",
        block(head),
        *description(each, [], name),
        *(description(constructor, [parameter.name for parameter in constructor.parameters], name) if made else []),
        *(f"`{member.name}` is `{member.value}`." for member in attributes if not member.annotation),
        *(["| attribute | type | what it is |\n|---|---|---|\n" + "\n".join(rows)] if rows else []),
        *(
            text
            for key, member in members.items()
            if member.is_function
            for text in [
                *function_text(member, f"attn.{name}.{key}" if "staticmethod" in member.labels else key, 3, name),
                *(["A call of the object itself is the same."] if key == "forward" and "__call__" in each.members else []),
            ]
        ),
    ]


def module_text(module: griffe.Module) -> list[str]:
    functions = {name: module[name].final_target for name in map(str, module.exports)}
    return [
        *description(module, [], ""),
        *(text for name, each in functions.items() for text in function_text(each, f"attn.{module.name}.{name}", 2, name)),
    ]


def main(wheel: str, folder: str) -> None:
    package = read_package(wheel)
    aliases = {key: str(each.value) for key, each in package["_results"].attributes.items() if str(each.annotation) == "TypeAlias"}
    out = Path(folder)
    out.mkdir(parents=True)
    for page, (title, names) in PAGES.items():
        texts = [f"# {title}"]
        for name in names:
            if package[name].is_module:
                texts += module_text(package[name])
                continue
            thing = package[name].final_target
            texts += class_text(thing, aliases) if thing.is_class else function_text(thing, f"attn.{name}", 2, name)
        (out / f"{page}.md").write_text("\n\n".join(texts) + "\n", "utf-8")
    listed = "\n".join(f"- [{title}](./{page}.md)" for page, (title, _) in PAGES.items())
    (out / "index.md").write_text(
        f"""# Python reference

{" ".join(description(package, [], "")[1:])}

The words are the package's own: `help(attn)` and editors show them, too, and its types are checked by them. Dimension
letters: `B` batch, `H` heads, `L` query length, `S` key length, `E` model width, `D` head width, `Dv` value head width.
[How to install it, and programs](../../guide/python.md).

{listed}
""",
        "utf-8",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
