import { describe, expect, it } from 'vitest';
import type { Tensor } from 'attn';
import { readLab } from '../src/lab/inputs.ts';
import { notANumber } from '../src/lab/not_a_number.ts';
import { runLab, type LabInputs, type LabResult } from '../src/lab/run.ts';
import { matrixText } from '../src/formats/matrix_text.ts';
import { shortestFloat32 } from '../src/formats/numbers.ts';
import { fileOf, inputsFile, maximumPrinted, snippetsOf } from '../src/lab/snippets.ts';
import { loadDirect } from './models.ts';
import { initialLab, labFromParams, labToParams, type Lab } from '../src/state/lab.ts';

const tensor = (dims: readonly number[], from = 0) => ({
  data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => (i + from) / 4),
  dims,
});
const common = { scale: undefined, mask: undefined, keyPadding: undefined, causal: false };
const attention: LabInputs = { mode: 'attention', Q: tensor([2, 2]), K: tensor([3, 2], 1), V: tensor([3, 1]), ...common };
const multiHead: LabInputs = {
  mode: 'multi-head',
  X: tensor([2, 2]),
  Wq: tensor([2, 4]),
  Wk: tensor([2, 4]),
  Wv: tensor([2, 2]),
  Wo: tensor([2, 3]),
  heads: 2,
  ...common,
};
const codeOf = (inputs: LabInputs) => Object.fromEntries(snippetsOf(inputs).map(({ title, code }) => [title, code])) as Record<string, string>;

describe('the lab in the address', () => {
  const roundTrip = (lab: Lab) => labFromParams(new URLSearchParams(labToParams(lab).map(([name, text]) => [name, text])));

  it('omits the initial numbers and preserves every change', () => {
    expect(labToParams(initialLab)).toEqual([]);
    const changed: Lab = {
      ...initialLab,
      mode: 'multi-head',
      fields: { ...initialLab.fields, X: { text: '[[1, 2.5],\n [-3, 4e-2]]' }, 'Key padding': { text: '[1, 0]' } },
      heads: '1',
      scale: '0.7',
      maskKind: 'additive',
      paddingKind: 'block',
      causal: true,
      asTorch: true,
    };
    expect(roundTrip(changed)).toEqual(changed);
    const bare = { ...changed, fields: { ...changed.fields, X: { text: ' [ [1 , 2.5],[-3,4e-2]]' } } };
    expect(roundTrip(bare), 'whitespace between numbers and brackets is ignored').toEqual(changed);
  });

  it('preserves invalid text and ignores unknown options', () => {
    const wrong: Lab = { ...initialLab, fields: { ...initialLab.fields, Q: { text: '[[1 2]]' } }, scale: 'x' };
    expect(roundTrip(wrong)).toEqual(wrong);
    expect(labFromParams(new URLSearchParams('lab.mode=other&lab.mask-kind=no&lab.causal=yes'))).toEqual(initialLab);
  });

  it('omits long arrays and arrays from files, so that the rest of the view fits in the link', () => {
    const text = matrixText(tensor([30, 40]), shortestFloat32);
    expect(labToParams({ ...initialLab, fields: { ...initialLab.fields, Q: { text } } })).toEqual([]);
    const file = { label: 'q.npy, shape (2, 2)', tensor: tensor([2, 2]) };
    expect(labToParams({ ...initialLab, scale: '2', fields: { ...initialLab.fields, Q: { text: file.label, file } } })).toEqual([]);
  });
});

