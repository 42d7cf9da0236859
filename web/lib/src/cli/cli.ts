/** The native program (src/command/attn.cpp) prints the same. */
import { lstatSync, readdirSync, renameSync, rmdirSync } from 'node:fs';
import { mkdir, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TextModel } from '../attn.js';
import { runGeneration } from './generation.js';
import { runLens } from './lens.js';
import { Misuse, readCall } from './options.js';
import { printable } from './printable.js';
import { runTexts } from './texts.js';
import { naming, systemReason } from './system_error.js';
import { removeEmpty, removeTree, unlessFinished } from './unfinished.js';
import { shapeText } from '../args/error.js';
import type { ExportKind } from '../args/export_kinds.js';
import { isModuleFolder, moduleFolder } from '../args/module_path.js';
import type { FileName } from '../args/model_options.js';
import { GgufFolder, readGgufHeader } from '../model/gguf/gguf.js';
import * as parts from '../model/gguf/gguf_parts.js';
import { DiskFolder } from '../model/model_files.js';
import { headerEnd, safetensorsPrefix } from '../model/safetensors_header.js';
import { disk } from '../platform/node_disk.js';
import { AttnError, load, readSafetensorsHeader } from '../node.js';

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;
const textOf = (value: unknown, otherwise: string) => (typeof value === 'string' ? value : otherwise);
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
const print = (name: string, text: string) => console.log(`${name.padEnd(12)}${printable(text)}`);
const complain = (text: string) => console.error(`attn: ${printable(text)}`);

async function kindOf(path: string): Promise<'folder' | 'file' | 'nothing'> {
  try {
    return (await stat(path)).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code))) return 'nothing';
    throw error;
  }
}

async function read(path: string): Promise<unknown> {
  try {
    if (!(await stat(path)).isFile()) return undefined; // a pipe might never answer
    return JSON.parse(await readFile(path, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Includes files in folders below, but no unreadable ones. */
async function sizesOf(folder: string): Promise<number[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const sizes = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return sizesOf(path);
      const about = await stat(path).catch(() => undefined); // a link to nothing
      return about?.isFile() ? [about.size] : [];
    }),
  );
  return sizes.flat();
}

interface StoredTensor {
  readonly name: string;
  readonly type: string;
  readonly shape: readonly number[];
  readonly bytes: number;
}

/** Reads only the header, because a safetensors file may be larger than memory. */
async function headerOf(file: string, fileSize: number): Promise<Uint8Array> {
  const handle = await open(file);
  try {
    const prefix = Buffer.alloc(safetensorsPrefix);
    await handle.read(prefix, 0, prefix.length, 0);
    const bytes = Buffer.alloc(Math.min(headerEnd(prefix), fileSize));
    await handle.read(bytes, 0, bytes.length, 0);
    return bytes;
  } finally {
    await handle.close();
  }
}

/** Lists the tensors in the order of their bytes. */
async function tensorsOf(file: string): Promise<StoredTensor[]> {
  const about = await stat(file);
  if (!about.isFile()) throw new Error('no file');
  const { tensors } = readSafetensorsHeader(await headerOf(file, about.size));
  return Object.entries(tensors)
    .sort(([, { data_offsets: a }], [, { data_offsets: b }]) => a[0] - b[0] || a[1] - b[1])
    .map(([name, { dtype, shape, data_offsets }]) => ({ name, type: dtype, shape, bytes: data_offsets[1] - data_offsets[0] }));
}

function inWords(tensors: readonly StoredTensor[]): string {
  const types = new Map<string, [count: number, bytes: number]>();
  for (const { type, bytes } of tensors) {
    const [count, sum] = types.get(type) ?? [0, 0];
    types.set(type, [count + 1, sum + bytes]);
  }
  return [...types]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([type, [count, sum]]) => `${count} ${type} of ${megabytes(sum)}`)
    .join(', ');
}

interface Weights {
  readonly weights: string;
  readonly tensors: readonly StoredTensor[];
}

/** Describes model.safetensors, or the files that model.safetensors.index.json lists. */
async function weightsOf(folder: string): Promise<Weights> {
  const [whole, index] = [join(folder, 'model.safetensors'), join(folder, 'model.safetensors.index.json')];
  if ((await kindOf(whole)) !== 'nothing' || (await kindOf(index)) === 'nothing') {
    const tensors = await tensorsOf(whole);
    return { weights: inWords(tensors), tensors };
  }
  const json = await read(index);
  const map = isObject(json) ? json['weight_map'] : undefined;
  if (!isObject(map)) throw new Error('no weight_map');
  const names = [...new Set(Object.values(map))].sort();
  if (names.length === 0) throw new Error('no files');
  const tensors: StoredTensor[] = [];
  for (const name of names) {
    if (typeof name !== 'string' || name === '' || !isModuleFolder(name)) throw new Error('no file of the folder');
    tensors.push(...(await tensorsOf(join(folder, name))));
  }
  return { weights: `${inWords(tensors)} in ${names.length} files`, tensors };
}

