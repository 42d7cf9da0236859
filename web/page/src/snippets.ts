/** Code that gives the lab's numbers: JavaScript with this package, Python with PyTorch. */
import type { Mask, Tensor } from 'attn';
import { isSquare, type AttentionInputs, type CommonInputs, type MultiHeadInputs } from './lab_run.ts';
import { matrixText } from './matrix_text.ts';
import { shortestFloat32 } from './numbers.ts';

/** Arrays longer than this are named, not printed. */
const maximumPrinted = 512;

const javascriptNumber = (value: number) => shortestFloat32(value);
const pythonNumber = (value: number) =>
  Number.isFinite(value) ? shortestFloat32(value) : `float('${value > 0 ? 'inf' : value < 0 ? '-inf' : 'nan'}')`;

function flat(tensor: { readonly data: ArrayLike<number> }): string {
  return Array.from(tensor.data, javascriptNumber).join(', ');
}

function javascriptTensor(tensor: Tensor): string {
  const dims = `[${tensor.dims.join(', ')}]`;
  return tensor.data.length > maximumPrinted
    ? `{ data: new Float32Array(${tensor.data.length}) /* your numbers */, dims: ${dims} }`
    : `{ data: Float32Array.of(${flat(tensor)}), dims: ${dims} }`;
}

function javascriptMask(mask: Mask): string {
  const type = mask.kind === 'additive' ? 'Float32Array' : 'Uint8Array';
  const data = mask.data.length > maximumPrinted ? `new ${type}(${mask.data.length}) /* your numbers */` : `${type}.of(${flat(mask)})`;
  return `{ kind: '${mask.kind}', data: ${data}, dims: [${mask.dims.join(', ')}] }`;
}

function javascriptOptions({ scale, mask, causal }: CommonInputs): string {
  const parts = ['needWeights: true', 'trace: true'];
  if (scale !== undefined) parts.push(`scale: ${scale}`);
  if (causal) parts.push('isCausal: true');
  if (mask) parts.push(`mask: ${javascriptMask(mask)}`);
  return `{ ${parts.join(', ')} }`;
}

export function javascriptAttention(inputs: AttentionInputs): string {
  return `import { load } from 'attn';

const attn = await load();
const q = ${javascriptTensor(inputs.Q)};
const k = ${javascriptTensor(inputs.K)};
const v = ${javascriptTensor(inputs.V)};
const { output, weights, trace } = attn.scaledDotProductAttention(q, k, v, ${javascriptOptions(inputs)});
console.log(output, weights, trace);
attn.dispose();
`;
}

const javascriptTransposed = `// in × out, as on paper -> out × in, as torch keeps weights
const transposed = ({ data, dims: [rows, columns] }) => ({
  data: Float32Array.from(data, (_, i) => data[(i % rows) * columns + Math.floor(i / rows)]),
  dims: [columns, rows],
});`;

/** undefined for shapes that MultiHeadAttention does not hold. */
export function javascriptMultiHead(inputs: MultiHeadInputs): string | undefined {
  if (!isSquare(inputs)) return undefined;
  const { X, Wq, Wk, Wv, Wo, heads } = inputs;
  return `import { load } from 'attn';

const attn = await load();
const x = ${javascriptTensor(X)};
${javascriptTransposed}
const layer = new attn.MultiHeadAttention({ embedDim: ${X.dims.at(-1)}, numHeads: ${heads}, bias: false, outProj: ${!!Wo} });
layer.loadStateDict({
  'q_proj.weight': transposed(${javascriptTensor(Wq)}),
  'k_proj.weight': transposed(${javascriptTensor(Wk)}),
  'v_proj.weight': transposed(${javascriptTensor(Wv)}),${Wo ? `\n  'out_proj.weight': transposed(${javascriptTensor(Wo)}),` : ''}
});
const { output, weights, trace } = layer.forward(x, undefined, undefined, ${javascriptOptions(inputs)});
console.log(output, weights, trace);
attn.dispose();
`;
}

function pythonTensor(tensor: { readonly data: Float32Array | Uint8Array; readonly dims: readonly number[] }): string {
  if (tensor.data.length > maximumPrinted) return `torch.zeros(${tensor.dims.join(', ')})  # your numbers`;
  const floats: Tensor = { data: Float32Array.from(tensor.data), dims: tensor.dims };
  return `torch.tensor(${matrixText(floats, pythonNumber).replaceAll(/\n\s*/g, ' ')}, dtype=torch.float32)`;
}

/** Lines that turn scores into output, the masks included. */
function pythonCore({ scale, mask, causal }: CommonInputs): string {
  const lines = [`scores = q @ k.transpose(-2, -1) * ${scale === undefined ? 'q.shape[-1] ** -0.5' : scale}`];
  if (mask) {
    lines.push(`mask = ${pythonTensor(mask)}`);
    // (B, L, S) lacks the head dimension.
    if (mask.dims.length === 3) lines.push('mask = mask.unsqueeze(1) if scores.dim() == 4 else mask');
    if (mask.kind === 'additive') lines.push('scores = scores + mask');
    else lines.push(`scores = scores.masked_fill(mask ${mask.kind === 'attend' ? '==' : '!='} 0, float('-inf'))`);
  }
  if (causal) lines.push("scores = scores.masked_fill(~torch.ones(scores.shape[-2:]).tril().bool(), float('-inf'))");
  // torch's softmax gives NaN where everything is hidden; attn, as torch's own attention, gives zeros.
  lines.push(mask ? 'weights = scores.softmax(-1).nan_to_num(0)' : 'weights = scores.softmax(-1)', 'output = weights @ v');
  return lines.join('\n');
}

export function pythonAttention(inputs: AttentionInputs): string {
  return `import torch

q = ${pythonTensor(inputs.Q)}
k = ${pythonTensor(inputs.K)}
v = ${pythonTensor(inputs.V)}
${pythonCore(inputs)}
print(output, weights)
`;
}

export function pythonMultiHead(inputs: MultiHeadInputs): string {
  const { X, Wq, Wk, Wv, Wo, heads } = inputs;
  return `import torch

x = ${pythonTensor(X)}
wq = ${pythonTensor(Wq)}
wk = ${pythonTensor(Wk)}
wv = ${pythonTensor(Wv)}
q, k, v = ((x @ w).unflatten(-1, (${heads}, -1)).transpose(-3, -2) for w in (wq, wk, wv))
${pythonCore(inputs)}
output = output.transpose(-3, -2).flatten(-2)${Wo ? `\nwo = ${pythonTensor(Wo)}\noutput = output @ wo` : ''}
print(output, weights)
`;
}
