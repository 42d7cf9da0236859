/** Reads arguments of loadModel() and TextModel, here or in attn/worker before they are sent. */
import type { FineTuneOptions, GenerateOptions, ModelOptions } from '../attn.js';
import { elements, isPlainObject, readBytes, readTokenMask } from './arrays.js';
import { AttnError, describe, errorWithHelp, fail, hint, reading } from './error.js';
import { type ExportKind, exportKinds } from './export_kinds.js';
import { hubId } from './hub.js';
import { readCacheDir, readCallback, readSignal } from './options.js';
import { choice, readLeaves, readMembers, type Leaf, type Signature, whole } from './signature.js';
import { type Aggregation, aggregations } from './aggregation.js';

/** Files that attn reads; the first three are required. */
export const fileNames: readonly string[] = [
  'config.json',
  'tokenizer.json',
  'model.safetensors',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'modules.json',
  '1_Pooling/config.json',
  '2_Dense/config.json',
  '2_Dense/model.safetensors',
  'sentence_bert_config.json',
  'config_sentence_transformers.json',
  'generation_config.json',
  'chat_template.jinja',
  'preprocessor_config.json',
];
export type FileName = string;

const inModule = /^[\w-][\w.-]*\/([\w.-]+)$/;
const mayBeRead = (name: string) =>
  fileNames.includes(name) ||
  fileNames.includes(inModule.exec(name)?.[1] ?? '') ||
  /^([\w-][\w.-]*\/)?model-\d+-of-\d+\.safetensors$|^[\w-][\w.-]*\.gguf$/.test(name);

export type Given = Uint8Array<ArrayBuffer> | Blob | string;
export type Source = { readonly location: string } | { readonly files: readonly (readonly [name: string, content: Given, source: unknown])[] };

const op = 'loadModel';
const tagOf = (value: unknown) => Object.prototype.toString.call(value).slice(8, -1);

export const readSource = (value: unknown): Source => reading(op, 'source', () => sourceOf(value));

function sourceOf(value: unknown): Source {
  const tag = tagOf(value);
  if ((typeof value === 'string' && value !== '') || tag === 'URL') return { location: String(value) };
  if (!isPlainObject(value)) fail('ARGUMENT', op, 'source', describe(value), 'the URL or path of a folder, or an object of files by name');
  const files = Object.keys(value as object).map((name) => {
    const content = (value as Readonly<Record<string, unknown>>)[name];
    if (typeof content === 'string') return [name, content, content] as const;
    const kind = tagOf(content);
    const isBlob = (kind === 'Blob' || kind === 'File') && typeof Blob === 'function';
    // Private copy; throws for other objects.
    const given = isBlob ? Blob.prototype.slice.call(content) : readBytes(op, `source[${JSON.stringify(name)}]`, content);
    return [name, given, content] as const;
  });
  if (files.length === 0) fail('ARGUMENT', op, 'source', 'is an empty object', `an object with ${fileNames.slice(0, 3).join(', ')}`);
  return { files };
}

const cacheModes = ['default', 'none', 'reload'] as const;
const weightKinds = ['auto', 'float32', 'int8'] as const;

const fileOfModel = /\.(safetensors|json|bin|pt|onnx|gguf)$/i;

/** Helps if a folder is missing, or its server returned a page instead. */
export function withAdvice(error: unknown, source: Source): unknown {
  if (!(error instanceof AttnError) || error.help !== undefined || !('location' in source)) return error;
  const { location } = source;
  const isFile = fileOfModel.test(location);
  if (!isFile && !hubId.test(location)) return error;
  const { code, message, detail, cause } = error;
  const isAbsent = code === 'NETWORK' && detail['file'] === 'config.json';
  if (!isAbsent && !(code === 'FORMAT' && detail['argument'] === 'config.json' && detail['got'] === 'HTML')) return error;
  const help = isFile
    ? `The source ${JSON.stringify(location)} is a file: pass the folder that contains it`
    : `The source ${JSON.stringify(location)} looks like a Hub id: pass hub(${JSON.stringify(location)}) or the path of a copy`;
  return errorWithHelp(code, message, help, detail, { cause });
}

