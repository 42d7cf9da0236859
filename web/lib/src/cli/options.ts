/** src/command/options.cpp has the same table and messages. */
import { parseArgs } from 'node:util';
import { hint } from '../args/error.js';

export class Misuse extends Error {}

interface Command {
  readonly takes: string;
  readonly needs?: string;
  readonly about: string;
  /** N is a whole number. */
  readonly options: readonly string[];
}

const ofTexts = ['jsonl', 'output jsonl|text', 'out PATH', 'weights float32|int8'];
const inBatches = [...ofTexts, 'max-length N', 'batch-size N'];
const commands = {
  convert: {
    takes: 'FOLDER OUT',
    needs: 'weights',
    about: 'Saves the model in FOLDER with other weights in OUT, a new or empty folder.',
    options: ['weights float32|float16|int8'],
  },
  inspect: { takes: 'FOLDER', about: 'Describes the model in FOLDER, and whether attn supports it.', options: ['tensors'] },
  embed: { takes: 'MODEL [FILE]', about: 'Computes the vector of each text.', options: ['jsonl', 'output jsonl|text|npy', ...inBatches.slice(2)] },
  classify: { takes: 'MODEL [FILE]', about: 'Lists the labels of each text by decreasing score.', options: [...inBatches, 'top-k N'] },
  tag: {
    takes: 'MODEL [FILE]',
    about: 'Finds named entities in each text, with their labels and offsets.',
    options: [...inBatches, 'stride N>=0', 'aggregation none|simple|first|average|max'],
  },
  fill: { takes: 'MODEL [FILE]', about: 'Lists the most likely tokens for each mask in a text.', options: [...ofTexts, 'top-k N'] },
  answer: { takes: 'MODEL [FILE]', about: 'Finds the answers to a question in a context.', options: [...ofTexts, 'top-k N', 'stride N>=0'] },
  rank: { takes: 'MODEL [FILE]', about: 'Ranks documents by their relevance to a query.', options: [...inBatches, 'top-k N'] },
  generate: {
    takes: 'MODEL TEXT',
    about: 'Continues a text with a language model, token by token.',
    options: [
      'json',
      'weights float32|int8',
      'max-new-tokens N',
      'do-sample',
      'temperature NUMBER>0',
      'top-k N>=0',
      'top-p 0<NUMBER<=1',
      'min-p 0<=NUMBER<=1',
      'repetition-penalty NUMBER>0',
      'seed N>=0',
      'stop TEXT',
    ],
  },
  score: {
    takes: 'MODEL TEXT',
    about: 'Prints how likely a language model finds each token of a text, and its perplexity.',
    options: ['json', 'weights float32|int8'],
  },
  lens: {
    takes: 'MODEL [TEXT]',
    about: 'Shows what the layers of a language model would predict, and which of its parts make a prediction.',
    options: [
      'json',
      'weights float32|int8',
      'method logit-lens|logit-attribution|patch-activations|attribution-patching|head-scores',
      'top-k N',
      'target TOKEN',
      'contrast TOKEN',
      'corrupted TEXT',
      'site residual|head|attention|mlp',
      'position N>=0',
      'kind previous-token|duplicate-token|induction|first-token',
    ],
  },
  index: {
    takes: 'FOLDER',
    needs: 'model',
    about: 'Makes a search index of the Markdown, HTML and text files below FOLDER. Only in the npm package.',
    options: [
      'model MODEL',
      'out PATH',
      'weights float32|int8',
      'batch-size N',
      'max-tokens N',
      'overlap N>=0',
      'by sentence|paragraph|token',
      'vectors int8|float32',
    ],
  },
  search: {
    takes: 'INDEX QUERY',
    needs: 'model',
    about: 'Finds the passages of an index that are most similar to a query. Only in the npm package.',
    options: ['model MODEL', 'weights float32|int8', 'top-k N', 'hybrid', 'json'],
  },
} as const satisfies Readonly<Record<string, Command>>;
export type CommandName = keyof typeof commands;

