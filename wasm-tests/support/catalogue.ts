/**
 * Catalogues of bad input: a call, its error code, and words of its message. After each entry every layer and function
 * must give the same bits as before, and the heap in use must be unchanged.
 */
import type { Attn, Classifier, Embedding, Encoder, ErrorCode, MultiHeadAttention, Tensor } from 'attn';
import { assert } from 'chai';
import { assertThrows } from './errors.ts';
import { Generator } from './generator.ts';
import { loadHere, settledHeap } from './host.ts';
import { assertSameBits, random } from './tensors.ts';

const g = new Generator(13);
export const q = random(g, [2, 3, 4]);
export const k = random(g, [2, 5, 4]);
export const v = random(g, [2, 5, 6]);
export const x = random(g, [2, 3, 8]);
export const w = random(g, [5, 8]);

/** An instance, small layers of it, and a second instance for foreign objects. */
export interface Setting {
  readonly attn: Attn;
  readonly other: Attn;
  readonly mha: MultiHeadAttention;
  readonly layer: Encoder;
  /** Has two layers. */
  readonly encoder: Encoder;
  readonly classifier: Classifier;
  /** Has six rows of width 4. */
  readonly embedding: Embedding;
}

export interface Entry {
  readonly name: string;
  readonly code: ErrorCode | readonly ErrorCode[];
  readonly words: readonly (string | RegExp)[];
  readonly call: (s: Setting) => unknown;
}

/** Options of every encoder in the catalogues. */
export const encoderOptions = { dModel: 8, nhead: 2, dimFeedforward: 12 };

/** Casts a value of a wrong type. */
export const wrong = <T>(value: unknown): T => value as T;
/** Formats values that JSON cannot represent. */
const unsaid = (_: string, value: unknown) =>
  typeof value === 'bigint' ? `${value}n` : typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
export const named = (value: unknown) =>
  typeof value === 'object' && !ArrayBuffer.isView(value) ? JSON.stringify(value, unsaid) : `${String(value)} (${typeof value})`;
export const withData = (data: unknown, dims: readonly number[] = q.dims): Tensor => wrong({ data, dims });
export const withDims = (dims: unknown, data: unknown = q.data): Tensor => wrong({ data, dims });
export const maskOf = (
  dims: readonly number[],
  kind: unknown = 'attend',
  data: unknown = new Uint8Array(dims.reduce((a, b) => a * b, 1)).fill(1),
): unknown => ({ kind, dims, data });

/** Returns the array after transferring its buffer. */
export function detached<T extends Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>>(data: T): T {
  structuredClone(data.buffer, { transfer: [data.buffer] });
  return data;
}

/** Errors with these codes must name the argument and the expectation. */
const ofArguments: readonly ErrorCode[] = ['ARGUMENT', 'DTYPE', 'SHAPE', 'MASK', 'CONFIG', 'OUT_OF_RANGE'];

export class Catalogue {
  readonly entries: Entry[] = [];

  readonly bad = (name: string, code: Entry['code'], words: Entry['words'], call: Entry['call']): void =>
    void this.entries.push({ name, code, words, call });

  run(title: string): void {
    describe(title, () => {
      let s: Setting;
      let expected: Tensor[];
      let used: number;
      const forwards = () => [
        s.attn.scaledDotProductAttention(q, k, v).output,
        s.mha.forward(x).output,
        s.layer.forward(x).output,
        s.encoder.forward(x).output,
        s.classifier.forward(x).logits,
        s.embedding.forward([5, 0, 3]),
      ];
      before(async () => {
        const [attn, other] = [await loadHere({ maximumMemory: 2 ** 28 }), await loadHere({ threads: 1 })];
        s = {
          attn,
          other,
          mha: new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 }),
          layer: new attn.TransformerEncoderLayer(encoderOptions),
          encoder: new attn.TransformerEncoder({ ...encoderOptions, numLayers: 2 }),
          classifier: new attn.TransformerClassifier({ ...encoderOptions, numLayers: 1, numClasses: 3, pooling: 'mean' }),
          embedding: new attn.Embedding({ numEmbeddings: 6, embeddingDim: 4 }),
        };
        expected = forwards();
        used = settledHeap(attn);
      });
      after(() => {
        s.attn.dispose();
        s.other.dispose();
      });

      it('no two entries have the same name', () => assert.equal(new Set(this.entries.map(({ name }) => name)).size, this.entries.length));

      for (const { name, call, code, words } of this.entries)
        it(`${name}: ${typeof code === 'string' ? code : code.join(' or ')}`, () => {
          const error = assertThrows(() => call(s), code, words);
          assert.isString(error.detail.op, `detail.op of "${error.message}"`);
          assert.isTrue(error.message.startsWith(`${String(error.detail.op)}: `), `"${error.message}" begins with its op`);
          if (ofArguments.includes(error.code))
            for (const property of ['argument', 'expected', 'got'])
              assert.isString(error.detail[property], `detail.${property} of "${error.message}"`);
          if (ofArguments.includes(error.code)) assert.include(error.message, String(error.detail.argument), 'the message names the argument');
          forwards().forEach((t, i) => assertSameBits(t, expected[i], `afterwards, forward ${i}`));
          const now = s.attn.info.heap.used;
          const before = used;
          used = now; // a leak is reported once
          assert.equal(now, before, 'heap in use afterwards');
        });
    });
  }
}