export interface CheckedModelOptions {
  readonly fetch: ModelOptions['fetch'];
  readonly cache: (typeof cacheModes)[number];
  readonly cacheDir: string | undefined;
  readonly weights: (typeof weightKinds)[number];
  /** Lowercase digest by file. */
  readonly sha256: ReadonlyMap<string, string>;
  readonly request: { readonly headers?: Readonly<Record<string, string>>; readonly credentials?: RequestCredentials };
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ModelOptions['onProgress'];
}

export const readModelOptions = (value: unknown): CheckedModelOptions => reading(op, 'options', () => modelOptions(value));

function modelOptions(value: unknown): CheckedModelOptions {
  const names = [
    'fetch',
    'cache',
    'cacheDir',
    'weights',
    'sha256',
    'request',
    'signal',
    'onProgress',
  ] as const satisfies readonly (keyof ModelOptions)[];
  const [fetch, cache, cacheDir, weights, sha256, request, signal, onProgress] = value === undefined ? [] : readMembers(op, 'options', value, names);
  const digests = new Map<string, string>();
  if (sha256 !== undefined) {
    if (!isPlainObject(sha256)) fail('ARGUMENT', op, 'sha256', describe(sha256), 'an object of hex digests by file name');
    for (const name of Object.keys(sha256 as object)) {
      const digest = (sha256 as Readonly<Record<string, unknown>>)[name];
      // Such a digest would verify nothing.
      if (!mayBeRead(name))
        throw errorWithHelp(
          'ARGUMENT',
          `${op}: sha256 has the unknown file name ${JSON.stringify(name)}, expected one of ${fileNames.join(', ')}`,
          hint(name, fileNames),
          { op, argument: 'sha256', expected: fileNames.join(', '), got: name },
        );
      const argument = `sha256[${JSON.stringify(name)}]`;
      if (typeof digest !== 'string' || !/^[0-9a-f]{64}$/i.test(digest)) fail('ARGUMENT', op, argument, describe(digest), '64 hex digits');
      digests.set(name, digest.toLowerCase());
    }
  }
  return {
    fetch: readCallback(op, 'fetch', fetch) as ModelOptions['fetch'],
    cache: cache === undefined ? 'default' : cacheModes[choice(op, 'cache', cache, cacheModes)]!,
    cacheDir: readCacheDir(op, cacheDir),
    weights: weights === undefined ? 'auto' : weightKinds[choice(op, 'weights', weights, weightKinds)]!,
    sha256: digests,
    request: requestOf(request),
    signal: readSignal(op, signal),
    onProgress: readCallback(op, 'onProgress', onProgress) as ModelOptions['onProgress'],
  };
}

const credentialKinds = ['omit', 'same-origin', 'include'] as const;

function requestOf(value: unknown): CheckedModelOptions['request'] {
  const [headers, credentials] = value === undefined ? [] : readMembers(op, 'request', value, ['headers', 'credentials']);
  if (headers !== undefined && !(isPlainObject(headers) && Object.values(headers).every((each) => typeof each === 'string')))
    fail('ARGUMENT', op, 'request.headers', describe(headers), 'an object of strings');
  return {
    ...(headers !== undefined && { headers: { ...(headers as Record<string, string>) } }),
    ...(credentials !== undefined && { credentials: credentialKinds[choice(op, 'request.credentials', credentials, credentialKinds)]! }),
  };
}

export function frozen<T extends object>(value: T): Readonly<T> {
  const open: object[] = [value];
  for (let object = open.pop(); object; object = open.pop()) {
    Object.freeze(object);
    for (const member of Object.values(object)) if (typeof member === 'object' && member !== null) open.push(member as object);
  }
  return value;
}

