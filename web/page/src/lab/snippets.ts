/** Programs that reproduce the lab's numbers in JavaScript, C++ and PyTorch. Each runs as pasted. */
import type { Mask, Tensor } from 'attn';
import { transposed } from '../arithmetic/arrays.ts';
import { alignedDims, multiHeadOptions, stateOf, type LabInputs } from './run.ts';
import { matrixText } from '../formats/matrix_text.ts';
import { shortestFloat32 } from '../formats/numbers.ts';

export interface Snippet {
  readonly title: 'JavaScript' | 'C++' | 'PyTorch';
  readonly code: string;
}

/** Larger inputs are read from a file. */
export const maximumPrinted = 4096;
export const inputsFile = 'attn-lab.safetensors';

interface Named {
  readonly variable: string;
  readonly name: string;
  readonly tensor: Tensor;
}

const asFloats = ({ data, dims }: Mask): Tensor => ({ data: Float32Array.from(data), dims });

/** Weights are (out, in), as in PyTorch. */
function arraysOf(inputs: LabInputs): readonly Named[] {
  const { mask, keyPadding } = inputs;
  const own: readonly Named[] =
    inputs.mode === 'attention'
      ? [
          { variable: 'q', name: 'Q', tensor: inputs.Q },
          { variable: 'k', name: 'K', tensor: inputs.K },
          { variable: 'v', name: 'V', tensor: inputs.V },
        ]
      : [
          { variable: 'x', name: 'X', tensor: inputs.X },
          ...Object.entries(stateOf(inputs)).map(([name, tensor]) => ({ variable: `w${name[0]}`, name, tensor })),
          ...(hasOwnOutput(inputs) ? [{ variable: 'wo', name: 'output.weight', tensor: transposed(inputs.Wo!) }] : []),
        ];
  return [
    ...own,
    ...(mask ? [{ variable: 'mask', name: 'Mask', tensor: asFloats(mask) }] : []),
    ...(keyPadding ? [{ variable: 'padding', name: 'KeyPadding', tensor: asFloats(keyPadding) }] : []),
  ];
}

const hasOwnOutput = (inputs: LabInputs): boolean => inputs.mode === 'multi-head' && inputs.Wo !== undefined && !multiHeadOptions(inputs).outProj;

/** The file that the programs read; undefined if they contain the numbers. */
export function fileOf(inputs: LabInputs): Readonly<Record<string, Tensor>> | undefined {
  const arrays = arraysOf(inputs);
  if (arrays.reduce((sum, { tensor }) => sum + tensor.data.length, 0) <= maximumPrinted) return undefined;
  return Object.fromEntries(arrays.map(({ name, tensor }) => [name, tensor]));
}

/** Shortest form that restores the float32, including -0. */
const numberText = (value: number) => (Object.is(value, -0) ? '-0' : shortestFloat32(value));
const scaleText = (scale: number) => shortestFloat32(Math.fround(scale));
const weightNote = 'weights are (out, in), as in PyTorch';

function javascript(inputs: LabInputs, fromFile: boolean): string {
  const numbers = (data: ArrayLike<number>) => Array.from(data, numberText).join(', ');
  const tensor = ({ variable, name, tensor: { data, dims } }: Named) =>
    fromFile
      ? `const ${variable} = file.get('${name}');`
      : `const ${variable} = { data: Float32Array.of(${numbers(data)}), dims: [${dims.join(', ')}] };`;
  const { scale, mask, keyPadding, causal } = inputs;
  const options = [
    'needWeights: true',
    'trace: true',
    ...(scale === undefined ? [] : [`scale: ${scaleText(scale)}`]),
    ...(causal ? ['isCausal: true'] : []),
    ...(mask ? [`mask: { kind: '${mask.kind}', ...mask }`] : []),
    ...(keyPadding ? [`keyPaddingMask: { kind: '${keyPadding.kind}', ...padding }`] : []),
  ].join(', ');
  const lines = [
    "import { load } from 'attn';",
    ...(fromFile ? ["import { readFile } from 'node:fs/promises';"] : []),
    '',
    'const attn = await load();',
    ...(fromFile ? [`const file = attn.parseSafetensors(await readFile('${inputsFile}'));`] : []),
    ...(inputs.mode === 'multi-head' ? [`// ${weightNote}`] : []),
    ...arraysOf(inputs).map(tensor),
  ];
  if (inputs.mode === 'attention') {
    lines.push(`const { output, weights, trace } = attn.scaledDotProductAttention(q, k, v, { ${options} });`);
  } else {
    const made = Object.entries(multiHeadOptions(inputs)).map(([name, value]) => `${name}: ${value}`);
    const state = arraysOf(inputs).filter(({ name }) => name.endsWith('_proj.weight'));
    lines.push(
      `const layer = new attn.MultiHeadAttention({ ${made.join(', ')} });`,
      `layer.loadStateDict({ ${state.map(({ name, variable }) => `'${name}': ${variable}`).join(', ')} });`,
    );
    if (hasOwnOutput(inputs))
      lines.push(
        `const { output: merged, weights, trace } = layer.forward(x, undefined, undefined, { ${options} });`,
        'const output = attn.linear(merged, wo);',
      );
    else lines.push(`const { output, weights, trace } = layer.forward(x, undefined, undefined, { ${options} });`);
  }
  const steps = hasOwnOutput(inputs) ? '{ ...trace, output }' : 'trace';
  lines.push(`console.log('output', output, 'weights', weights, 'trace', ${steps});`, 'attn.dispose();', '');
  return lines.join('\n');
}

