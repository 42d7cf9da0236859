"""Writes testdata/chat_templates.json: conversations as transformers formats them.

Usage: build/goldens-venv/bin/python testdata/make/goldens/chat.py
"""

import json
from pathlib import Path

from transformers.utils.chat_template_utils import render_jinja_template

TARGET = Path(__file__).resolve().parents[2] / "chat_templates.json"

# Written for this test, with the constructs that the templates of common models use.
TEMPLATES = {
    "marked turns": """{% if messages[0]['role'] != 'system' %}{{ '<|start|>system
You are helpful.<|end|>
' }}{% endif %}{% for message in messages %}{{ '<|start|>' + message['role'] + '
' + message['content'] + '<|end|>' + '
' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant
' }}{% endif %}""",
    "headers": """{{- bos_token }}
{%- set system = '' %}
{%- if messages[0].role == 'system' %}
    {%- set system = messages[0].content | trim %}
    {%- set messages = messages[1:] %}
{%- endif %}
{%- if system or tools is not none %}
    {{- '[system]\\n' ~ system }}
    {%- if tools is not none %}
        {{- '\\nTools:' }}
        {%- for tool in tools %}
            {{- '\\n' ~ (tool | tojson(indent=2)) }}
        {%- endfor %}
    {%- endif %}
    {{- eos_token }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles must alternate user/assistant/user/assistant/...') }}
    {%- endif %}
    {{- '[' ~ message.role ~ ']\\n' ~ message.content | trim ~ eos_token }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '[assistant]\\n' }}
{%- endif %}
""",
    "parts and thoughts": """{%- macro text_of(content) -%}
    {%- if content is string -%}
        {{ content }}
    {%- else -%}
        {%- for part in content if part.type == 'text' -%}
            {{ part.text }}{% if not loop.last %} | {% endif %}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- set state = namespace(last=-1, calls=0) -%}
{%- for message in messages -%}
    {%- if message.role == 'user' -%}{%- set state.last = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages %}
{%- set content = text_of(message.content) -%}
{%- if message.role == 'assistant' and '</think>' in content and loop.index0 < state.last -%}
    {%- set content = content.split('</think>')[-1].lstrip('\\n') -%}
{%- endif %}
{{ message.role | upper }}: {{ content }}
{%- if message.tool_calls is defined and message.tool_calls %}
{%- for call in message.tool_calls %}
{%- set state.calls = state.calls + 1 %}
<call n={{ state.calls }}>{{ call.function.name }}({% for key, value in call.function.arguments.items() %}{{ key }}={{ value | tojson }}{{ ', ' if not loop.last }}{% endfor %})</call>
{%- endfor %}
{%- endif %}
{%- endfor %}
{%- if documents %}
Documents: {{ documents | map(attribute='title') | join('; ') }} ({{ documents | length }})
{%- endif %}
{%- if add_generation_prompt %}

ASSISTANT: {{ '<think>\\n' if enable_thinking | default(true) else '<think>\\n\\n</think>\\n' }}
{%- endif %}""",
    "blocks that leave no line": """{% for message in messages %}
  {% if message.role == "user" %}
User: {{ message.content }}
  {% elif message.role == "assistant" %}
Bot: {{ message.content.strip() }}{{ eos_token }}
  {% else %}
{{ message.content | replace("\\n", " ") }}
  {% endif %}
{% endfor %}
{% if add_generation_prompt %}
Bot:{% endif %}
""",
}

SYSTEM = {"role": "system", "content": "  Answer in one word.\nBe kind.  "}
ASK = {"role": "user", "content": "What is the capital of France?"}
ANSWER = {"role": "assistant", "content": " <think>Easy.</think>\n\nParis \n"}
AGAIN = {"role": "user", "content": "Naïve “quotes”, <tags> & 日本語 🙂?"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image"}, {"type": "text", "text": "here"}]}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {"city": "Zürich", "days": 3, "exact": True, "unit": None}}}],
}
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
    },
}
DOCUMENTS = [{"title": "Cities", "text": "Paris is large."}, {"title": "Rivers", "text": "The Seine is long."}]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

CONVERSATIONS = {
    "marked turns": [([ASK], {}), ([SYSTEM, ASK, ANSWER, AGAIN], {}), ([ASK, ANSWER], {})],
    "headers": [([ASK], {}), ([SYSTEM, ASK, ANSWER, AGAIN], {}), ([ASK], {"tools": [TOOL, TOOL]})],
    "parts and thoughts": [
        ([PARTS], {}),
        ([ASK, ANSWER, AGAIN], {"documents": DOCUMENTS}),
        ([ASK, CALL, PARTS], {"enable_thinking": False}),
        ([ASK, ANSWER], {}),
    ],
    "blocks that leave no line": [([SYSTEM, ASK, ANSWER, AGAIN], {})],
}


def main():
    cases = []
    for name, conversations in CONVERSATIONS.items():
        for messages, options in conversations:
            for prompt in (False, True):
                rendered, _ = render_jinja_template(
                    [messages], chat_template=TEMPLATES[name], add_generation_prompt=prompt, **{"tools": None, "documents": None, **options, **TOKENS}
                )
                cases.append({"template": name, "messages": messages, "options": options, "addGenerationPrompt": prompt, "text": rendered[0]})
    content = {"tokens": TOKENS, "templates": TEMPLATES, "cases": cases}
    TARGET.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
