import type { Attn } from 'attn';
import { assert } from 'chai';
import { readGoldenFile } from '../support/golden.ts';
import { type Opened, runBackward, runLoss, runOptimizer, runSchedule } from '../support/golden_backward.ts';
import { loadHere } from '../support/host.ts';

const names = [
  'backward',
  'layers_backward',
  'encoder_backward',
  'losses',
  'optimizers',
  'functional',
  'attention',
  'multi_head_attention',
  'transformer',
] as const;
const files = new Map(await Promise.all(names.map(async (name) => [name, await readGoldenFile(name)] as const)));

describe('gradients', () => {
  let attn: Attn;
  const opened = new Map<string, Opened>();
  before(async () => {
    attn = await loadHere();
    for (const [name, { bytes, cases }] of files)
      opened.set(name, { tensors: attn.parseSafetensors(bytes), cases: new Map(cases.map((c) => [c.name, c])) });
  });
  after(() => attn.dispose());

  for (const file of ['backward', 'layers_backward', 'encoder_backward'] as const) {
    const { cases, metadata } = files.get(file)!;
    // Grouped by op, because reporting a case takes longer than running it.
    for (const op of new Set(cases.map((c) => c.op)))
      it(`${op} (PyTorch ${metadata.torch})`, () => {
        const all = cases.filter((c) => c.op === op);
        assert.isAtLeast(all.length, 14);
        for (const c of all) runBackward(attn, (name = file) => opened.get(name)!, c);
      });
  }

  for (const op of ['cross_entropy', 'mse_loss', 'binary_cross_entropy_with_logits'])
    it(op, () => {
      const { tensors, cases } = opened.get('losses')!;
      const all = [...cases.values()].filter((c) => c.op === op);
      assert.isAtLeast(all.length, 13);
      for (const c of all) runLoss(attn, tensors, c);
    });

  for (const c of files.get('optimizers')!.cases)
    it(c.name, () => (c.op.endsWith('_schedule') ? runSchedule : runOptimizer)(attn, opened.get('optimizers')!.tensors, c));
});
