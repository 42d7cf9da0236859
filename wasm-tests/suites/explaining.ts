import type { Attn, Tensor, TextModel } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { compareRows, readGoldenFile } from '../support/golden.ts';
import { loadHere, url } from '../support/host.ts';
import { loadCheckpoint, tolerance } from '../support/model_cases.ts';
import { assertClose, assertSameBits } from '../support/tensors.ts';

interface Case {
  readonly name: string;
  readonly checkpoint?: string;
  readonly text: string;
  readonly tokens: readonly string[];
  readonly unused?: readonly string[];
  readonly options: { readonly target: never; readonly answer: number };
  readonly expected: Readonly<Record<string, number>>;
}

const methods = ['integrated_gradients', 'gradient_x_input', 'attention_rollout', 'attention_gradient', 'leave_one_out'] as const;
const inputsOf = (tensors: Map<string, Tensor>, name: string) => {
  const of = (what: string) => tensors.get(`${name}/${what}`)!;
  const { dims } = of('input_ids');
  const ids = (what: string) => Int32Array.from(of(what).data);
  return {
    inputIds: ids('input_ids'),
    attentionMask: Uint8Array.from(of('attention_mask').data),
    tokenTypeIds: ids('token_type_ids'),
    dims,
  } as never;
};

describe('text models explained', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const [file, count] of [
    ['gradients', 11],
    ['token_gradients', 7],
    ['deberta_gradients', 4],
    ['later_gradients', 8],
  ] as const)
    it(`gradients in ${file} of every family match torch.autograd`, () => hasGradients(file, count));

  async function hasGradients(file: string, count: number): Promise<void> {
    const { bytes, cases } = await readGoldenFile(`models/${file}`);
    const tensors = attn.parseSafetensors(bytes);
    assert.equal(cases.length, count);
    for (const c of cases) {
      const { name, options, unused = [] } = c as unknown as Case;
      const model = await loadCheckpoint(attn, name);
      const wrt = ['embeddings', 'parameters', 'attentions'] as const;
      const { value, embeddings, attentions, parameters } = model.gradients(inputsOf(tensors, name), { target: options.target, wrt });
      const got = new Map<string, Tensor>([
        ['value', { data: Float32Array.of(value), dims: [1] }],
        ['embeddings', embeddings!],
      ]);
      attentions!.forEach((each, i) => got.set(`attentions.${i}`, each));
      for (const [parameter, each] of parameters!) got.set(`parameters.${parameter}`, each);
      assert.equal(parameters!.size, model.parameterShapes().size);
      for (const what of Object.keys(c.expected))
        if (!unused.includes(what.replace('parameters.', ''))) compareRows(c, tensors, what, got.get(what)!);
      model.dispose();
    }
  }

  it('scores match Captum and the formulas of the papers', async () => {
    const { bytes, cases } = await readGoldenFile('models/attribution');
    const tensors = attn.parseSafetensors(bytes);
    const models = new Map<string, TextModel>();
    for (const c of cases) {
      const { name, checkpoint, text, tokens, options, expected } = c as unknown as Case;
      if (!models.has(checkpoint!)) models.set(checkpoint!, await loadCheckpoint(attn, checkpoint!));
      const model = models.get(checkpoint!)!;
      const target = options.target === options.answer ? {} : { target: model.labels![options.target] };
      for (const method of methods) {
        const { scores, delta, ...others } = await model.attribute(text, { method, ...target });
        assert.deepEqual(others.tokens, tokens, name);
        assert.equal(others.offsets.length, tokens.length);
        assertClose(
          { data: scores, dims: [scores.length] },
          tensors.get(`${name}/expected.${method}`)!,
          tolerance(expected[method]),
          `${name}: ${method}`,
        );
        assert.equal(delta !== undefined, method === 'integrated_gradients');
      }
    }
    for (const model of models.values()) model.dispose();
  });

  it('refuses invalid calls, and stays usable', async () => {
    const model = await loadCheckpoint(attn, 'tiny-bert');
    const headless = await loadCheckpoint(attn, 'tiny-bert-cls');
    const inputs = model.tokenize('It was good');
    const wrt = ['embeddings'] as const;
    const by = (target: unknown, of = wrt as unknown, on = model) => on.gradients(inputs, { target, wrt: of } as never);
    assertThrows(() => by({ label: 'cheerful' }), 'OUT_OF_RANGE', ['target.label']);
    assertThrows(() => by({ label: 3 }), 'OUT_OF_RANGE', ['target.label']);
    assertThrows(() => by({ label: 0.5 }), 'ARGUMENT', ['target.label']);
    assertThrows(() => by({ component: 32 }), 'OUT_OF_RANGE', ['target.component']);
    assertThrows(() => by({ label: 0, row: 1 }), 'OUT_OF_RANGE', ['target.row']);
    assertThrows(() => by({ label: 0, component: 1 }), 'ARGUMENT', ['target']);
    assertThrows(() => by({}), 'ARGUMENT', ['target']);
    assertThrows(() => by({ label: 0, token: 1 }), 'UNSUPPORTED', ['target.token']);
    assertThrows(() => by({ label: 0 }, []), 'ARGUMENT', ['the list of gradients is empty']);
    assertThrows(() => by({ label: 0 }, ['weights']), 'CONFIG', ['wrt[0]']);
    assertThrows(() => by({ label: 0 }, wrt, headless), 'UNSUPPORTED', ['head']);
    await assertRejects(headless.attribute('good'), 'ARGUMENT', ['target']);
    await assertRejects(model.attribute('good', { method: 'guess' as never }), 'CONFIG', ['method']);
    await assertRejects(model.attribute('good', { steps: 0 }), 'CONFIG', ['steps']);
    await assertRejects(model.attribute(5 as never), 'ARGUMENT', ['text']);
    const stop = new AbortController();
    const running = model.attribute('It was a good day, was it not?', { steps: 5000, signal: stop.signal });
    stop.abort();
    await assertRejects(running, 'ABORTED', []);
    assert.isAbove(Math.abs(by({ label: 1 }).value), 0);
    assert.equal((await model.attribute('')).delta, 0);
    const gone = model.attribute('It was good', { steps: 5000 });
    model.dispose();
    await assertRejects(gone, 'DISPOSED', []);
    headless.dispose();
  });

  it('explains int8 models without gradients', async () => {
    const model = await loadCheckpoint(attn, 'tiny-bert', 'int8');
    assertThrows(() => model.gradients(model.tokenize('good'), { target: { label: 0 }, wrt: ['embeddings'] }), 'UNSUPPORTED', ['weights float32']);
    for (const method of methods)
      if (method === 'leave_one_out' || method === 'attention_rollout')
        assert.isTrue((await model.attribute('It was good', { method })).scores.some((x) => x !== 0));
      else await assertRejects(model.attribute('It was good', { method }), 'UNSUPPORTED', ['weights float32']);
    model.dispose();
  });

  it('gives the same in attn/worker', async () => {
    const remote = await loadWorker();
    const there = await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
    const here = await loadCheckpoint(attn, 'tiny-bert');
    const options = { method: 'attention_gradient', target: 1 } as const;
    assert.deepEqual(await there.attribute('It was good', options), await here.attribute('It was good', options));
    const inputs = here.tokenize('It was good');
    const asked = { target: { label: 1 }, wrt: ['embeddings'] } as const;
    assertSameBits((await there.gradients(inputs, asked)).embeddings!, here.gradients(inputs, asked).embeddings!);
    await assertRejects(there.attribute('It was good', { steps: 5000, signal: AbortSignal.abort() }), 'ABORTED', []);
    await assertRejects(there.gradients(inputs, { target: { label: 9 }, wrt: ['embeddings'] }), 'OUT_OF_RANGE', ['target.label']);
    await remote.dispose();
    here.dispose();
  });
});
