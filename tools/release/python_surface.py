"""python3 tools/release/python_surface.py WHEEL: what `import attn` gives, by the wheel's stubs and sources, as JSON {name: [declaration, ...]}."""

import ast
import json
import sys
import zipfile


def signature(function):
    return f"({ast.unparse(function.args)}) -> {ast.unparse(function.returns) if function.returns else None}"


def is_public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def declare(surface, name, node):
    """Adds what `node` declares under `name`."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        marks = "".join(f"@{ast.unparse(each)} " for each in node.decorator_list)
        surface.setdefault(name, []).append(f"{marks}def {signature(node)}")
    elif isinstance(node, ast.ClassDef):
        surface.setdefault(name, []).append(f"class ({', '.join(ast.unparse(base) for base in node.bases)})")
        for member in node.body:
            for each in names(member):
                if is_public(each):
                    declare(surface, f"{name}.{each}", member)
    elif isinstance(node, ast.AnnAssign):
        optional = "" if node.value is None else " = ..."
        surface.setdefault(name, []).append(f": {ast.unparse(node.annotation)}{optional}")
    elif isinstance(node, ast.Assign):
        surface.setdefault(name, []).append(f"= {ast.unparse(node.value)}")


def names(node):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return []


def declare_public(surface, modules, module, prefix):
    """Declares the exports of a module and of its exported submodules."""
    body = modules[module].body
    imported = {
        each.asname or each.name: (f"attn.{node.module}", each.name)
        for node in body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for each in node.names
    }
    for name in next(ast.literal_eval(node.value) for node in body if "__all__" in names(node)):
        home, original = imported.get(name, (module, name))
        if home == "attn.None":  # from . import name
            declare_public(surface, modules, f"attn.{name}", f"{prefix}.{name}")
            continue
        for node in modules[home].body:
            if original in names(node):
                declare(surface, f"{prefix}.{name}", node)


def main(wheel):
    modules = {}
    with zipfile.ZipFile(wheel) as files:
        # A stub is more precise than the module next to it.
        for path in sorted(files.namelist()):
            if path.startswith("attn/") and path.endswith((".py", ".pyi")):
                modules[path.rsplit(".", 1)[0].replace("/", ".")] = ast.parse(files.read(path))
    surface = {}
    declare_public(surface, modules, "attn.__init__", "attn")
    json.dump(surface, sys.stdout)


main(sys.argv[1])