function cppNumber(value: number): string {
  if (Number.isNaN(value)) return 'NAN';
  if (!Number.isFinite(value)) return value > 0 ? 'INFINITY' : '-INFINITY';
  const text = numberText(value);
  // Exact integers need no suffix, except -0, which would become 0.
  return /[.e]/.test(text) ? `${text}F` : Math.abs(value) < 2 ** 24 && text !== '-0' ? text : `${text}.0F`;
}

function cpp(inputs: LabInputs, fromFile: boolean): string {
  const tensor = ({ variable, name, tensor: each }: Named) => {
    const written = fromFile
      ? ` = file.at("${name}")`
      : matrixText(each, cppNumber).replaceAll('[', '{').replaceAll(']', '}').replaceAll(/\n\s*/g, ' ');
    return `  const xt::xtensor<float, ${each.dims.length}> ${variable}${written};`;
  };
  const { scale, mask, keyPadding, causal } = inputs;
  const options = [
    ...(mask ? [`.mask = attn::Mask::${mask.kind}(mask)`] : []),
    ...(keyPadding ? [`.key_padding_mask = attn::Mask::${keyPadding.kind}(padding)`] : []),
    ...(causal ? ['.is_causal = true'] : []),
    ...(scale === undefined ? [] : [`.scale = ${cppNumber(Math.fround(scale))}`]),
    '.need_weights = true',
    '.trace = attn::Trace::all()',
  ].join(', ');
  const lines = [
    '#include <attn/attn.hpp>',
    '#include <cmath>',
    '#include <iostream>',
    '#include <string_view>',
    '',
    'int main() {',
    ...(fromFile ? [`  const attn::StateDict file = attn::read_safetensors("${inputsFile}");`] : []),
    ...(inputs.mode === 'multi-head' ? [`  // ${weightNote}`] : []),
    ...arraysOf(inputs).map(tensor),
  ];
  if (inputs.mode === 'attention') {
    lines.push(`  const auto result = attn::scaled_dot_product_attention(q, k, v, {${options}});`, '  const auto& output = result.output;');
  } else {
    const { embedDim, numHeads, headDim, valueHeadDim, outProj } = multiHeadOptions(inputs);
    const made = [
      `.embed_dim = ${embedDim}`,
      `.num_heads = ${numHeads}`,
      ...(headDim === undefined ? [] : [`.head_dim = ${headDim}`]),
      ...(valueHeadDim === undefined ? [] : [`.value_head_dim = ${valueHeadDim}`]),
      '.bias = false',
      `.out_proj = ${outProj}`,
    ];
    const state = arraysOf(inputs).filter(({ name }) => name.endsWith('_proj.weight'));
    lines.push(
      `  attn::MultiHeadAttention layer({${made.join(', ')}});`,
      `  layer.load_state_dict({${state.map(({ name, variable }) => `{"${name}", ${variable}}`).join(', ')}});`,
      `  ${hasOwnOutput(inputs) ? 'auto' : 'const auto'} result = layer.forward(x, {${options}});`,
      ...(hasOwnOutput(inputs)
        ? ['  const auto output = attn::linear(result.output, wo);', '  result.trace->at(attn::TraceName::output) = output;']
        : ['  const auto& output = result.output;']),
    );
  }
  lines.push(
    '',
    '  const auto print = [](std::string_view name, const auto& tensor) {',
    "    std::cout << name << ' ' << attn::to_string(attn::to_shape(tensor.shape())) << ':';",
    "    for (const float value : tensor) std::cout << ' ' << value;",
    "    std::cout << '\\n';",
    '  };',
    '  std::cout.precision(9);',
    '  print("output", output);',
    '  print("weights", *result.weights);',
    '  for (const auto& [name, tensor] : *result.trace) print(attn::to_string(name), tensor);',
    '}',
    '',
  );
  return lines.join('\n');
}

