"""Compares the stored model of reactions with the float32 weights, and its tokens with RXNMapper's, and writes its README.md."""

import re
import sys
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(ROOT / "testdata" / "make" / "corpora"))
from stored import stored  # noqa: E402

FOLDER = ROOT / "testdata" / "models" / "reactions"
LAYER, HEAD = 10, 5
# The tokens of SMILES, as RXNMapper's paper gives them.
TOKEN = re.compile(r"\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>>?|\*|\$|%[0-9]{2}|[0-9]")
ATOM = re.compile(r"\[(?!CLS|SEP)|[A-Zbcnops]")


def reactions():
    for line in (HERE / "reactions.txt").read_text("utf-8").splitlines():
        yield line.split(" | ")[1]


def element(atom):
    return re.sub(r"[^A-Za-z]|H\d*", "", atom).lower()


@torch.no_grad()
def links(tokens, model, ids):
    """Place of the reactant atom that each product atom attends to most."""
    weights = model(ids, output_attentions=True).attentions[LAYER][0, HEAD]
    arrow = tokens.index(">>")
    atoms = [i for i, token in enumerate(tokens) if ATOM.match(token) and not token.startswith(("[CLS", "[SEP"))]
    reactants = torch.tensor([i for i in atoms if i < arrow])
    return {i: int(reactants[weights[i, reactants].argmax()]) for i in atoms if i > arrow}


def main(float32):
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    exact = AutoModel.from_pretrained(float32, attn_implementation="eager").eval()
    here = stored(FOLDER, "AutoModelForMaskedLM")[1]
    atoms = same = of_element = 0
    for count, reaction in enumerate(reactions(), 1):
        tokens = tokenizer.tokenize(reaction, add_special_tokens=True)
        if tokens[1:-1] != TOKEN.findall(reaction):
            raise SystemExit(f"other tokens than RXNMapper's: {reaction}")
        ids = tokenizer(reaction, return_tensors="pt")["input_ids"]
        wanted, found = links(tokens, exact, ids), links(tokens, here, ids)
        atoms += len(wanted)
        same += sum(found[i] == wanted[i] for i in wanted)
        of_element += sum(element(tokens[i]) == element(tokens[found[i]]) for i in found)
    numbers = {"ATOMS": atoms, "COUNT": count, "ELEMENT": f"{100 * of_element / atoms:.0f}", "SAME": f"{100 * same / atoms:.0f}"}
    card = re.sub(r"@(\w+)@", lambda found: str(numbers[found[1]]), (HERE / "card.md").read_text("utf-8"))
    (FOLDER / "README.md").write_text(card, "utf-8")
    print(numbers)


if __name__ == "__main__":
    main(sys.argv[1])
