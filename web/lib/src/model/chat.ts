/** Formats conversations by the Jinja template of the model's files. */
import type { ChatMessage, ChatTemplateOptions } from '../attn.js';
import { AttnError, describe, errorWithHelp, fail, reading, reason } from '../args/error.js';
import { isPlainObject } from '../args/arrays.js';
import { toJson } from '../args/json.js';
import { readMembers } from '../args/signature.js';
import type { ChatFiles } from './chat_files.js';
import { Template } from './jinja.js';

const op = 'applyChatTemplate';
const optionNames = ['addGenerationPrompt', 'chatTemplate', 'tools', 'documents', 'variables'] as const;

/** A copy without getters and prototypes. */
function plain(argument: string, value: unknown): unknown {
  try {
    return JSON.parse(toJson(value));
  } catch (error) {
    throw new AttnError('ARGUMENT', `${op}: ${argument} cannot be written as JSON (${reason(error)})`, { op, argument }, { cause: error });
  }
}

function readMessages(given: unknown): unknown {
  const expected = 'an Array of messages { role, content }';
  if (!Array.isArray(given)) fail('ARGUMENT', op, 'messages', describe(given), expected);
  const messages = plain('messages', given) as readonly unknown[];
  for (const [i, message] of messages.entries()) {
    if (!isPlainObject(message)) fail('ARGUMENT', op, `messages[${i}]`, describe(message), 'an object { role, content }');
    const { role } = message as { role?: unknown };
    if (typeof role !== 'string') fail('ARGUMENT', op, `messages[${i}].role`, describe(role), "a string such as 'user'");
  }
  return messages;
}

function readList(name: string, value: unknown): unknown {
  if (value !== undefined && !Array.isArray(value)) fail('ARGUMENT', op, name, describe(value), 'an Array');
  return value && plain(name, value);
}

function readOptions(options: unknown) {
  const [addGenerationPrompt = false, name, tools, documents, variables = {}] = readMembers(op, 'options', options, optionNames);
  if (typeof addGenerationPrompt !== 'boolean') fail('ARGUMENT', op, 'addGenerationPrompt', describe(addGenerationPrompt), 'true or false');
  if (!isPlainObject(variables)) fail('ARGUMENT', op, 'variables', describe(variables), 'an object');
  return {
    addGenerationPrompt,
    name,
    tools: readList('tools', tools),
    documents: readList('documents', documents),
    variables: plain('variables', variables) as object,
  };
}

/** transformers' choice: by name, 'tool_use' if there are tools, else 'default'. */
function choose(templates: ChatFiles['templates'], name: unknown, hasTools: boolean): string {
  const names = Object.keys(templates);
  if (name !== undefined) {
    if (typeof name !== 'string') fail('ARGUMENT', op, 'chatTemplate', describe(name), 'the name of a template, or a template');
    return Object.hasOwn(templates, name) ? templates[name]! : name;
  }
  const found = (hasTools ? templates['tool_use'] : undefined) ?? templates['default'];
  if (found !== undefined) return found;
  if (names.length > 0) fail('ARGUMENT', op, 'chatTemplate', 'is missing', `one of ${names.join(', ')}`);
  throw errorWithHelp(
    'UNSUPPORTED',
    `${op}: the model's files have no chat template`,
    'Pass a template as chatTemplate, or use generate(): base models continue any text',
    { op, argument: 'chatTemplate' },
  );
}

/** As in Jinja's sandbox: a template could otherwise fill the memory. */
const longestRange = 100_000;
/** No identifier of a template is spelled so. */
const ownRange = 'range()';

function range(start: number, stop?: number, step = 1): number[] {
  const [first, end] = stop === undefined ? [0, start] : [start, stop];
  const count = Math.max(0, Math.ceil((end - first) / step));
  if (!(count <= longestRange)) throw new Error(`range() of ${count} numbers, expected at most ${longestRange}`);
  return Array.from({ length: count }, (_, i) => first + i * step);
}

/** Makes a template use the range() above. */
function limitRanges(node: unknown): void {
  if (typeof node !== 'object' || node === null) return;
  const { type, value, computed } = node as { type?: unknown; value?: unknown; computed?: unknown };
  if (type === 'Identifier' && value === 'range') (node as { value: string }).value = ownRange;
  for (const [name, part] of Object.entries(node)) if (type !== 'MemberExpression' || name !== 'property' || computed) limitRanges(part);
}

function compiled(text: string): Template {
  try {
    const template = new Template(text);
    limitRanges(template.parsed);
    return template;
  } catch (error) {
    throw new AttnError(
      'FORMAT',
      `${op}: the chat template is no Jinja template (${reason(error)})`,
      { op, argument: 'chatTemplate' },
      { cause: error },
    );
  }
}

export function formatChat({ templates, tokens }: ChatFiles, messages: readonly ChatMessage[], options: ChatTemplateOptions = {}): string {
  const read = reading(op, 'messages', () => readMessages(messages));
  const { addGenerationPrompt, name, tools, documents, variables } = reading(op, 'options', () => readOptions(options));
  const template = compiled(choose(templates, name, tools !== undefined));
  const given = {
    ...tokens,
    ...variables,
    [ownRange]: range,
    messages: read,
    add_generation_prompt: addGenerationPrompt,
    tools: tools ?? null,
    documents: documents ?? null,
  };
  try {
    return template.render(given);
  } catch (error) {
    throw new AttnError(
      'ARGUMENT',
      `${op}: the chat template refused these messages (${reason(error)})`,
      { op, argument: 'messages' },
      { cause: error },
    );
  }
}