export type Text = string | readonly [string, string];

export const readTexts = (operation: string, value: unknown, pairs: boolean, name = 'texts'): Text[] =>
  reading(operation, name, () => textsOf(operation, value, pairs, name));

function textsOf(operation: string, value: unknown, pairs: boolean, name: string): Text[] {
  const expected = pairs ? 'a string, an Array of strings or an Array of pairs of strings' : 'a string or an Array of strings';
  if (typeof value === 'string') return [value];
  if (!Array.isArray(value)) fail('ARGUMENT', operation, name, describe(value), expected);
  const texts = elements(value as unknown[], (text, i): Text => {
    if (typeof text === 'string') return text;
    if (!pairs || !Array.isArray(text))
      fail('ARGUMENT', operation, `${name}[${i}]`, describe(text), pairs ? 'a string or a pair of strings' : 'a string');
    const { length } = text as unknown[];
    if (length !== 2) fail('ARGUMENT', operation, `${name}[${i}]`, `has ${length} elements`, 'a pair of strings');
    const part = (which: 0 | 1): string => {
      const value = (text as unknown[])[which];
      if (typeof value !== 'string') fail('ARGUMENT', operation, `${name}[${i}][${which}]`, describe(value), 'a string');
      return value;
    };
    return [part(0), part(1)];
  });
  const mixed = texts.findIndex((text) => typeof text !== typeof texts[0]);
  if (mixed >= 0)
    fail('ARGUMENT', operation, `${name}[${mixed}]`, describe(texts[mixed]), typeof texts[0] === 'string' ? 'a string' : 'a pair of strings');
  return texts;
}

export const readDocuments = (value: unknown): string[] => {
  if (typeof value === 'string') fail('ARGUMENT', 'rank', 'documents', describe(value), 'an Array of strings');
  return readTexts('rank', value, false, 'documents') as string[];
};

export const readCandidates = (value: unknown): string[] => {
  const op = 'classifyZeroShot';
  if (typeof value === 'string') fail('ARGUMENT', op, 'labels', describe(value), 'an Array of strings');
  const labels = readTexts(op, value, false, 'labels') as string[];
  if (labels.length === 0) fail('ARGUMENT', op, 'labels', 'is empty', 'at least one label');
  return labels;
};

export interface TextOptions {
  readonly maxLength?: number;
  readonly truncation?: boolean;
  readonly pooling?: string;
  readonly normalize?: boolean;
  readonly batchSize?: number;
  readonly priority?: (typeof priorities)[number];
  readonly prompt?: string;
  readonly promptName?: string;
  readonly aggregation?: Aggregation;
  readonly stride?: number;
  readonly ignoreLabels?: readonly string[];
  readonly topK?: number;
  readonly targets?: readonly string[];
  readonly maxAnswerLength?: number;
  readonly allowEmpty?: boolean;
  readonly hypothesisTemplate?: string;
  readonly multiLabel?: boolean;
  readonly addSpecialTokens?: boolean;
  readonly truncationSide?: 'left' | 'right';
  readonly paddingSide?: 'left' | 'right';
  readonly maxNewTokens?: number;
  readonly doSample?: boolean;
  readonly temperature?: number;
  readonly topP?: number;
  readonly minP?: number;
  readonly repetitionPenalty?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
}

export interface CheckedTextOptions {
  readonly plain: TextOptions;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: ((p: { done: number; total: number }) => void) | undefined;
  readonly onToken: GenerateOptions['onToken'];
}

const sides = ['left', 'right'] as const;
const poolings = ['mean', 'cls', 'max', 'lasttoken', 'weightedmean', 'mean_sqrt_len'] as const;
const priorities = ['user', 'background'] as const;

type Reader = (operation: string, name: string, value: unknown) => unknown;

