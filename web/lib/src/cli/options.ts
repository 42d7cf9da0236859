/** Command line of `attn`. src/command/options.cpp has the same table and the same messages. */
import { parseArgs } from 'node:util';
import { hint } from '../args/error.js';

/** Usage error. */
export class Misuse extends Error {}

interface Command {
  readonly takes: string;
  readonly about: string;
  /** Option names with their values; N is a whole number. */
  readonly options: readonly string[];
}

const ofTexts = ['jsonl', 'output jsonl|text', 'out PATH', 'weights float32|int8'];
const inBatches = [...ofTexts, 'max-length N', 'batch-size N'];
const commands = {
  convert: {
    takes: 'FOLDER OUT',
    about: 'Writes the model in FOLDER to the folder OUT, which is new or empty, with its weights so.',
    options: ['weights float32|float16|int8'],
  },
  inspect: { takes: 'FOLDER', about: 'Says what the model in FOLDER is, and whether attn takes it.', options: [] },
  embed: { takes: 'MODEL [FILE]', about: 'The vector of each text.', options: ['jsonl', 'output jsonl|text|npy', ...inBatches.slice(2)] },
  classify: { takes: 'MODEL [FILE]', about: 'The labels of each text, by falling score.', options: [...inBatches, 'top-k N'] },
  tag: {
    takes: 'MODEL [FILE]',
    about: 'What each text names, with its label and its place.',
    options: [...inBatches, 'stride N', 'aggregation none|simple|first|average|max'],
  },
  fill: { takes: 'MODEL [FILE]', about: 'The most likely tokens for each mask of a text.', options: [...ofTexts, 'top-k N'] },
  answer: { takes: 'MODEL [FILE]', about: 'Where a context answers a question.', options: [...ofTexts, 'top-k N', 'stride N'] },
  rank: { takes: 'MODEL [FILE]', about: 'Documents by how relevant they are to a query.', options: [...inBatches, 'top-k N'] },
} as const satisfies Readonly<Record<string, Command>>;
export type CommandName = keyof typeof commands;

const abouts = {
  jsonl: 'each line is JSON, as in a FILE whose name ends in .jsonl or .ndjson',
  output: 'what is written of each line: JSON, the default, or words between tabs; of embed npy, too, one array of all vectors',
  out: 'where it is written instead of standard output',
  weights: 'how weights are kept, by default as the files have them',
  'max-length': 'tokens of a text, which is cut there',
  'batch-size': 'texts that are computed at a time, by default 32; the results do not depend on it',
  stride: 'a text that is too long goes in windows that have so many tokens in common',
  aggregation: 'how tokens become what is named, by default simple',
  'top-k': 'how many there are at most',
} as const;
type OptionName = keyof typeof abouts;

const lines = {
  answer: 'Each line is JSON with the members question and context.',
  rank: 'Each line is JSON with the members query and documents; answers are numbers of documents, counted from 0.',
  text: 'Each line of FILE, or of standard input, is a text; as JSON it has the member text.',
};
const footer = `FOLDER and MODEL have config.json, tokenizer.json and model.safetensors, as transformers and sentence-transformers write them.
Exit code: 0 when it is done, 1 when the model or a line is refused or a file cannot be read or written, 2 when the call is wrong.`;

const isCommand = (name: string): name is CommandName => Object.hasOwn(commands, name);
const split = (option: string) => option.split(' ') as [name: OptionName, value: string | undefined];
const head = (name: CommandName) => {
  const { takes, about } = commands[name];
  return `attn ${name} ${takes}${name === 'convert' ? ' --weights float32|float16|int8' : ''}\n    ${about}`;
};

export function help(name?: string): string {
  if (name === undefined || !isCommand(name)) {
    const names = Object.keys(commands) as CommandName[];
    return `${names.map(head).join('\n')}\nattn COMMAND --help\n    Says what a command takes.\n\n${footer}`;
  }
  const { options, takes } = commands[name];
  const rows = (options as readonly string[]).map((option) => `  --${option}\n        ${abouts[split(option)[0]]}\n`).join('');
  const reads = takes === 'MODEL [FILE]' ? `    ${lines[name as keyof typeof lines] ?? lines.text}\n` : '';
  return `${head(name)}\n${reads}\n${rows}${rows && '\n'}${footer}`;
}

export interface Call {
  readonly command: CommandName;
  readonly paths: readonly string[];
  /** Values of the given options; true for an option without a value. */
  readonly options: Readonly<Partial<Record<OptionName, string | number | true>>>;
}

const suggestion = (name: string, known: readonly string[]) => hint(name, known)?.replace('Did', 'did') ?? `there are ${known.join(', ')}`;

function checked(name: OptionName, wanted: string | undefined, given: string | boolean): string | number | true {
  if (wanted === undefined) return true;
  const value = typeof given === 'string' ? given : '';
  const choices = wanted.split('|');
  const least = name === 'stride' ? 0 : 1;
  const expected = wanted === 'N' ? `expected a whole number from ${least} to 999999` : `expected a ${wanted.toLowerCase()}`;
  if (value === '') throw new Misuse(`--${name} is missing; ${choices.length > 1 ? `there are ${choices.join(', ')}` : expected}`);
  if (choices.length > 1 && !choices.includes(value)) throw new Misuse(`--${name} is ${value}; ${suggestion(value, choices)}`);
  if (wanted !== 'N') return value;
  if (!/^\d{1,6}$/.test(value) || Number(value) < least) throw new Misuse(`--${name} is ${value}; ${expected}`);
  return Number(value);
}

/** Parses the command line: a call, or a request for help or the version. */
export function readCall(args: readonly string[]): Call | { readonly help: string; readonly wrong: boolean } | 'version' {
  const takesNone = ['help', 'version', 'jsonl'];
  const known = ['help', 'version', ...Object.keys(abouts)];
  const { positionals, tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(known.map((name) => [name, { type: takesNone.includes(name) ? 'boolean' : 'string' } as const])),
      help: { type: 'boolean', short: 'h' },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given = tokens.filter((token) => token.kind === 'option');
  for (const { name, rawName } of given) if (!known.includes(name)) throw new Misuse(`${rawName} is no option; ${suggestion(name, known)}`);
  const [command, ...paths] = positionals;
  if (given.some(({ name }) => name === 'version')) return 'version';
  const wantsHelp = given.some(({ name }) => name === 'help');
  if (command === undefined || (wantsHelp && isCommand(command))) return { help: help(command), wrong: !wantsHelp };
  if (!isCommand(command)) throw new Misuse(`${command} is no command; ${suggestion(command, Object.keys(commands))}`);
  const { takes, options } = commands[command];
  const names = takes.split(' ');
  const least = names.filter((name) => !name.startsWith('[')).length;
  if (paths.length < least || paths.length > names.length) throw new Misuse(`${command} takes ${takes}, got ${paths.length} of them`);
  paths.forEach((path, i) => {
    if (path === '') throw new Misuse(`${names[i]!.replace(/[[\]]/g, '')} is empty`);
  });
  const own = new Map<string, string | undefined>((options as readonly string[]).map(split));
  const values: Partial<Record<string, string | number | true>> = {};
  for (const { name, value } of given) {
    if (!own.has(name)) throw new Misuse(`${command} takes no --${name}`);
    values[name] = checked(name as OptionName, own.get(name), value ?? false);
  }
  if (command === 'convert' && values['weights'] === undefined) checked('weights', own.get('weights'), false);
  return { command, paths, options: values };
}
