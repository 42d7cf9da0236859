/** A model among files that were dropped or chosen: in which folder it is, what it is called, and what is put right before it is read. */
import { readSafetensorsHeader, type SafetensorsHeader } from 'attn/worker';
import { nameInPath } from './address.ts';

/** What is wrong with the files, and what to do. */
export interface FilesProblem {
  readonly cause: string;
  readonly fix: string;
}

export interface FoundModel<T> {
  readonly name: string;
  /** By their names in the model's folder. */
  readonly files: Readonly<Record<string, T>>;
  readonly problem?: FilesProblem;
}

const unnamed = 'your files';
const folderOf = (path: string) => path.slice(0, path.lastIndexOf('/') + 1);
const depth = (path: string) => path.split('/').length;

/** The uppermost folder that a model can be read from: with modules.json, or with config.json and what else a model has. */
function rootOf(paths: readonly string[]): string | undefined {
  const has = new Set(paths);
  const folders = [...new Set(paths.map(folderOf))].filter((folder) => has.has(`${folder}modules.json`) || has.has(`${folder}config.json`));
  // Folders inside a model's, such as 1_Pooling, have a config.json of their own.
  const isModel = (folder: string) =>
    has.has(`${folder}modules.json`) ||
    paths.some((path) => folderOf(path) === folder && /(tokenizer\.json|\.safetensors|\.bin|vocab\.\w+)$/.test(path));
  const uppermost = (some: readonly string[]) => some.reduce((best, each) => (depth(each) < depth(best) ? each : best), some[0]!);
  const models = folders.filter(isModel);
  return models.length > 0 ? uppermost(models) : folders.length > 0 ? uppermost(folders) : undefined;
}

const archive = /\.(zip|tar|tgz|gz|7z|rar|xz|zst)$/i;

function problemOf(paths: readonly string[]): FilesProblem | undefined {
  const packed = paths.find((path) => archive.test(path));
  if (packed !== undefined)
    return {
      cause: `${packed.split('/').at(-1)} is an archive, and what is in it is not read.`,
      fix: 'Unpack it, and drop the folder that comes out.',
    };
  if (paths.some((path) => /(^|\/)blobs\/[0-9a-f]{40}/.test(path)))
    return {
      cause: 'This is a folder of the Hub’s cache. It holds links to its files, which the browser has left out.',
      fix: 'Copy it with its files, as `cp -rL models--…/snapshots/… my-model` does, and drop the copy; or use “Choose a folder …”.',
    };
  if (paths.length === 0)
    return {
      cause: 'There is no file in it that the browser hands on.',
      fix: 'Drop a folder with config.json, tokenizer.json and model.safetensors.',
    };
  const [weights, words] = [paths.find((path) => /\.safetensors$/.test(path)), 'config.json, tokenizer.json and model.safetensors'];
  return {
    cause:
      weights === undefined
        ? 'There is no config.json among these files: they are no model.'
        : `There is no config.json beside ${weights.split('/').at(-1)}.`,
    fix: `Drop ${words} together, or the folder that they are in.`,
  };
}

/** A model's files by their names in its folder, wherever that folder is in what was dropped or chosen. */
export function modelFiles<T>(files: readonly (readonly [path: string, file: T])[]): FoundModel<T> {
  const paths = files.map(([path]) => path);
  const root = rootOf(paths);
  const all = Object.fromEntries(files);
  if (root === undefined) return { name: nameInPath(folderOf(paths[0] ?? ''), unnamed), files: all, problem: problemOf(paths)! };
  return {
    name: nameInPath(root, unnamed),
    files: Object.fromEntries(files.filter(([path]) => path.startsWith(root)).map(([path, file]) => [path.slice(root.length), file])),
  };
}

interface Ready {
  readonly files: Readonly<Record<string, Blob>>;
  /** What was done without, in words. */
  readonly note?: string;
}

/** What modules.json says of a module. */
interface Module {
  readonly type?: unknown;
  readonly path?: unknown;
}