const pythonNumber = (value: number) =>
  Object.is(value, -0) ? '-0.0' : Number.isFinite(value) ? shortestFloat32(value) : `float('${value > 0 ? 'inf' : value < 0 ? '-inf' : 'nan'}')`;

function python(inputs: LabInputs, fromFile: boolean): string {
  const tensor = ({ variable, name, tensor: each }: Named) =>
    `${variable} = ${fromFile ? `file['${name}']` : `torch.tensor(${matrixText(each, pythonNumber).replaceAll(/\n\s*/g, ' ')}, dtype=torch.float32)`}`;
  const { scale, mask, keyPadding, causal } = inputs;
  const multiHead = inputs.mode === 'multi-head';
  /** Non-finite numbers of hidden keys must be skipped by hand. */
  const skips =
    (mask !== undefined || keyPadding !== undefined || causal) &&
    arraysOf({ ...inputs, mask: undefined, keyPadding: undefined }).some(({ tensor: { data } }) => !data.every(Number.isFinite));
  /** Dimensions of the scores among B, H, L, S. */
  const kept = multiHead
    ? inputs.X.dims.length === 2
      ? [1, 2, 3]
      : [0, 1, 2, 3]
    : { 2: [2, 3], 3: [0, 2, 3], 4: [0, 1, 2, 3] }[inputs.Q.dims.length]!;
  const shaped = (of: Mask, full: readonly number[]) => {
    const dims = kept.map((i) => full[i]!);
    const broadcast = [...Array<number>(Math.max(0, dims.length - of.dims.length)).fill(1), ...of.dims];
    return broadcast.join() === dims.join() ? '' : `.reshape(${dims.join(', ')})`;
  };
  const apply = (variable: string, of: Mask, full: readonly number[]) => {
    const name = `${variable}${shaped(of, full)}`;
    return of.kind === 'additive'
      ? `scores = ${skips ? `(scores + ${name}).masked_fill(${name}.isneginf(), float('-inf'))` : `scores + ${name}`}`
      : `scores = scores.masked_fill(${name} ${of.kind === 'attend' ? '==' : '!='} 0, float('-inf'))`;
  };
  const lines = [
    'import torch',
    ...(fromFile ? ['from safetensors.torch import load_file'] : []),
    '',
    ...(fromFile ? [`file = load_file('${inputsFile}')`] : []),
    ...(multiHead ? [`# ${weightNote}`] : []),
    ...arraysOf(inputs).map(tensor),
    ...(multiHead ? [`q, k, v = ((x @ w.T).unflatten(-1, (${inputs.heads}, -1)).transpose(-3, -2) for w in (wq, wk, wv))`] : []),
    `scores = q @ k.transpose(-2, -1) * ${scale === undefined ? 'q.shape[-1] ** -0.5' : scaleText(scale)}`,
    ...(mask ? [apply('mask', mask, alignedDims(mask))] : []),
    ...(keyPadding
      ? [
          apply(
            'padding',
            keyPadding,
            keyPadding.dims.length === 1 ? [1, 1, 1, keyPadding.dims[0]!] : [keyPadding.dims[0]!, 1, 1, keyPadding.dims[1]!],
          ),
        ]
      : []),
    ...(causal ? ["scores = scores.masked_fill(~torch.ones(scores.shape[-2:]).tril().bool(), float('-inf'))"] : []),
    'weights = scores.softmax(-1)',
    // torch.softmax returns NaN for fully masked rows; attn returns zeros, as torch's attention does.
    ...(mask || keyPadding || skips ? ['weights = weights.masked_fill(scores.isneginf(), 0)'] : []),
    ...(skips
      ? [
          '# attn skips hidden keys; torch multiplies them by zero, which would spread their NaN',
          'output = (weights.unsqueeze(-1) * v.unsqueeze(-3)).masked_fill(scores.isneginf().unsqueeze(-1), 0).sum(-2)',
        ]
      : ['output = weights @ v']),
    ...(multiHead ? ['output = output.transpose(-3, -2).flatten(-2)'] : []),
    ...(multiHead && inputs.Wo ? ['output = output @ wo.T'] : []),
    'torch.set_printoptions(precision=8, threshold=10000)',
    "print('output', output, 'weights', weights, sep='\\n')",
    '',
  ];
  return lines.join('\n');
}

export function snippetsOf(inputs: LabInputs): readonly Snippet[] {
  const fromFile = fileOf(inputs) !== undefined;
  return [
    { title: 'JavaScript', code: javascript(inputs, fromFile) },
    { title: 'C++', code: cpp(inputs, fromFile) },
    { title: 'PyTorch', code: python(inputs, fromFile) },
  ];
}