describe('the fields of the lab', () => {
  const withMask = (text: string, maskKind: Lab['maskKind']): Lab => ({
    ...initialLab,
    maskKind,
    fields: { ...initialLab.fields, Mask: { text }, 'Key padding': { text } },
  });

  it('are converted to arrays and options', () => {
    const inputs = readLab({ ...withMask('[1, 0, true]', 'attend'), paddingKind: 'additive', scale: ' 0.5 ', causal: true });
    expect(inputs).toMatchObject({ mode: 'attention', scale: 0.5, causal: true, K: { dims: [3, 3] } });
    expect(inputs.mask).toEqual({ kind: 'attend', data: Uint8Array.of(1, 0, 1), dims: [3] });
    expect(inputs.keyPadding).toEqual({ kind: 'additive', data: Float32Array.of(1, 0, 1), dims: [3] });
    expect(readLab({ ...initialLab, mode: 'multi-head', heads: '' })).toMatchObject({
      mode: 'multi-head',
      heads: NaN,
      Wo: undefined,
      scale: undefined,
    });
  });

  it('report which one is unreadable and how to correct it', () => {
    const complaint = (lab: Lab) => {
      try {
        readLab(lab);
      } catch (error) {
        return `${(error as { field?: string }).field}: ${(error as Error).message}`;
      }
      return 'none';
    };
    expect(complaint({ ...initialLab, fields: { ...initialLab.fields, K: { text: '[[1, 2], [3]]' } } })).toMatch(/^K: Row 2 has 1 number/);
    expect(complaint({ ...initialLab, scale: 'half' })).toMatch(/^Scale: “half” is not a number/);
    expect(complaint({ ...initialLab, scale: '1e39' })).toMatch(/^Scale: 1e39 is too large/);
    // Read as flags, an additive mask would hide the visible keys.
    expect(complaint(withMask('[0, 0, -Infinity]', 'attend'))).toMatch(/^Mask: .*-Infinity.*only 1 and 0.*added to the scores/);
    expect(complaint(withMask('[0, 0.5, 1]', 'block'))).toMatch(/^Mask: .*0\.5/);
    expect(complaint({ ...withMask('[0, 0, NaN]', 'additive') })).toMatch(/^Mask: NaN cannot be added/);
    expect(complaint({ ...withMask('[0, 0, -Infinity]', 'additive'), paddingKind: 'additive' })).toBe('none');
  });
});

