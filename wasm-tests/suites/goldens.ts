/** Compares the package with every PyTorch golden in testdata/. */
import type { Attn, Tensor } from 'attn';
import { assert } from 'chai';
import { readGoldenFile, runCase, tolerance } from '../support/golden.ts';
import { loadHere } from '../support/host.ts';
import { assertClose } from '../support/tensors.ts';

const names = ['attention', 'functional', 'multi_head_attention', 'transformer', 'reference_cases'];
const files = await Promise.all(names.map(readGoldenFile));
const minilm = await readGoldenFile('minilm_layer0');
const sentences = await readGoldenFile('minilm_sentences');

files.forEach((file, i) => {
  describe(`goldens: ${names[i]} (PyTorch ${file.metadata.torch})`, () => {
    let attn: Attn;
    let tensors: Map<string, Tensor>;
    before(async () => {
      attn = await loadHere();
      tensors = attn.parseSafetensors(file.bytes);
    });
    after(() => attn.dispose());

    it('the file lists its cases', () => assert.isNotEmpty(file.cases));
    for (const c of file.cases) it(c.name, () => runCase(attn, tensors, c));
  });
});

describe(`goldens: the first layer of ${minilm.metadata.model} (PyTorch ${minilm.metadata.torch})`, () => {
  let attn: Attn;
  let tensors: Map<string, Tensor>;
  let run: (x: Tensor) => ReturnType<InstanceType<Attn['MultiHeadAttention']>['forward']>;
  before(async () => {
    attn = await loadHere();
    tensors = attn.parseSafetensors(minilm.bytes);
    const mha = new attn.MultiHeadAttention({ embedDim: 384, numHeads: Number(minilm.metadata.num_heads) });
    mha.loadStateDict(new Map(['in_proj_weight', 'in_proj_bias', 'out_proj.weight', 'out_proj.bias'].map((name) => [name, tensors.get(name)!])));
    run = (x) => mha.forward(x, undefined, undefined, { needWeights: true });
  });
  after(() => attn.dispose());

  it(minilm.metadata.sentence, () => {
    const r = run(tensors.get('x')!);
    const errors: Record<string, number> = JSON.parse(minilm.metadata.expected);
    assertClose(r.output, tensors.get('expected.output')!, tolerance(errors.output), 'output');
    assertClose(r.weights, tensors.get('expected.weights')!, tolerance(errors.weights), 'weights');
  });

  const list: { name: string; sentence: string; expected: { weights: number } }[] = JSON.parse(sentences.metadata.sentences);
  for (const { name, sentence, expected } of list)
    it(sentence, () => {
      const all = attn.parseSafetensors(sentences.bytes);
      assertClose(run(all.get(`${name}/x`)!).weights, all.get(`${name}/expected.weights`)!, tolerance(expected.weights), 'weights');
    });
});