const poolings = ['cls_token', 'mean_tokens', 'max_tokens', 'mean_sqrt_len_tokens', 'weightedmean_tokens', 'lasttoken'];

/** attn reads no folder outside the model's. */
const isInside = (path: unknown): path is string => typeof path === 'string' && isModuleFolder(moduleFolder(path));

async function modulesOf(folder: string): Promise<string> {
  const list = await read(join(folder, 'modules.json'));
  if (!Array.isArray(list)) return 'none, so mean pooling';
  const names = list.filter(isObject).map(async ({ type, path }) => {
    const name = String(type).replace(/^.*\./, '');
    const config = isInside(path) ? await read(join(folder, path, 'config.json')) : undefined;
    if (name !== 'Pooling' || !isObject(config)) return name;
    const modes = poolings.filter((mode) => config[`pooling_mode_${mode}`] === true).map((mode) => mode.replace(/_tokens?$/, ''));
    const mode = config['pooling_mode'];
    return `${name} (${typeof mode === 'string' ? mode : modes.join(', ') || 'mean'})`;
  });
  return (await Promise.all(names)).join(', ');
}

async function baseOf(folder: string): Promise<string> {
  const list = await read(join(folder, 'modules.json'));
  const module = Array.isArray(list) ? list.filter(isObject).find(({ type }) => /(^|\.)Transformer$/.test(String(type))) : undefined;
  const path = module?.['path'];
  return isInside(path) ? join(folder, path) : folder;
}

function printAnswer(model: TextModel): void {
  const { weights, labels } = model;
  const all = labels ?? [];
  const numbers = [...model.parameterShapes().values()].map((dims) => dims.reduce((product, size) => product * size, 1));
  print('parameters', String(numbers.reduce((sum, count) => sum + count, 0)));
  const more = all.length > 10 ? ` and ${all.length - 10} more` : '';
  print('head', all.length === 0 ? 'none' : `${all.length} labels: ${all.slice(0, 10).join(', ')}${more}`);
  print('attn', `takes it, as ${weights}`);
}

interface Described extends Weights {
  readonly config: unknown;
  readonly tokenizer: unknown;
  readonly sizes: readonly number[];
}

const unreadable: Weights = { weights: 'none that can be read', tensors: [] };

async function describeFolder(folder: string): Promise<Described> {
  const base = await baseOf(folder);
  return {
    config: await read(join(base, 'config.json')),
    tokenizer: await read(join(base, 'tokenizer.json')),
    ...(await weightsOf(base).catch(() => unreadable)),
    sizes: await sizesOf(folder),
  };
}

async function describeGguf(path: string): Promise<Described> {
  const folder = await DiskFolder.at(disk, path);
  const name = folder.gguf!;
  const file = (await folder.open(name))!;
  // Loading reports why a header is wrong.
  const header = await readGgufHeader(name, file).catch(() => undefined);
  const tensors = header?.tensors.map(({ name, type, dims, bytes }) => ({ name, type: type.name, shape: [...dims].reverse(), bytes }));
  const gguf = new GgufFolder(
    folder,
    name,
    (each) => folder.open(each),
    () => Promise.resolve(parts),
  );
  const json = async (each: FileName): Promise<unknown> => {
    try {
      const chunks: Uint8Array[] = [];
      for await (const piece of (await gguf.open(each))!.pieces()) chunks.push(piece);
      return JSON.parse(Buffer.concat(chunks).toString());
    } catch {
      return undefined;
    }
  };
  const [config, tokenizer] = [await json('config.json'), await json('tokenizer.json')];
  await gguf.settle('complete');
  return { config, tokenizer, ...(tensors ? { weights: inWords(tensors), tensors } : unreadable), sizes: [file.total!] };
}

