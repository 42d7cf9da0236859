/** npx attn: models as files, without a program. The native program `attn` (src/command/attn.cpp) does and prints the same. */
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { TextModel } from './attn.js';
import { hint, reason } from './error.js';
import { exportKinds } from './export_kinds.js';
import { AttnError, load } from './node.js';

const help = `attn convert FOLDER OUT --weights float32|float16|int8
    Writes the model in FOLDER to the folder OUT, which is new or empty, with its weights so.
attn inspect FOLDER
    Says what the model in FOLDER is, and whether attn takes it.

FOLDER has config.json, tokenizer.json and model.safetensors, as transformers and sentence-transformers write them.
Exit code: 0 when it is done, 1 when the model is refused or a file cannot be read or written, 2 when the call is wrong.`;

/** A call that is wrong. */
class Misuse extends Error {}

type Json = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;
const textOf = (value: unknown, otherwise: string) => (typeof value === 'string' ? value : otherwise);
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
const print = (name: string, text: string) => console.log(`${name.padEnd(12)}${text}`);

/** What there is at a path. */
async function kindOf(path: string): Promise<'folder' | 'file' | 'nothing'> {
  try {
    return (await stat(path)).isDirectory() ? 'folder' : 'file';
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code))) return 'nothing';
    throw error;
  }
}

/** What a JSON file holds; undefined where there is none, or it is not JSON. */
async function read(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch {
    return undefined;
  }
}

async function sizesOf(folder: string): Promise<number[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const sizes = await Promise.all(
    entries.map(async (entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? sizesOf(path) : [(await stat(path)).size];
    }),
  );
  return sizes.flat();
}

/** Bytes of the tensors by their type, in the order of its name. */
async function typesOf(file: string): Promise<string> {
  const bytes = await readFile(file);
  const size = Number(bytes.readBigUInt64LE(0));
  const { __metadata__: _, ...header } = JSON.parse(bytes.toString('utf8', 8, 8 + size)) as Record<string, unknown>;
  const types = new Map<string, [count: number, bytes: number]>();
  for (const { dtype, data_offsets } of Object.values(header) as { dtype: string; data_offsets: [number, number] }[]) {
    const [count, sum] = types.get(dtype) ?? [0, 0];
    types.set(dtype, [count + 1, sum + data_offsets[1] - data_offsets[0]]);
  }
  return [...types]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([dtype, [count, sum]]) => `${count} ${dtype} of ${megabytes(sum)}`)
    .join(', ');
}

/** How sentence-transformers calls the ways of pooling in its files. */
const poolings = ['cls_token', 'mean_tokens', 'max_tokens', 'mean_sqrt_len_tokens', 'weightedmean_tokens', 'lasttoken'];

async function modulesOf(folder: string): Promise<string> {
  const list = await read(join(folder, 'modules.json'));
  if (!Array.isArray(list)) return 'none, so mean pooling';
  const names = list.filter(isObject).map(async ({ type, path }) => {
    const name = String(type).replace(/^.*\./, '');
    const config = await read(join(folder, String(path), 'config.json'));
    if (name !== 'Pooling' || !isObject(config)) return name;
    const modes = poolings.filter((mode) => config[`pooling_mode_${mode}`] === true).map((mode) => mode.replace(/_tokens?$/, ''));
    const mode = config['pooling_mode'];
    return `${name} (${typeof mode === 'string' ? mode : modes.join(', ') || 'mean'})`;
  });
  return (await Promise.all(names)).join(', ');
}

/** The folder of config.json in that of the model. */
async function baseOf(folder: string): Promise<string> {
  const list = await read(join(folder, 'modules.json'));
  const module = Array.isArray(list) ? list.filter(isObject).find(({ type }) => /(^|\.)Transformer$/.test(String(type))) : undefined;
  return join(folder, textOf(module?.['path'], ''));
}

function printAnswer({ weights, labels }: TextModel): void {
  const all = labels ?? [];
  const more = all.length > 10 ? ` and ${all.length - 10} more` : '';
  print('head', all.length === 0 ? 'none' : `${all.length} labels: ${all.slice(0, 10).join(', ')}${more}`);
  print('attn', `takes it, as ${weights}`);
}