const abouts = {
  jsonl: 'each line is JSON, which is the default if the name of FILE ends in .jsonl or .ndjson',
  output: 'format of the results: JSON per line (the default), or columns separated by tabs; for embed also npy, one array of all vectors',
  out: 'file for the results, instead of standard output',
  weights: 'type of the weights, by default that of the files',
  'max-length': 'maximum number of tokens of a text; longer texts are truncated',
  'batch-size': 'number of texts computed at a time, by default 32; it does not affect the results',
  stride: 'number of tokens that consecutive windows of an overlong text share',
  aggregation: 'how tokens are merged into entities, by default simple',
  'top-k': 'maximum number of results, for search by default 5; for generate, number of likeliest tokens to draw from, 0 for all',
  json: 'prints the result as one JSON object',
  'max-new-tokens': 'maximum number of new tokens, by default 64',
  'do-sample': 'draws each token by its probability instead of taking the likeliest; --temperature, --top-k, --top-p, --min-p and --seed imply it',
  temperature: 'divisor of the logits: less than 1 favours likely tokens',
  'top-p': 'draws only from the likeliest tokens that together have this probability',
  'min-p': 'draws only from tokens with at least this share of the largest probability',
  'repetition-penalty': 'more than 1 makes tokens that occur before less likely, also without --do-sample',
  seed: 'the same seed gives the same tokens, by default 0',
  method: 'analysis: the prediction of each layer (the default), the parts of a logit, the effect of each activation, or kinds of heads',
  target: 'token whose logit is explained, as in the vocabulary, or as a text that is a single token',
  contrast: 'token whose logit is subtracted',
  corrupted: 'text with as many tokens as TEXT; activations of TEXT replace its own',
  site: 'activation that is replaced, by default residual, the input of a layer',
  position: 'position of the prediction, counted from 0, by default the last; logit-lens with --json: all',
  kind: 'kind of heads, by default all',
  model: 'model for embeddings, the same for index and search',
  'max-tokens': 'maximum number of tokens of a passage, by default 256, or as many as the model reads',
  overlap: 'maximum number of tokens that a passage repeats from the end of the passage before it, by default 0',
  by: 'where passages end: at sentences (the default) or paragraphs, or after as many words as fit',
  vectors: 'type of the vectors in the index, by default int8, a quarter of the size',
  hybrid: 'also ranks by the words that a passage shares with the query',
  tensors: 'also lists the tensors of the weights: name, type and shape, separated by tabs',
  stop: 'text before which the new text ends; may be given more than once',
} as const;
type OptionName = keyof typeof abouts;

const lines = {
  answer: 'Each line is a JSON object with the members question and context.',
  rank: 'Each line is a JSON object with the members query and documents; the results refer to documents by index, counted from 0.',
  generate: 'TEXT is one argument, so quote it; - reads it from standard input.',
  score: 'TEXT is one argument, so quote it; - reads it from standard input.',
  lens: 'TEXT is one argument; - reads it from standard input. Only head-scores needs none: it then repeats random tokens.',
  index:
    'Reads .md, .markdown, .html, .htm and .txt files in UTF-8. Skips hidden files, links and node_modules. The text below each\n' +
    '    heading is a document with the members path, anchor, title and heading.',
  search: 'Prints score, place and text of each passage. QUERY is one argument, so quote it; - reads it from standard input.',
  text: 'Each line of FILE, or of standard input, is a text, or a JSON object with the member text.',
};
const footer = `MODEL, and FOLDER of convert and inspect, have config.json, tokenizer.json and model.safetensors, as saved by transformers and sentence-transformers.
MODEL, and FOLDER of inspect, may also be one .gguf file.
Exit code: 0 for success, 1 if the model or a line is refused or a file cannot be read or written, 2 for an incorrect call.`;

const isCommand = (name: string): name is CommandName => Object.hasOwn(commands, name);
const split = (option: string) => option.split(' ') as [name: OptionName, value: string | undefined];
const head = (name: CommandName) => {
  const { takes, needs, about, options }: Command = commands[name];
  const needed = options.filter((option) => split(option)[0] === needs).map((option) => ` --${option}`);
  return `attn ${name} ${takes}${needed.join('')}\n    ${about}`;
};

export function help(name?: string): string {
  if (name === undefined || !isCommand(name)) {
    const names = Object.keys(commands) as CommandName[];
    return `${names.map(head).join('\n')}\nattn COMMAND --help\n    Describes the arguments of a command.\n\n${footer}`;
  }
  const { options, takes } = commands[name];
  const rows = (options as readonly string[]).map((option) => `  --${option}\n        ${abouts[split(option)[0]]}\n`).join('');
  const about = lines[name as keyof typeof lines] ?? (takes.startsWith('MODEL') ? lines.text : undefined);
  const reads = about === undefined ? '' : `    ${about}\n`;
  return `${head(name)}\n${reads}\n${rows}${rows && '\n'}${footer}`;
}