describe('generated programs', () => {
  it('contain every number at full precision', () => {
    const data = Float32Array.of(0.1, 1 / 3, 1e-38, 3e9);
    const code = codeOf({ ...attention, Q: { data, dims: [2, 2] } });
    expect(code['JavaScript']).toContain('const q = { data: Float32Array.of(0.1, 0.33333334, 1e-38, 3000000000), dims: [2, 2] };');
    expect(code['C++']).toContain('const xt::xtensor<float, 2> q{{0.1F, 0.33333334F}, {1e-38F, 3000000000.0F}};');
    expect(code['PyTorch']).toContain('q = torch.tensor([[0.1, 0.33333334], [1e-38, 3000000000]], dtype=torch.float32)');
  });

  it('contain all options, in struct order for C++', () => {
    const mask = { kind: 'additive', data: Float32Array.of(0, -Infinity, 0.5), dims: [3] } as const;
    const keyPadding = { kind: 'block', data: Uint8Array.of(0, 0, 1), dims: [3] } as const;
    const code = codeOf({ ...attention, scale: 0.7, mask, keyPadding, causal: true });
    expect(code['JavaScript']).toContain(
      "needWeights: true, trace: true, scale: 0.7, isCausal: true, mask: { kind: 'additive', ...mask }, keyPaddingMask: { kind: 'block', ...padding }",
    );
    expect(code['C++']).toContain(
      '{.mask = attn::Mask::additive(mask), .key_padding_mask = attn::Mask::block(padding), .is_causal = true, .scale = 0.7F, .need_weights = true',
    );
    expect(code['C++']).toContain('mask{0, -INFINITY, 0.5F};');
    expect(code['PyTorch']).toContain("mask = torch.tensor([0, float('-inf'), 0.5], dtype=torch.float32)");
    expect(code['PyTorch']).toContain('scores = scores + mask\n');
    expect(code['PyTorch']).toContain("scores = scores.masked_fill(padding != 0, float('-inf'))");
  });

  it('preserve negative zero and skip masked values as attn does', () => {
    const odd: LabInputs = { ...attention, V: { data: Float32Array.of(-0, NaN, -Infinity), dims: [3, 1] } };
    const code = codeOf({ ...odd, mask: { kind: 'attend', data: Uint8Array.of(1, 0, 0), dims: [3] } });
    expect(code['JavaScript']).toContain('Float32Array.of(-0, NaN, -Infinity)');
    expect(code['C++']).toContain('v{{-0.0F}, {NAN}, {-INFINITY}};');
    expect(code['PyTorch']).toContain("[[-0.0], [float('nan')], [float('-inf')]]");
    expect(code['PyTorch']).toContain('.masked_fill(scores.isneginf().unsqueeze(-1), 0).sum(-2)');
    expect(codeOf(odd)['PyTorch']).toContain('output = weights @ v');
  });

  it('reshape masks to the shape of the scores if PyTorch would broadcast them differently', () => {
    const flags = (dims: readonly number[]) => ({ kind: 'attend' as const, data: new Uint8Array(dims.reduce((a, b) => a * b, 1)).fill(1), dims });
    const heads: LabInputs = { mode: 'attention', Q: tensor([2, 3, 4, 2]), K: tensor([2, 3, 5, 2]), V: tensor([2, 3, 5, 1]), ...common };
    const python = (more: Partial<typeof common> | object) => codeOf({ ...heads, ...more })['PyTorch'];
    expect(python({ mask: flags([4, 5]) })).toContain('masked_fill(mask == 0');
    expect(python({ mask: flags([2, 4, 5]) })).toContain('masked_fill(mask.reshape(2, 1, 4, 5) == 0');
    expect(python({ keyPadding: flags([2, 5]) })).toContain('masked_fill(padding.reshape(2, 1, 1, 5) == 0');
    expect(codeOf({ ...multiHead, mask: flags([1, 2, 2, 2]) })['PyTorch']).toContain('mask.reshape(2, 2, 2)');
  });

  it('store weights in PyTorch layout and apply W_O separately if its width differs from X', () => {
    const code = codeOf(multiHead);
    expect(code['JavaScript']).toContain('embedDim: 2, numHeads: 2, headDim: 2, valueHeadDim: 1, bias: false, outProj: false');
    expect(code['JavaScript']).toContain('const wq = { data: Float32Array.of(0, 1, 0.25, 1.25, 0.5, 1.5, 0.75, 1.75), dims: [4, 2] };');
    expect(code['JavaScript']).toContain('const output = attn.linear(merged, wo);');
    expect(code['C++']).toContain('.head_dim = 2, .value_head_dim = 1, .bias = false, .out_proj = false');
    expect(code['C++']).toContain('attn::linear(result.output, wo)');
    const square = codeOf({ ...multiHead, Wq: tensor([2, 2]), Wk: tensor([2, 2]), Wo: tensor([2, 2]) });
    expect(square['JavaScript']).toContain('{ embedDim: 2, numHeads: 2, bias: false, outProj: true }');
    expect(square['JavaScript']).toContain("'out_proj.weight': wo }");
  });

  it('load large arrays from a file that the user can save', () => {
    expect(fileOf(attention)).toBeUndefined();
    const rows = maximumPrinted / 64;
    const large: LabInputs = { ...multiHead, X: tensor([rows, 64]), Wq: tensor([64, 4]), Wk: tensor([64, 4]), Wv: tensor([64, 2]), Wo: undefined };
    expect(Object.keys(fileOf(large)!)).toEqual(['X', 'q_proj.weight', 'k_proj.weight', 'v_proj.weight']);
    expect(fileOf(large)!['q_proj.weight']!.dims).toEqual([4, 64]);
    for (const { code } of snippetsOf(large)) {
      expect(code).toContain(inputsFile);
      expect(code.length).toBeLessThan(1500);
    }
  });
});