const count =
  (least = 1, most = 2 ** 31 - 1): Reader =>
  (...given) =>
    whole(...given, least, most);
const oneOf =
  (words: readonly string[]): Reader =>
  (...given) =>
    words[choice(...given, words)];
const flag: Reader = (operation, name, value) =>
  typeof value === 'boolean' ? value : fail('ARGUMENT', operation, name, describe(value), 'true or false');
/** C++ checks the range. */
const number: Reader = (operation, name, value) =>
  typeof value === 'number' ? value : fail('ARGUMENT', operation, name, describe(value), 'a number');
const text: Reader = (operation, name, value) => (typeof value === 'string' ? value : fail('ARGUMENT', operation, name, describe(value), 'a string'));
const strings: Reader = (operation, name, value) =>
  Array.isArray(value)
    ? elements(value as unknown[], (each, i) => text(operation, `${name}[${i}]`, each))
    : fail('ARGUMENT', operation, name, describe(value), 'an Array of strings');

const readers: Readonly<Record<keyof TextOptions, Reader>> = {
  maxLength: count(),
  truncation: flag,
  pooling: oneOf(poolings),
  normalize: flag,
  batchSize: count(1, 2 ** 20),
  priority: oneOf(priorities),
  prompt: text,
  promptName: text,
  aggregation: oneOf(aggregations),
  stride: count(0),
  ignoreLabels: strings,
  topK: (...given) => whole(...given, given[0] === 'generate' ? 0 : 1, 2 ** 31 - 1),
  targets: strings,
  maxAnswerLength: count(),
  allowEmpty: flag,
  hypothesisTemplate: text,
  multiLabel: flag,
  addSpecialTokens: flag,
  truncationSide: oneOf(sides),
  paddingSide: oneOf(sides),
  maxNewTokens: count(),
  doSample: flag,
  temperature: number,
  topP: number,
  minP: number,
  repetitionPenalty: number,
  seed: count(0, Number.MAX_SAFE_INTEGER),
  stop: strings,
};

export const readTextOptions = (operation: string, value: unknown, names: readonly string[]): CheckedTextOptions =>
  reading(operation, 'options', () => {
    const values = value === undefined ? [] : readMembers(operation, 'options', value, names);
    const given: Readonly<Record<string, unknown>> = Object.fromEntries(names.map((name, i) => [name, values[i]]));
    const plain: Record<string, unknown> = {};
    for (const [name, read] of Object.entries(readers)) if (given[name] !== undefined) plain[name] = read(operation, name, given[name]);
    return {
      plain,
      signal: readSignal(operation, given['signal']),
      onProgress: readCallback(operation, 'onProgress', given['onProgress']) as CheckedTextOptions['onProgress'],
      onToken: readCallback(operation, 'onToken', given['onToken']) as CheckedTextOptions['onToken'],
    };
  });

export const readExportOptions = (value: unknown): ExportKind | undefined =>
  reading('export', 'options', () => {
    const [weights] = value === undefined ? [] : readMembers('export', 'options', value, ['weights']);
    return weights === undefined ? undefined : exportKinds[choice('export', 'weights', weights, exportKinds)]!;
  });

export const tokenizeOptions = ['maxLength', 'truncation', 'addSpecialTokens', 'truncationSide'];
export const encodeOptions = [...tokenizeOptions, 'paddingSide'];
const batchOptions = ['batchSize', 'priority', 'signal', 'onProgress'];
const textOptionNames = [...tokenizeOptions, ...batchOptions];
const promptOptions = ['prompt', 'promptName'];
export const classifyOptions = [...textOptionNames, 'topK'];
export const zeroShotOptions = [...classifyOptions, 'hypothesisTemplate', 'multiLabel'];
export const embedOptions = [...textOptionNames, ...promptOptions, 'pooling', 'normalize'];