async function inspect(folder: string): Promise<number> {
  if ((await kindOf(folder)) !== 'folder') {
    console.error(`attn: FOLDER is ${folder}, which is no folder; expected that of a model`);
    return 1;
  }
  const sizes = await sizesOf(folder);
  const base = await baseOf(folder);
  const config = ((await read(join(base, 'config.json'))) ?? {}) as Json;
  const [architecture] = Array.isArray(config['architectures']) ? (config['architectures'] as unknown[]) : [];
  const first = (...names: string[]) => names.map((name) => config[name]).find((value) => typeof value === 'number') ?? '?';
  print('model', `${textOf(architecture, '?')} (${textOf(config['model_type'], '?')})`);
  print(
    'sizes',
    `${first('num_hidden_layers', 'n_layers')} layers, ${first('num_attention_heads', 'n_heads')} heads, hidden ${first('hidden_size', 'dim')}, ` +
      `intermediate ${first('intermediate_size', 'hidden_dim')}, vocabulary ${first('vocab_size')}, positions ${first('max_position_embeddings')}`,
  );
  const tokenizer = await read(join(base, 'tokenizer.json'));
  const kind = isObject(tokenizer) && isObject(tokenizer['model']) ? tokenizer['model']['type'] : undefined;
  print('tokenizer', textOf(kind, 'none'));
  print('modules', await modulesOf(folder));
  print('weights', await typesOf(join(base, 'model.safetensors')).catch(() => 'none that can be read'));
  print('files', `${sizes.length} of ${megabytes(sizes.reduce((sum, size) => sum + size, 0))}`);
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

async function convert(folder: string, out: string, weights: (typeof exportKinds)[number]): Promise<number> {
  const kind = await kindOf(out);
  if (kind === 'file') throw new Misuse(`OUT is ${out}, which is a file; expected a new folder`);
  if (kind === 'folder' && (await readdir(out)).length > 0) throw new Misuse(`OUT is ${out}, which is not empty; expected a new folder`);
  const attn = await load({ threads: 1 });
  try {
    const model = await attn.loadModel(folder, { weights: weights === 'int8' ? 'int8' : 'float32' });
    const files = Object.entries(await model.export({ weights }));
    try {
      for (const [name, bytes] of files) {
        const path = join(out, name);
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, bytes);
      }
    } catch (error) {
      // A part of a model is none, and the next call would not take OUT.
      const written = kind === 'folder' ? await readdir(out).catch(() => []) : [''];
      for (const name of written) await rm(join(out, name), { recursive: true, force: true }).catch(() => {});
      throw error;
    }
    return 0;
  } finally {
    attn.dispose();
  }
}

const commands = { convert: ['FOLDER', 'OUT'], inspect: ['FOLDER'] } as const;
const options = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' }, weights: { type: 'string' } } as const;

async function run(args: readonly string[]): Promise<number> {
  const { values, positionals, tokens } = parseArgs({ args: [...args], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens)
    if (token.kind === 'option' && !(token.name in options))
      throw new Misuse(`${token.rawName} is no option; ${hint(token.name, Object.keys(options))}`);
  if (values.version === true) {
    const { version } = (await read(fileURLToPath(new URL('../package.json', import.meta.url)))) as { version: string };
    console.log(version);
    return 0;
  }
  const [command, ...folders] = positionals;
  if (values.help === true || command === undefined) {
    console.log(help);
    return values.help === true ? 0 : 2;
  }
  if (!(command in commands)) throw new Misuse(`${command} is no command; ${hint(command, Object.keys(commands))}`);
  const wanted = commands[command as keyof typeof commands];
  if (folders.length !== wanted.length) throw new Misuse(`${command} takes ${wanted.join(' ')}, got ${folders.length} of them`);
  folders.forEach((path, i) => {
    if (path === '') throw new Misuse(`${wanted[i]} is empty`);
  });
  if (command === 'inspect') {
    if (values.weights !== undefined) throw new Misuse('inspect takes no --weights');
    return inspect(folders[0]!);
  }
  const weights = exportKinds.find((kind) => kind === values.weights);
  if (weights === undefined) {
    const given = typeof values.weights === 'string' ? values.weights : undefined;
    throw new Misuse(
      given === undefined ? `--weights is missing; there are ${exportKinds.join(', ')}` : `--weights is ${given}; ${hint(given, exportKinds)}`,
    );
  }
  return convert(folders[0]!, folders[1]!, weights);
}

try {
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof AttnError ? `attn: ${error.code}: ${error.message}` : `attn: ${reason(error)}`);
  process.exitCode = error instanceof Misuse ? 2 : 1;
}