describe('weights in PyTorch layout', () => {
  const of = (asTorch: boolean, Wq: string): Lab => ({
    ...initialLab,
    mode: 'multi-head',
    heads: '1',
    asTorch,
    fields: { ...initialLab.fields, X: { text: '[[1, 2, 3]]' }, Wq: { text: Wq }, Wk: { text: Wq }, Wv: { text: Wq } },
  });
  it('define the same layer as their transposes in the layout of the paper', () => {
    const paper = readLab(of(false, '[[1, 2], [3, 4], [5, 6]]')) as Extract<LabInputs, { mode: 'multi-head' }>;
    const torch = readLab(of(true, '[[1, 3, 5], [2, 4, 6]]')) as Extract<LabInputs, { mode: 'multi-head' }>;
    expect(paper.Wq.dims).toEqual([3, 2]);
    expect([torch.Wq, torch.Wk, torch.Wv]).toEqual([paper.Wq, paper.Wk, paper.Wv]);
    expect(codeOf(torch)).toEqual(codeOf(paper));
  });
  it('appear in error messages in the layout of the field', async () => {
    const wrong = readLab(of(true, '[[1, 3], [2, 4]]'));
    await expect(runLab(undefined as never, wrong)).rejects.toThrow(
      'Wq has 2 columns, a row of X has 3 numbers. Give out × in: one column for each number of X.',
    );
  });
});

it('the lab computes nothing if a file was rejected, even if its field had other content before', () => {
  const refused: Lab = { ...initialLab, fields: { ...initialLab.fields, V: { text: '[[1], [2], [3]]', refused: 'v.npy: cut short' } } };
  expect(() => readLab(refused)).toThrow('v.npy: cut short');
  const optional: Lab = { ...initialLab, fields: { ...initialLab.fields, Mask: { text: '', refused: 'm.npy: cut short' } } };
  expect(() => readLab(optional)).toThrow('m.npy: cut short');
});

describe('NaN in the results of the lab', () => {
  const result = (weights: readonly number[], output: readonly number[]): LabResult => {
    const named = (name: string, values: readonly number[]) =>
      ({ name, tensor: { data: Float32Array.from(values), dims: [1, values.length] }, leading: [], rows: 'query', columns: 'key' }) as const;
    return { weights: named('weights', weights), output: named('output', output), trace: [], note: '' };
  };
  const plain = attention as LabInputs & { readonly mode: 'attention' };
  const withValue = (of: Tensor, value: number): Tensor => ({ ...of, data: of.data.map((each, i) => (i === 1 ? value : each)) });

  it('is not mentioned if there is none', () => {
    expect(notANumber(attention, result([0.5, 0.5], [1, -Infinity]))).toBeUndefined();
  });

  it('is counted, and explained by the field that contains it', () => {
    expect(notANumber({ ...plain, V: withValue(plain.V, NaN) }, result([0.5, 0.5], [NaN, NaN, 1]))).toBe(
      'NaN (not a number) is in the place of 2 of the 3 numbers of the output. V contains NaN, and every sum with it is NaN.',
    );
    expect(notANumber({ ...multiHead, Wo: withValue(tensor([2, 3]), Infinity) } as LabInputs, result([NaN], [NaN]))).toBe(
      'NaN (not a number) is in the place of 1 of the 1 number of the weights and 1 of the 1 number of the output. Wo contains Infinity; Infinity − Infinity and 0 · Infinity are not numbers.',
    );
  });

  it('is explained by products that are too large', async () => {
    const huge = (sign: number): Tensor => ({ data: Float32Array.of(3e38, sign * 3e38), dims: [1, 2] });
    const inputs: LabInputs = { mode: 'attention', Q: huge(1), K: huge(-1), V: tensor([1, 1]), ...common };
    const { attn, direct } = await loadDirect();
    const text = notANumber(inputs, await runLab(attn, inputs));
    direct.dispose();
    expect(text).toMatch(/^NaN \(not a number\) is in the place of .*exceed the largest 32-bit number/);
  });
});