export interface Call {
  readonly command: CommandName;
  readonly paths: readonly string[];
  /** Each --stop. */
  readonly stops: readonly string[];
  readonly options: Readonly<Partial<Record<OptionName, string | number | true>>>;
}

/** ", expected one of …", and the suggestion of a similar name. */
function expectedOneOf(name: string, known: readonly string[]): string {
  const help = hint(name, known);
  return `, expected one of ${known.join(', ')}${help === undefined ? '' : `. ${help}`}`;
}

const decimal = /^(\d{1,9}|\d{0,9}\.\d{1,9})$/;

const numbers: Readonly<Record<string, { readonly expected: string; readonly form: RegExp; readonly fits: (value: number) => boolean }>> = {
  N: { expected: 'a whole number from 1 to 999999', form: /^\d{1,6}$/, fits: (value) => value >= 1 },
  'N>=0': { expected: 'a whole number from 0 to 999999', form: /^\d{1,6}$/, fits: () => true },
  'NUMBER>0': { expected: 'a number above 0', form: decimal, fits: (value) => value > 0 },
  '0<NUMBER<=1': { expected: 'a number above 0 and at most 1', form: decimal, fits: (value) => value > 0 && value <= 1 },
  '0<=NUMBER<=1': { expected: 'a number from 0 to 1', form: decimal, fits: (value) => value <= 1 },
};

function checked(name: OptionName, wanted: string | undefined, given: string | boolean): string | number | true {
  if (wanted === undefined) return true;
  const value = typeof given === 'string' ? given : '';
  const choices = wanted.split('|');
  const kind = numbers[wanted];
  const expected = `, expected ${kind?.expected ?? `a ${wanted.toLowerCase()}`}`;
  if (value === '') throw new Misuse(`--${name} is missing${choices.length > 1 ? `, expected one of ${choices.join(', ')}` : expected}`);
  if (choices.length > 1 && !choices.includes(value)) throw new Misuse(`--${name} is ${value}${expectedOneOf(value, choices)}`);
  if (!kind) return value;
  if (!kind.form.test(value) || !kind.fits(Number(value))) throw new Misuse(`--${name} is ${value}${expected}`);
  return Number(value);
}

export function readCall(args: readonly string[]): Call | { readonly help: string; readonly wrong: boolean } | 'version' {
  const declared = Object.values(commands).flatMap(({ options }): readonly string[] => options);
  const known = ['help', 'version', ...Object.keys(abouts)];
  const { positionals, tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(known.map((name) => [name, { type: declared.includes(name) ? 'boolean' : 'string' } as const])),
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean' },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given = tokens.filter((token) => token.kind === 'option');
  for (const { name, rawName } of given) if (!known.includes(name)) throw new Misuse(`option ${rawName} is unknown${expectedOneOf(name, known)}`);
  const [command, ...paths] = positionals;
  if (given.some(({ name }) => name === 'version')) return 'version';
  const wantsHelp = given.some(({ name }) => name === 'help');
  if (command === undefined || (wantsHelp && isCommand(command))) return { help: help(command), wrong: !wantsHelp };
  if (!isCommand(command)) throw new Misuse(`command is ${command}${expectedOneOf(command, Object.keys(commands))}`);
  const { takes, needs, options }: Command = commands[command];
  const names = takes.split(' ');
  const least = names.filter((name) => !name.startsWith('[')).length;
  if (paths.length < least || paths.length > names.length) throw new Misuse(`${command} has ${paths.length} arguments, expected ${takes}`);
  paths.forEach((path, i) => {
    if (path === '') throw new Misuse(`${names[i]!.replace(/[[\]]/g, '')} is empty`);
  });
  const own = new Map<string, string | undefined>(options.map(split));
  const values: Partial<Record<string, string | number | true>> = {};
  for (const { name, value } of given) {
    if (!own.has(name)) throw new Misuse(`${command} takes no --${name}`);
    values[name] = checked(name as OptionName, own.get(name), value ?? false);
  }
  if (needs !== undefined && values[needs] === undefined) checked(needs as OptionName, own.get(needs), false);
  const stops = given.flatMap(({ name, value }) => (name === 'stop' && value !== undefined ? [value] : []));
  return { command, paths, stops, options: values };
}