export const classifyTokensOptions = [...textOptionNames, 'aggregation', 'stride', 'ignoreLabels'];
export const fillMaskOptions = [...batchOptions, 'topK', 'targets'];
export const answerOptions = [...batchOptions, 'maxLength', 'topK', 'maxAnswerLength', 'stride', 'allowEmpty'];
export const attributeOptions = ['method', 'target', 'contrast', 'position', 'steps', 'signal'];
export const fineTuneOptions = [
  'epochs',
  'batchSize',
  'learningRate',
  'weightDecay',
  'layers',
  'labels',
  'seed',
  'validation',
  'signal',
  'onProgress',
] as const satisfies readonly (keyof FineTuneOptions)[];

const samplingOptions = ['doSample', 'temperature', 'topK', 'topP', 'minP', 'repetitionPenalty', 'seed'] as const;
export const generateOptions = ['maxNewTokens', ...samplingOptions, 'stop', 'addSpecialTokens', 'onToken', 'signal'];
export const nextTokenOptions = ['topK'];

export const rankOptions = [...textOptionNames, ...promptOptions, 'topK'];

export function readText(operation: string, name: string, value: unknown): string {
  if (typeof value !== 'string') fail('ARGUMENT', operation, name, describe(value), 'a string');
  return value;
}

export const readDecodeOptions = (value: unknown): boolean =>
  reading('decode', 'options', () => {
    const [skip = false] = value === undefined ? [] : readMembers('decode', 'options', value, ['skipSpecialTokens']);
    if (typeof skip !== 'boolean') fail('ARGUMENT', 'decode', 'skipSpecialTokens', describe(skip), 'true or false');
    return skip;
  });

export const readIds = (value: unknown): number[] =>
  reading('decode', 'ids', () => {
    if (!Array.isArray(value) && !(ArrayBuffer.isView(value) && !(value instanceof DataView)))
      fail('ARGUMENT', 'decode', 'ids', describe(value), 'an Array or a typed array of whole numbers');
    return elements(value as ArrayLike<unknown>, (id, i) => whole('decode', `ids[${i}]`, id, 0, 2 ** 31 - 1));
  });

export function readToken(operation: string, value: unknown): string {
  if (typeof value !== 'string') fail('ARGUMENT', operation, 'token', describe(value), 'a string');
  return value;
}

export function readParameterName(value: unknown): string {
  if (typeof value !== 'string') fail('ARGUMENT', 'getParameter', 'name', describe(value), 'a string');
  return value;
}

export function readId(operation: string, value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) fail('ARGUMENT', operation, 'id', describe(value), 'a whole number');
  return value;
}

export const readEncoded = (operation: string, signature: Signature, inputs: unknown, others: Readonly<Record<string, unknown>>): Leaf[] =>
  reading(operation, 'inputs', () => encodedOf(operation, signature, inputs, others));

function encodedOf(operation: string, { arguments: list }: Signature, inputs: unknown, others: Readonly<Record<string, unknown>>): Leaf[] {
  if (!isPlainObject(inputs)) {
    const got = describe(inputs);
    fail('ARGUMENT', operation, 'inputs', got, 'an Encoding', got === 'is a Promise' ? 'Await tokenize()' : 'tokenize() returns one');
  }
  const { inputIds, attentionMask, tokenTypeIds, dims } = inputs as Readonly<Record<string, unknown>>;
  if (dims === undefined) fail('ARGUMENT', operation, 'inputs.dims', 'is missing', 'an Array of two whole numbers');
  const values: Readonly<Record<string, unknown>> = {
    inputIds,
    dims,
    attentionMask:
      attentionMask === undefined ? undefined : { kind: 'attend', data: readTokenMask(operation, 'attentionMask.data', attentionMask, dims), dims },
    tokenTypeIds,
    ...others,
  };
  const leaves: Leaf[] = [];
  for (const argument of list) readLeaves(operation, argument, '', values[argument.name], 0, dims, leaves);
  return leaves;
}
