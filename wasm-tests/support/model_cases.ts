/** Compares the checkpoints of testdata/models with their golden files (see testdata/README.md). */
import type { Attn, Encoding, Tensor, TextModel } from 'attn';
import { assert } from 'chai';
import { readGoldenFile } from './golden.ts';
import { host, url } from './host.ts';
import { assertClose, rows } from './tensors.ts';

export const encoders = [
  'tiny-albert',
  'tiny-albert-mlm',
  'tiny-bert',
  'tiny-bert-choice',
  'tiny-bert-cls',
  'tiny-bert-legacy',
  'tiny-bert-mlm',
  'tiny-bert-multilabel',
  'tiny-bert-ner',
  'tiny-bert-qa',
  'tiny-camembert',
  'tiny-data2vec',
  'tiny-deberta',
  'tiny-deberta-choice',
  'tiny-deberta-mlm',
  'tiny-deberta-mlm-legacy',
  'tiny-deberta-ner',
  'tiny-deberta-qa',
  'tiny-distilbert',
  'tiny-distilbert-choice',
  'tiny-distilbert-mlm',
  'tiny-electra',
  'tiny-electra-choice',
  'tiny-electra-mlm',
  'tiny-ernie',
  'tiny-gte',
  'tiny-gte-2024',
  'tiny-gte-ner',
  'tiny-jina',
  'tiny-jina-mean',
  'tiny-modernbert',
  'tiny-modernbert-2024',
  'tiny-modernbert-mlm',
  'tiny-modernbert-qa',
  'tiny-mpnet',
  'tiny-mpnet-mean',
  'tiny-mpnet-mlm',
  'tiny-nomic',
  'tiny-nomic-2024',
  'tiny-nomic-mlm',
  'tiny-roberta',
  'tiny-roberta-choice',
  'tiny-roberta-mlm',
  'tiny-xlm-roberta',
  'tiny-xlm-roberta-ner',
] as const;
export const decoders = [
  'tiny-gpt2',
  'tiny-llama',
  'tiny-llama-3',
  'tiny-mistral',
  'tiny-qwen2',
  'tiny-qwen3',
  'tiny-neox',
  'tiny-neox-serial',
  'tiny-llama-yarn',
  'tiny-gemma-2',
  'tiny-gemma-3',
] as const;
export const checkpoints = [...encoders, ...decoders] as const;

/** Checkpoints with each kind of layer and head. */
const few: readonly string[] = [
  'tiny-albert-mlm',
  'tiny-bert-cls',
  'tiny-deberta',
  'tiny-distilbert-choice',
  'tiny-gte-2024',
  'tiny-jina-mean',
  'tiny-modernbert-qa',
  'tiny-mpnet',
  'tiny-nomic-2024',
  'tiny-roberta-mlm',
  'tiny-gpt2',
  'tiny-llama-3',
  'tiny-neox',
  'tiny-gemma-3',
];
/** Returns the checkpoints that this build loads: the slow checked ones only a few, because the native AddressSanitizer loads all. */
export const ofBuild = (names: readonly string[]) => names.filter((name) => host.build === 'release' || few.includes(name));

type Texts = readonly string[] | readonly (readonly [string, string])[];

export interface ModelCase {
  readonly name: string;
  readonly texts: Texts;
  readonly tokens?: readonly (readonly string[])[];
  readonly options: { readonly maxLength?: number };
  readonly forward?: { readonly isCausal: boolean; readonly headMask: readonly (readonly number[])[] };
  readonly expected: Readonly<Record<string, number>>;
}

export interface ModelGolden {
  readonly metadata: Readonly<Record<string, string>>;
  readonly cases: readonly ModelCase[];
  readonly tensors: Map<string, Tensor>;
}

export async function readModelGolden(attn: Attn, name: string): Promise<ModelGolden> {
  const { bytes, metadata, cases } = await readGoldenFile(`models/${name}`);
  return { metadata, cases: cases as unknown as readonly ModelCase[], tensors: attn.parseSafetensors(bytes) };
}

export function loadCheckpoint(attn: Attn, name: string, weights: 'float32' | 'int8' = 'float32'): Promise<TextModel> {
  return attn.loadModel(url(`testdata/models/${name}`), { cache: 'none', weights });
}

export const tolerance = (error: number) => 4 * error + 2e-6;

/**
 * Replaces expected numbers at padding positions, which are meaningless, by the actual ones. `axis` is that of the
 * positions.
 */
function withoutPadding(actual: Tensor, expected: Tensor, { attentionMask, dims: [, length] }: Encoding, axis: number): Tensor {
  const data = expected.data.slice();
  const inner = expected.dims.slice(axis + 1).reduce((a, b) => a * b, 1);
  const heads = axis === 2 ? expected.dims[1] : 1;
  for (let row = 0; row < data.length / inner; row++) {
    const position = row % length;
    const text = Math.floor(row / (length * heads));
    if (attentionMask[text * length + position] === 0) data.set(actual.data.subarray(row * inner, (row + 1) * inner), row * inner);
  }
  return { data, dims: expected.dims };
}

