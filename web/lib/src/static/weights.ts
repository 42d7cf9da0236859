/** Reads the safetensors file of a static model and checks everything that later lookups rely on. */
import { fail } from '../args/error.js';
import { readSafetensorsHeader } from '../model/safetensors_header.js';
import { formatNames, isFormat, Table, type TensorBytes } from './table.js';

const widths: Readonly<Record<string, number>> = { F64: 8, F32: 4, F16: 2, BF16: 2, I8: 1, I64: 8, I32: 4 };

function tensorsOf(op: string, file: string, bytes: Uint8Array<ArrayBuffer>): Map<string, TensorBytes> {
  const { tensors, dataStart } = readSafetensorsHeader(bytes);
  const found = new Map<string, TensorBytes>();
  for (const [
    name,
    {
      dtype,
      shape,
      data_offsets: [start, end],
    },
  ] of Object.entries(tensors)) {
    const argument = `${file}: ${name}`;
    if (dataStart + end > bytes.length)
      fail('FORMAT', op, argument, `has an end at byte ${dataStart + end}`, `at most ${bytes.length}, the end of the file`);
    const width = widths[dtype];
    const size = shape.reduce((product, dim) => product * dim, width ?? 0);
    if (width !== undefined && size !== end - start) fail('FORMAT', op, argument, `has ${end - start} bytes`, `${size} bytes for its shape`);
    found.set(name, { dtype, shape, bytes: bytes.subarray(dataStart + start, dataStart + end) });
  }
  return found;
}

/** Row of each token. */
function mappingOf(op: string, argument: string, { dtype, shape, bytes }: TensorBytes, rows: number): Int32Array {
  if (shape.length !== 1) fail('FORMAT', op, argument, `has the shape (${shape.join()})`, 'the shape (tokens)');
  const { buffer } = bytes.slice();
  if (dtype !== 'I32' && dtype !== 'I64') fail('UNSUPPORTED', op, argument, `has the format ${dtype}`, 'I32 or I64');
  const given = dtype === 'I32' ? new Int32Array(buffer) : new BigInt64Array(buffer);
  const mapping = new Int32Array(given.length);
  for (let i = 0; i < given.length; ++i) {
    const row = given[i]!;
    if (row < 0 || row >= rows) fail('FORMAT', op, `${argument}[${i}]`, `is ${row}`, `a row from 0 to ${rows - 1}`);
    mapping[i] = Number(row);
  }
  return mapping;
}

export interface Weights {
  readonly table: Table;
  /** model2vec, else WordLlama and StaticEmbedding of sentence-transformers. */
  readonly isModel2Vec: boolean;
  readonly mapping: Int32Array | undefined;
  /** A factor for each token. */
  readonly factors: Float64Array | undefined;
}

const names = ['embeddings', 'embedding.weight'] as const;

/** `tokens`: the size of the vocabulary. */
export function readWeights(op: string, file: string, bytes: Uint8Array<ArrayBuffer>, tokens: number): Weights {
  const tensors = tensorsOf(op, file, bytes);
  const name = names.find((each) => tensors.has(each));
  if (name === undefined) {
    const got = `has no tensor ${names.join(' or ')}`;
    fail('UNSUPPORTED', op, file, got, 'the matrix of model2vec, WordLlama or StaticEmbedding', 'loadModel() loads Transformer models');
  }
  const table = new Table(op, `${file}: ${name}`, tensors.get(name)!);
  const isModel2Vec = name === 'embeddings';
  const [given, weights] = isModel2Vec ? [tensors.get('mapping'), tensors.get('weights')] : [];
  const mapping = given && mappingOf(op, `${file}: mapping`, given, table.rows);
  const [named, count] = mapping ? ['mapping', mapping.length] : [name, table.rows];
  // Trained matrices can have unused rows at the end.
  if (count < tokens || (isModel2Vec && !mapping && count !== tokens))
    fail('MISMATCH', op, `${file}: ${named}`, `has ${count} rows`, `${tokens} rows, one for each token of tokenizer.json`);
  let factors: Weights['factors'];
  if (weights) {
    const { dtype, shape } = weights;
    const argument = `${file}: weights`;
    if (!isFormat(dtype) || dtype === 'I8') fail('UNSUPPORTED', op, argument, `has the format ${dtype}`, `one of ${formatNames} except I8`);
    if (shape.length !== 1 || shape[0]! < tokens) fail('MISMATCH', op, argument, `has the shape (${shape.join()})`, `(${tokens})`);
    // Few numbers: widened at once.
    const column = new Table(op, argument, { ...weights, shape: [shape[0]!, 1] });
    const one = new Float64Array(1);
    factors = Float64Array.from({ length: column.rows }, (_, row) => {
      one[0] = 0;
      column.add(row, 1, one);
      return one[0]!;
    });
  }
  return { table, isModel2Vec, mapping, factors };
}
