/** Finds a model among dropped or chosen files and prepares it for the package. */
import { readSafetensorsHeader, type SafetensorsHeader } from 'attn/worker';
import { unnamedFiles } from './known.ts';
import { isGguf, nameInPath } from './address.ts';

export interface FilesProblem {
  readonly cause: string;
  readonly fix: string;
}

export interface FoundModel<T> {
  readonly name: string;
  readonly files: Readonly<Record<string, T>>;
  readonly problem?: FilesProblem;
}

const folderOf = (path: string) => path.slice(0, path.lastIndexOf('/') + 1);
const depth = (path: string) => path.split('/').length;

/** The topmost folder with modules.json, or with config.json and another model file. */
function rootOf(paths: readonly string[]): string | undefined {
  const has = new Set(paths);
  const folders = [...new Set(paths.map(folderOf))].filter((folder) => has.has(`${folder}modules.json`) || has.has(`${folder}config.json`));
  // Subfolders of a model, such as 1_Pooling, have their own config.json.
  const isModel = (folder: string) =>
    has.has(`${folder}modules.json`) ||
    paths.some((path) => folderOf(path) === folder && /(tokenizer\.json|\.safetensors|\.bin|vocab\.\w+)$/.test(path));
  const uppermost = (some: readonly string[]) => some.reduce((best, each) => (depth(each) < depth(best) ? each : best), some[0]!);
  const models = folders.filter(isModel);
  return models.length > 0 ? uppermost(models) : folders.length > 0 ? uppermost(folders) : undefined;
}

const fileName = (path: string) => path.slice(folderOf(path).length);

/** The only GGUF file, if there are no other weights. */
function onlyGguf(paths: readonly string[]): string | undefined {
  const [file, ...more] = paths.filter(isGguf);
  return more.length > 0 || paths.some((path) => path.endsWith('.safetensors')) ? undefined : file;
}

const archive = /\.(zip|tar|tgz|gz|7z|rar|xz|zst)$/i;

function problemOf(paths: readonly string[]): FilesProblem | undefined {
  const packed = paths.find((path) => archive.test(path));
  if (packed !== undefined)
    return {
      cause: `${packed.split('/').at(-1)} is an archive, which this page does not unpack.`,
      fix: 'Unpack it and drop the folder.',
    };
  if (paths.some((path) => /(^|\/)blobs\/[0-9a-f]{40}/.test(path)))
    return {
      cause: 'This is a folder of the Hub’s cache. It contains symbolic links, which the browser skips.',
      fix: 'Copy it with `cp -rL models--…/snapshots/… my-model` and drop the copy, or use “Choose a folder …”.',
    };
  if (paths.some(isGguf))
    return {
      cause: 'There are several GGUF files. Each is a whole model.',
      fix: 'Choose one of them.',
    };
  if (paths.length === 0)
    return {
      cause: 'The browser found no file in it.',
      fix: 'Drop a folder with config.json, tokenizer.json and model.safetensors.',
    };
  const [weights, words] = [paths.find((path) => /\.safetensors$/.test(path)), 'config.json, tokenizer.json and model.safetensors'];
  return {
    cause:
      weights === undefined
        ? 'There is no config.json among these files, so they are not a model.'
        : `There is ${weights.split('/').at(-1)}, but no config.json.`,
    fix: `Drop ${words} together, or their folder.`,
  };
}

export function modelFiles<T>(files: readonly (readonly [path: string, file: T])[]): FoundModel<T> {
  const paths = files.map(([path]) => path);
  const root = rootOf(paths);
  const all = Object.fromEntries(files);
  const gguf = onlyGguf(paths);
  if (gguf !== undefined) return { name: nameInPath(fileName(gguf), unnamedFiles), files: { [fileName(gguf)]: all[gguf]! } };
  if (root === undefined) return { name: nameInPath(folderOf(paths[0] ?? ''), unnamedFiles), files: all, problem: problemOf(paths)! };
  return {
    name: nameInPath(root, unnamedFiles),
    files: Object.fromEntries(files.filter(([path]) => path.startsWith(root)).map(([path, file]) => [path.slice(root.length), file])),
  };
}

interface Ready {
  readonly files: Readonly<Record<string, Blob>>;
  /** A replacement that the visitor should know of. */
  readonly note?: string;
}

interface Module {
  readonly type?: unknown;
  readonly path?: unknown;
}

/** The mean, the default without modules.json, replaces a missing pooling folder. */
async function withPooling(files: Readonly<Record<string, Blob>>): Promise<Ready> {
  const list = files['modules.json'];
  if (!list) return { files };
  let modules: unknown;
  try {
    modules = JSON.parse(await list.text());
  } catch {
    return { files }; // the loader reports it
  }
  const paths = (Array.isArray(modules) ? (modules as (Module | null)[]) : []).flatMap((each) =>
    String(each?.type).endsWith('.Pooling') ? [String(each!.path).replace(/\/$/, '')] : [],
  );
  const lost = paths.find((path) => !Object.hasOwn(files, `${path}/config.json`));
  if (lost === undefined) return { files };
  const mean = new Blob([JSON.stringify({ pooling_mode_mean_tokens: true, pooling_mode_cls_token: false, pooling_mode_max_tokens: false })]);
  return {
    files: { ...files, [`${lost}/config.json`]: mean },
    note: `${lost} is missing, so a text’s vector is the mean of its tokens’ vectors.`,
  };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null && !Array.isArray(value);

async function jsonObject(name: string, text: Blob): Promise<Readonly<Record<string, unknown>>> {
  const value = (await text
    .text()
    .then(JSON.parse)
    .catch(() => undefined)) as unknown;
  if (!isObject(value)) throw new Error(`${name} is not a JSON object`);
  return value;
}

/** More than any header that attn reads; a damaged length must not read a whole file. */
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

/** Joins the weight files of a large model without copying their data. */
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

export async function readyToLoad(files: Readonly<Record<string, Blob>>): Promise<Ready> {
  const { files: known, ...about } = await withPooling(files);
  return { files: await joined(known), ...about };
}