function cosines(actual: Tensor, expected: Tensor): number {
  const [rows, width] = expected.dims;
  let least = 1;
  for (let r = 0; r < rows; r++) {
    let [dot, a, b] = [0, 0, 0];
    for (let i = r * width; i < (r + 1) * width; i++) {
      dot += actual.data[i] * expected.data[i];
      a += actual.data[i] ** 2;
      b += expected.data[i] ** 2;
    }
    least = Math.min(least, dot / Math.sqrt(a * b));
  }
  return least;
}

export function assertEmbedding(actual: Tensor, expected: Tensor, error: number, what: string): void {
  assertClose(actual, expected, tolerance(error), what);
  assert.isAtLeast(cosines(actual, expected), 0.99999, `${what}: cosine`);
}

const isPairs = (texts: Texts): texts is readonly (readonly [string, string])[] => Array.isArray(texts[0]);

export async function runModelCase(model: TextModel, golden: ModelGolden, c: ModelCase): Promise<Set<string>> {
  const stored = (name: string) => golden.tensors.get(`${c.name}/${name}`) ?? assert.fail(`${c.name}: the file has no ${name}`);
  const expected = (name: string) => stored(`expected.${name}`);
  const compared = new Set<string>();
  const inputs = model.tokenize(c.texts, c.options);
  const ints = (t: Tensor) => Array.from(t.data);
  assert.deepEqual([...inputs.dims], [...stored('input_ids').dims], 'dims');
  assert.deepEqual(Array.from(inputs.inputIds), ints(stored('input_ids')), 'ids');
  assert.deepEqual(Array.from(inputs.attentionMask), ints(stored('attention_mask')), 'mask');
  assert.deepEqual(Array.from(inputs.tokenTypeIds), ints(stored('token_type_ids')), 'types');
  if (c.tokens) assert.deepEqual(inputs.tokens, c.tokens, 'tokens');

  const changed = c.forward && { ...c.forward, headMask: rows(c.forward.headMask) };
  const output = model.forward(inputs, { outputAttentions: true, outputHiddenStates: true, ...changed });
  const compare = (name: string, actual: Tensor | undefined, axis?: number) => {
    if (!actual) assert.fail(`${c.name}: no ${name}`);
    const wanted = axis === undefined ? expected(name) : withoutPadding(actual, expected(name), inputs, axis);
    assertClose(actual, wanted, tolerance(c.expected[name]), `${c.name}: ${name}`);
    compared.add(name);
  };
  const last = output.hiddenStates!.length - 1;
  assert.deepEqual(output.hiddenStates![last], output.lastHiddenState, 'the last hidden state');
  for (const name of Object.keys(c.expected)) {
    const [kind, which] = name.split('.');
    if (kind === 'lastHiddenState') compare(name, output.lastHiddenState, 1);
    else if (kind === 'hiddenStates') compare(name, output.hiddenStates![Number(which)], 1);
    else if (kind === 'attentions') compare(name, output.attentions![Number(which)], 2);
    else if (kind === 'traces') {
      const part = name.split('.')[2] as 'c2c' | 'c2p' | 'p2c';
      compare(name, model.traceLayer(inputs, Number(which), [part])[part], 2);
    } else if (kind === 'logits') compare(name, output.logits, output.logits!.dims.length === 3 ? 1 : undefined);
    else if (kind === 'probabilities') {
      const classes = await model.classify(c.texts, c.options);
      const wanted = expected(name);
      const labels = model.labels!;
      assert.equal(labels.length, wanted.dims[1], 'labels');
      classes.forEach((list, i) => {
        assert.sameMembers(
          list.map(({ label }) => label),
          [...labels],
        );
        list.forEach(({ label, score }, rank) => {
          assert.closeTo(score, wanted.data[i * labels.length + labels.indexOf(label)], 2e-5, `${c.name}: probability of ${label}`);
          if (rank > 0) assert.isAtMost(score, list[rank - 1].score, 'falling');
        });
      });
      compared.add(name);
    } else if (!isPairs(c.texts)) {
      // Pooling is for single texts; the native tests cover pairs.
      const options = kind === 'embedding' ? {} : { pooling: which as 'mean' | 'cls' | 'max', normalize: false };
      const vectors = await model.embed(c.texts, { ...c.options, ...options });
      assertEmbedding(vectors, expected(name), c.expected[name], `${c.name}: ${name}`);
      compared.add(name);
    }
  }
  return compared;
}

/** Returns a function that loads each checkpoint once. */
export function loadedOnce(attn: () => Attn): (name: string) => Promise<TextModel> {
  const models = new Map<string, Promise<TextModel>>();
  return (name) => {
    if (!models.has(name)) models.set(name, loadCheckpoint(attn(), name));
    return models.get(name)!;
  };
}
