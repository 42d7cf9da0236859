"""testdata/tasks/answers.json: results of the question-answering pipeline of transformers 4, which transformers 5 does not have. Run by answers.sh."""

import json
import sys
import warnings
from pathlib import Path

import torch
import transformers
from transformers.pipelines.question_answering import QuestionAnsweringPipeline

DATA = Path(__file__).resolve().parents[3] / "testdata"
LENGTH = 64
QUESTIONS = ["Who is tired?", "Is it good?", "What did the young woman read in the garden?", "¿Dónde está?", "a"]
warnings.simplefilter("ignore")
torch.set_num_threads(1)


def cases():
    texts = list(dict.fromkeys(case["text"] for case in json.loads((DATA / "tasks" / "entities.json").read_text())["cases"]))
    texts = [text for text in texts if text.strip()]
    for name in ("tiny-bert-qa", "tiny-modernbert-qa"):
        folder = DATA / "models" / name
        special = {f"{token}_token": f"[{token.upper()}]" for token in ("cls", "sep", "pad", "unk", "mask")}
        names = json.loads((folder / "tokenizer_config.json").read_text()).get("model_input_names", ["input_ids", "token_type_ids", "attention_mask"])
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=str(folder / "tokenizer.json"), model_max_length=LENGTH, model_input_names=names, **special
        )
        model = transformers.AutoModelForQuestionAnswering.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        run = QuestionAnsweringPipeline(model=model, tokenizer=tokenizer, framework="pt")
        for i, context in enumerate(texts):
            question, options = QUESTIONS[i % 5], {}
            if i % 3 == 1:
                options["topK"] = 3
            if i % 4 == 2:
                options["allowEmpty"] = True
            if i % 5 == 3:
                options["maxAnswerLength"] = 3
            if i % 6 == 4:
                options["stride"] = 7
            given = {"topK": "top_k", "allowEmpty": "handle_impossible_answer", "maxAnswerLength": "max_answer_len", "stride": "doc_stride"}
            found = run(question=question, context=context, **{given[key]: value for key, value in options.items()})
            found = found if isinstance(found, list) else [found]
            rows = [[each["answer"], round(each["score"], 8), each["start"], each["end"]] for each in found]
            yield {"model": name, "question": question, "context": context, "options": options, "expected": rows}


if __name__ == "__main__":
    all_cases = list(cases())
    head = json.dumps({"transformers": transformers.__version__})[1:-1]
    rows = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in all_cases)
    path = DATA / "tasks" / "answers.json"
    path.write_text(f'{{{head}, "cases": [\n{rows}\n]}}\n', "utf-8")
    print(f"{path.relative_to(DATA.parent)}: {len(all_cases)} cases, {path.stat().st_size} bytes", file=sys.stderr)