/** modules.json names folders of its own. Where that of the pooling was left behind, the mean stands in for it, as where there is no modules.json. */
async function withPooling(files: Readonly<Record<string, Blob>>): Promise<Ready> {
  const list = files['modules.json'];
  if (!list) return { files };
  let modules: unknown;
  try {
    modules = JSON.parse(await list.text());
  } catch {
    return { files }; // the loader says what is wrong with it
  }
  const paths = (Array.isArray(modules) ? (modules as (Module | null)[]) : []).flatMap((each) =>
    String(each?.type).endsWith('.Pooling') ? [String(each!.path).replace(/\/$/, '')] : [],
  );
  const lost = paths.find((path) => !Object.hasOwn(files, `${path}/config.json`));
  if (lost === undefined) return { files };
  const mean = new Blob([JSON.stringify({ pooling_mode_mean_tokens: true, pooling_mode_cls_token: false, pooling_mode_max_tokens: false })]);
  return {
    files: { ...files, [`${lost}/config.json`]: mean },
    note: `${lost} was not among the files: a text’s vector is the mean of those of its tokens.`,
  };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** An object in JSON. The message names the file. */
async function jsonObject(name: string, text: Blob): Promise<Readonly<Record<string, unknown>>> {
  const value = (await text
    .text()
    .then(JSON.parse)
    .catch(() => undefined)) as unknown;
  if (!isObject(value)) throw new Error(`${name} is not an object in JSON`);
  return value;
}

/** More than any header that attn reads, so that a damaged length does not read a whole file. */
const longestHeader = 2 ** 27;

async function headerOf(name: string, file: Blob): Promise<SafetensorsHeader> {
  const start = new DataView(await new Blob([file.slice(0, 8), new Uint8Array(8)]).arrayBuffer());
  const length = Math.min(Number(start.getBigUint64(0, true)), longestHeader);
  try {
    return readSafetensorsHeader(new Uint8Array(await file.slice(0, 8 + length).arrayBuffer()));
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

const shardIndex = 'model.safetensors.index.json';

/** Weights in several files, as large models have them, put one behind the other: nothing is copied. */
async function joined(files: Readonly<Record<string, Blob>>): Promise<Readonly<Record<string, Blob>>> {
  const index = files[shardIndex];
  if (!index || files['model.safetensors']) return files;
  const { weight_map: map } = await jsonObject(shardIndex, index);
  const names = [...new Set(isObject(map) ? Object.values(map).map(String) : [])];
  if (names.length === 0) throw new Error(`${shardIndex} names no files in weight_map`);
  const lost = names.filter((name) => !Object.hasOwn(files, name));
  if (lost.length > 0)
    throw new Error(`${shardIndex} names ${lost[0]}${lost.length > 1 ? ` and ${lost.length - 1} more` : ''}, which is not among the files`);
  const [all, parts]: [Record<string, unknown>, Blob[]] = [{}, []];
  let offset = 0;
  for (const name of names) {
    const file = files[name]!;
    const { dataStart, tensors } = await headerOf(name, file);
    for (const [tensor, { data_offsets: offsets, ...about }] of Object.entries(tensors))
      all[tensor] = { ...about, data_offsets: offsets.map((at) => at + offset) };
    parts.push(file.slice(dataStart));
    offset += file.size - dataStart;
  }
  const text = new TextEncoder().encode(JSON.stringify(all));
  const padding = new Uint8Array((8 - (text.length % 8)) % 8).fill(0x20);
  const size = new DataView(new ArrayBuffer(8));
  size.setBigUint64(0, BigInt(text.length + padding.length), true);
  return {
    ...Object.fromEntries(Object.entries(files).filter(([name]) => !names.includes(name))),
    'model.safetensors': new Blob([size, text, padding, ...parts]),
  };
}

/** The files as the package reads them. Throws what is wrong with those of several parts. */
export async function readyToLoad(files: Readonly<Record<string, Blob>>): Promise<Ready> {
  const { files: known, ...about } = await withPooling(files);
  return { files: await joined(known), ...about };
}
