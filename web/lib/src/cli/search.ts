import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Encoding, TextModel } from '../attn.js';
import type { ChunkOptions } from '../chunk.js';
import type { Hit, IndexOptions } from '../search.js';
import { promptsOf } from '../search/prompts.js';
import { Index } from '../search/search.js';
import { chunk } from '../tokenizer/chunk.js';
import { type FileSection, sectionsOf, textFilesBelow } from './folder_texts.js';
import { textOf, withModel } from './generation.js';
import { type Call, Misuse } from './options.js';
import { printable, quoted } from './printable.js';
import { counted, Progress } from './progress.js';
import { naming } from './system_error.js';
import { placesIn } from './texts.js';
import { replacing } from './unfinished.js';
import { array, columns, number, object } from './written.js';

type Options = Call['options'];
type Places = Encoding['offsets'][number];

const defaultTokens = 256;
const defaultHits = 5;

/** Encodes a text of any length, although the model reads a limited number of tokens at a time. */
function encode(model: TextModel, text: string, addSpecialTokens: boolean): Encoding {
  const encoding = model.tokenize(text, { addSpecialTokens, truncationSide: 'right' });
  if (!encoding.truncated[0] || text.length < 2) return encoding;
  const half = text.length >> 1;
  const space = text.slice(0, half).search(/\s\S*$/);
  const middle = space > 0 ? space : half;
  const [left, right] = [text.slice(0, middle), text.slice(middle)].map((part) => encode(model, part, false).offsets[0]!) as [Places, Places];
  return { ...encoding, offsets: [[...left, ...right.map((place) => place && ([place[0] + middle, place[1] + middle] as [number, number]))]] };
}

/** Counts the tokens of a document that the model reads after the prompt, up to `wanted`. */
function readTokens(model: TextModel, prompt: string, wanted: number): number {
  const { truncated, dims } = model.tokenize(prompt + 'a '.repeat(wanted), { truncationSide: 'right' });
  if (!truncated[0]) return wanted;
  return Math.min(wanted, dims[1]! - model.tokenize(prompt, { addSpecialTokens: false }).dims[1]!);
}

async function chunkOptionsOf(model: TextModel, options: Options): Promise<ChunkOptions> {
  const wanted = options['max-tokens'] as number | undefined;
  const { document } = await promptsOf(model);
  const maxTokens = readTokens(model, document, wanted ?? defaultTokens);
  if (wanted !== undefined && maxTokens < wanted) throw new Error(`--max-tokens is ${wanted}, expected at most ${maxTokens}, which the model reads`);
  return { maxTokens, overlap: options.overlap as number | undefined, by: options.by as ChunkOptions['by'] };
}

async function filesOf(folder: string, out: string | undefined): Promise<string[]> {
  if (!(await naming(folder, stat(folder))).isDirectory()) throw new Error(`FOLDER is ${folder}, which is not a folder, expected a folder of texts`);
  const files = await textFilesBelow(folder);
  const target = out === undefined ? undefined : await stat(out).catch(() => undefined);
  for (const file of target ? files : []) {
    const about = await stat(join(folder, file));
    if (about.ino === target!.ino && about.dev === target!.dev)
      throw new Misuse(`--out is ${out}, which is one of the files that are read, expected another file`);
  }
  return files;
}

async function readSections(folder: string, files: readonly string[]): Promise<{ sections: FileSection[]; count: number }> {
  const sections: FileSection[] = [];
  let count = 0;
  for (const file of files) {
    const own = await sectionsOf(folder, file);
    if (own) ++count;
    else console.error(`attn: ${printable(file)} is not UTF-8 and is skipped`);
    for (const section of own ?? []) sections.push(section);
  }
  if (sections.length === 0) throw new Error(`FOLDER is ${folder}, which has no texts, expected .md, .markdown, .html, .htm or .txt files`);
  return { sections, count };
}

export async function runIndex(call: Call): Promise<void> {
  const { options } = call;
  const folder = call.paths[0]!;
  const out = options.out === '-' ? undefined : (options.out as string | undefined);
  if (out === undefined && process.stdout.isTTY) throw new Misuse('standard output is a terminal, expected a file. Use --out PATH.');
  const start = performance.now();
  const files = await filesOf(folder, out);
  const progress = new Progress('passage', process.stderr.isTTY);
  const make = async (model: TextModel) => {
    const tokenizer: Parameters<typeof chunk>[0] = { encode: (text, given) => encode(model, text as string, given?.addSpecialTokens ?? true) };
    const chunkOptions = await chunkOptionsOf(model, options);
    chunk(tokenizer, '', chunkOptions); // refuses invalid options before the texts are read
    const { sections, count } = await readSections(folder, files);
    let passages = 0;
    const given: IndexOptions = {
      vectors: options.vectors as IndexOptions['vectors'],
      batchSize: options['batch-size'] as number | undefined,
      chunk(text) {
        const own = chunk(tokenizer, text, chunkOptions);
        passages += own.length;
        return own;
      },
      onProgress: ({ done, total }) => void progress.report(total, done, total),
    };
    const index = await Index.from(model, sections, given);
    return { bytes: await index.save(), count, passages };
  };
  const write = async (put: (bytes: Uint8Array) => Promise<void>) => {
    try {
      await withModel(call, options.model as string, async (model) => {
        const { bytes, count, passages } = await make(model);
        await put(bytes);
        progress.clear();
        const seconds = ((performance.now() - start) / 1000).toFixed(1);
        console.error(`attn: ${counted(count, 'file')}, ${counted(passages, 'passage')}, ${counted(bytes.length, 'byte')}, ${seconds} s`);
      });
    } catch (error) {
      progress.clear();
      throw error;
    }
  };
  if (out !== undefined) return replacing(out, (file) => write((bytes) => naming(out, file.writeFile(bytes))));
  return write((bytes) => new Promise((resolve) => void process.stdout.write(bytes, (error) => void (error ?? resolve()))));
}

/** Returns path and anchor of a passage in an index of `attn index`, else its id. */
function placeOf({ id, document: { path, anchor } }: Hit): string {
  if (typeof path !== 'string') return String(id);
  return typeof anchor === 'string' && anchor !== '' ? `${path}#${anchor}` : path;
}

function jsonOf(hit: Hit): string {
  const { text, ...document } = hit.document;
  const scores = { score: number(hit.score), similarity: number(hit.similarity) };
  return object({ ...scores, text: quoted(hit.text), ...placesIn(text)(hit), document: printable(JSON.stringify(document)) });
}

export async function runSearch(call: Call): Promise<void> {
  const { paths, options } = call;
  const query = await textOf(paths[1]!, 'QUERY');
  const bytes = await naming(paths[0]!, readFile(paths[0]!));
  await withModel(call, options.model as string, async (model) => {
    const index = await Index.load(model, bytes);
    const hits = await index.search(query, { k: (options['top-k'] as number | undefined) ?? defaultHits, hybrid: options.hybrid === true });
    if (options.json !== undefined) console.log(object({ hits: array(hits.map(jsonOf)) }));
    else for (const hit of hits) console.log(columns([number(hit.score), placeOf(hit), hit.text.replace(/\s+/g, ' ')]));
  });
}