async function inspect(folder: string, listsTensors: boolean): Promise<number> {
  const kind = await kindOf(folder);
  const isGguf = folder.endsWith('.gguf') && kind === 'file' && (await stat(folder)).isFile();
  if (kind !== 'folder' && !isGguf) {
    complain(`FOLDER is ${folder}, which is not a folder, expected a model folder`);
    return 1;
  }
  const { config: given, tokenizer, weights, tensors, sizes } = await (isGguf ? describeGguf(folder) : describeFolder(folder));
  const config = (given ?? {}) as Json;
  const [architecture] = Array.isArray(config['architectures']) ? (config['architectures'] as unknown[]) : [];
  const first = (...names: string[]) => names.map((name) => config[name]).find((value) => typeof value === 'number') ?? '?';
  print('model', `${textOf(architecture, '?')} (${textOf(config['model_type'], '?')})`);
  print(
    'sizes',
    `${first('num_hidden_layers', 'n_layers', 'n_layer')} layers, ${first('num_attention_heads', 'n_heads', 'n_head')} heads, hidden ${first('hidden_size', 'dim', 'n_embd')}, ` +
      `intermediate ${first('intermediate_size', 'hidden_dim', 'n_inner')}, vocabulary ${first('vocab_size')}, positions ${first('max_position_embeddings', 'n_positions')}`,
  );
  const type = isObject(tokenizer) && isObject(tokenizer['model']) ? tokenizer['model']['type'] : undefined;
  print('tokenizer', textOf(type, 'none'));
  print('modules', await modulesOf(folder));
  print('weights', weights);
  print('files', `${sizes.length} of ${megabytes(sizes.reduce((sum, size) => sum + size, 0))}`);
  if (listsTensors) for (const { name, type: dtype, shape } of tensors) console.log(`${printable(name)}\t${dtype}\t${shapeText(shape)}`);
  const attn = await load({ threads: 1 });
  try {
    printAnswer(await attn.loadModel(folder));
    return 0;
  } catch (error) {
    if (!(error instanceof AttnError)) throw error;
    print('attn', `refuses it: ${error.code}: ${error.message}`);
    return 1;
  } finally {
    attn.dispose();
  }
}

async function convert(folder: string, out: string, weights: ExportKind): Promise<number> {
  const kind = await kindOf(out);
  if (kind === 'file') throw new Misuse(`OUT is ${out}, which is a file, expected a new folder`);
  if (kind === 'folder' && (await readdir(out)).length > 0) throw new Misuse(`OUT is ${out}, which is not empty, expected a new folder`);
  const attn = await load({ threads: 1 });
  try {
    const model = await attn.loadModel(folder, { weights: weights === 'int8' ? 'int8' : 'float32' });
    await writeFiles(out, Object.entries(await model.export({ weights })));
    return 0;
  } finally {
    attn.dispose();
  }
}

/** Writes all files or none. Files that others put into OUT in the meantime are neither replaced nor removed. */
async function writeFiles(out: string, files: readonly (readonly [name: string, bytes: Uint8Array])[]): Promise<void> {
  const made = await mkdir(out, { recursive: true });
  const parts = join(out, `.attn-${process.pid}`);
  const moved: string[] = [];
  const remove = () => {
    for (const path of [...moved, parts]) removeTree(path);
    if (made !== undefined) removeEmpty(out, made);
  };
  await unlessFinished(remove, async () => {
    for (const [name, bytes] of files) {
      const path = join(parts, name);
      await naming(join(out, name), mkdir(dirname(path), { recursive: true }));
      await naming(join(out, name), writeFile(path, bytes));
    }
    // config.json comes last: without it the folder is not a model. No signal is handled during a synchronous loop.
    for (const name of readdirSync(parts).sort((a, b) => Number(a === 'config.json') - Number(b === 'config.json'))) {
      const path = join(out, name);
      if (lstatSync(path, { throwIfNoEntry: false })) throw new Error(`${path}: File exists`);
      renameSync(join(parts, name), path);
      moved.push(path);
    }
    rmdirSync(parts);
  });
}

async function run(args: readonly string[]): Promise<number> {
  const call = readCall(args);
  if (call === 'version') {
    const { version } = (await read(fileURLToPath(new URL('../package.json', import.meta.url)))) as { version: string };
    console.log(version);
    return 0;
  }
  if ('help' in call) {
    console.log(call.help);
    return call.wrong ? 2 : 0;
  }
  const [first, second] = call.paths;
  if (call.command === 'inspect') return inspect(first!, call.options.tensors === true);
  if (call.command === 'convert') return convert(first!, second!, call.options.weights as ExportKind);
  if (call.command === 'index' || call.command === 'search') {
    const { runIndex, runSearch } = await import('./search.js');
    await (call.command === 'index' ? runIndex : runSearch)(call);
    return 0;
  }
  const ofModels = { generate: runGeneration, score: runGeneration, lens: runLens } as const;
  await (call.command in ofModels ? ofModels[call.command as keyof typeof ofModels] : runTexts)(call);
  return 0;
}

// EPIPE: the reader closed the pipe, which is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') complain(`writing: ${error.message}`);
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  complain(error instanceof AttnError ? `${error.code}: ${error.message}` : systemReason(error));
  process.exitCode = error instanceof Misuse ? 2 : 1;
}
