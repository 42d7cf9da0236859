/** An index as a safetensors file, which may be damaged or made to do harm. */
import { readBytes } from '../args/arrays.js';
import { AttnError, errorWithHelp, reason, shapeText } from '../args/error.js';
import { toJson } from '../args/json.js';
import { refuseText } from '../args/refuse_text.js';
import { type Item, safetensorsFile } from '../model/safetensors.js';
import { readSafetensorsHeader } from '../model/safetensors_header.js';
import { decodeStrictUtf8, encodeUtf8 } from '../platform/utf8.js';
import { type Document, readDocuments, readPrompts } from './arguments.js';
import type { Prompts } from './prompts.js';
import { type Kind, oddRow, type Rows } from './vectors.js';

export interface Contents {
  readonly kind: Kind;
  readonly rows: Rows;
  readonly test: Float32Array;
  readonly prompts: Partial<Prompts>;
  readonly documents: readonly Document[];
  /** (N,3): index of the document, start and end of the text of each row. */
  readonly places: Int32Array;
}

const format = 'attn/search';
const version = '1';

function jsonOf(op: string, documents: readonly Document[]): string {
  const each = documents.map((document) => {
    try {
      return toJson(document);
    } catch (cause) {
      const got = `has members that JSON cannot hold (${reason(cause)})`;
      const message = `${op}: the document with the id ${JSON.stringify(document.id)} ${got}, expected members that are JSON`;
      throw new AttnError('ARGUMENT', message, { op, argument: 'documents', got, id: document.id }, { cause });
    }
  });
  return `[${each.join()}]`;
}

export function fileOf(op: string, { kind, rows, test, prompts, documents, places }: Contents): Uint8Array<ArrayBuffer> {
  const [N, E] = [places.length / 3, test.length];
  const item = (name: string, dtype: Item['dtype'], dims: readonly number[], data: ArrayBufferView): Item => ({
    name,
    dtype,
    dims,
    fill: (to) => to.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength)),
  });
  const text = encodeUtf8(jsonOf(op, documents));
  const items = [
    item('vectors', kind === 'int8' ? 'I8' : 'F32', [N, E], rows.data),
    ...(kind === 'int8' ? [item('scales', 'F32', [N], rows.scales)] : []),
    item('places', 'I32', [N, 3], places),
    item('documents', 'U8', [text.length], text),
    item('test', 'F32', [E], test),
  ];
  const metadata = { format, version, prompts: JSON.stringify(prompts) };
  return safetensorsFile(op, items, Object.entries(metadata).map(([name, value]) => [name, JSON.stringify(value)])); // prettier-ignore
}

const arrays = { F32: Float32Array, I32: Int32Array, I8: Int8Array, U8: Uint8Array } as const;
type Dtype = keyof typeof arrays;

export function parsed(op: string, value: unknown): Contents {
  const bytes = readBytes(op, 'bytes', value);
  const expected = 'an index that save() wrote';
  refuseText(op, 'bytes', bytes, expected);
  const refuse = (what: string, cause?: unknown): never => {
    throw new AttnError('FORMAT', `${op}: ${what}, expected ${expected}`, { op, argument: 'bytes', expected, got: what }, { cause });
  };
  const trying = <T>(what: string, work: () => T): T => {
    try {
      return work();
    } catch (cause) {
      return refuse(`${what} (${reason(cause)})`, cause);
    }
  };
  const { tensors, metadata, dataStart } = trying('bytes are not a safetensors file', () => readSafetensorsHeader(bytes));
  const meta = (name: string) => (Object.hasOwn(metadata, name) ? metadata[name]! : refuse(`__metadata__ has no ${name}`));
  if (!Object.hasOwn(metadata, 'format') || metadata['format'] !== format) refuse('bytes are another safetensors file');
  if (meta('version') !== version) {
    const got = meta('version').slice(0, 20);
    const message = `${op}: the index has version ${got}, expected version ${version}`;
    throw errorWithHelp('UNSUPPORTED', message, 'Use the version of attn that wrote it', { op, argument: 'bytes', got });
  }

  const view = <D extends Dtype>(name: string, dtype: D, shape: readonly (number | undefined)[]): InstanceType<(typeof arrays)[D]> => {
    const found = Object.hasOwn(tensors, name) ? tensors[name]! : refuse(`there is no tensor ${name}`);
    const { shape: dims, data_offsets: [start, end] } = found; // prettier-ignore
    if (found.dtype !== dtype || dims.length !== shape.length || shape.some((size, axis) => size !== undefined && size !== dims[axis]))
      refuse(`${name} is ${found.dtype.slice(0, 20)} ${shapeText(dims.slice(0, 9))}`);
    const of = arrays[dtype];
    const size = dims.reduce((all, dim) => all * dim, of.BYTES_PER_ELEMENT);
    if (end - start !== size) refuse(`${name} has ${end - start} bytes instead of ${size}`);
    if (dataStart + end > bytes.length) refuse(`${name} is cut off`);
    // A copy is aligned.
    return new of(bytes.slice(dataStart + start, dataStart + end).buffer) as never;
  };
  const kind: Kind = Object.hasOwn(tensors, 'vectors') && tensors['vectors']!.dtype === 'F32' ? 'float32' : 'int8';
  const test = view('test', 'F32', [undefined]);
  const E = test.length;
  if (E === 0) refuse('test is empty');
  const places = view('places', 'I32', [undefined, 3]);
  const N = places.length / 3;
  const rows: Rows =
    kind === 'int8'
      ? { data: view('vectors', 'I8', [N, E]), scales: view('scales', 'F32', [N]) }
      : { data: view('vectors', 'F32', [N, E]), scales: new Float32Array(0) };
  const odd = oddRow(rows, E);
  if (odd >= 0) refuse(`vector ${odd} does not have length 1`);
  if (oddRow({ data: test, scales: rows.scales }, E) >= 0) refuse('test does not have length 1');

  const prompts = trying('the prompts are invalid', () => readPrompts(op, JSON.parse(meta('prompts'))));
  const documents = trying('the documents are invalid', () => {
    const list = readDocuments(op, JSON.parse(decodeStrictUtf8(view('documents', 'U8', [undefined]))));
    return list.map(({ id, text, members }, i): Document => {
      if (id === undefined) throw new Error(`documents[${i}] has no id`);
      return Object.freeze({ ...members, id, text });
    });
  });
  if (new Set(documents.map(({ id }) => id)).size < documents.length) refuse('two documents have the same id');
  for (let i = 0; i < N; ++i) {
    const [document, start, end] = places.subarray(3 * i, 3 * i + 3) as unknown as [number, number, number];
    const text = documents[document]?.text;
    if (text === undefined || start < 0 || end < start || end > text.length) refuse(`place ${i} is outside the documents`);
  }
  return { kind, rows, test, prompts, documents, places };
}
