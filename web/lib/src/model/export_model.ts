/** Writes the files that src/attn/models/model_writer.cpp writes. */
import { AttnError } from '../args/error.js';
import type { ExportKind } from '../args/export_kinds.js';
import type { FileName } from '../args/model_options.js';
import { membersOf } from './json_members.js';
import type { ModelFacts } from './model_state.js';
import { type Item, safetensorsFile } from './safetensors.js';
import { decodeUtf8, encodeUtf8 } from '../platform/utf8.js';

const op = 'export';

export interface Exported {
  readonly config: Readonly<Record<string, unknown>>;
  readonly about: ModelFacts;
  readonly files: ReadonlyMap<FileName, Uint8Array<ArrayBuffer>>;
  readonly base: string;
  /** By index. */
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  readonly quantized: ReadonlyMap<string, readonly number[]>;
  values(index: number): Float32Array;
  rows(index: number): { readonly bytes: Uint8Array; readonly scales: Float32Array };
}

/** binary32 to binary16, half to even; overlarge values become infinite. */
function halfOf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const exponent = (bits >>> 23) & 0xff;
  const fraction = bits & 0x7fffff;
  if (exponent === 0xff) return sign | (fraction === 0 ? 0x7c00 : 0x7e00);
  if (exponent >= 143) return sign | 0x7c00; // 2¹⁶ and above
  // Subnormal numbers lose more than 13 bits and include the leading 1.
  const normal = exponent > 112;
  const shift = normal ? 13 : exponent > 101 ? 126 - exponent : 25;
  const all = normal ? fraction : fraction | 0x800000;
  const rest = all & (2 ** shift - 1);
  const middle = 2 ** (shift - 1);
  const half = (normal ? (exponent - 112) << 10 : 0) + (all >>> shift);
  return sign | (half + (rest > middle || (rest === middle && (half & 1) === 1) ? 1 : 0));
}

function fillHalves(name: string, values: Float32Array, to: Uint8Array<ArrayBuffer>): void {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(to.buffer, to.byteOffset, values.length);
  for (let i = 0; i < values.length; ++i) {
    halves[i] = halfOf(bits[i]!);
    if ((halves[i]! & 0x7fff) === 0x7c00 && Number.isFinite(values[i])) {
      const expected = 'numbers up to 65504';
      throw new AttnError('OUT_OF_RANGE', `${op}: ${name} has ${values[i]}, expected ${expected}`, {
        op,
        argument: name,
        expected,
        got: String(values[i]),
      });
    }
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Float32Array) => new Uint8Array(buffer, byteOffset, byteLength);

function weightsFile({ about: { tiedDecoder }, shapes, quantized, values, rows }: Exported, kind: ExportKind): Uint8Array<ArrayBuffer> {
  const items = [...shapes].flatMap(([name, dims], index): Item[] => {
    if (kind === 'float16') return [{ name, dtype: 'F16', dims, fill: (to) => fillHalves(name, values(index), to) }];
    const int8Dims = quantized.get(name);
    if (kind === 'float32' || !int8Dims) return [{ name, dtype: 'F32', dims, fill: (to) => to.set(bytesOf(values(index))) }];
    const scale = (of: string): Item => ({
      name: `${of}_scale`,
      dtype: 'F32',
      dims: [int8Dims[0]!, 1],
      fill: (to) => to.set(bytesOf(rows(index).scales)),
    });
    const isWords = /((word|tok)_embeddings|embed_tokens|embed_in|wte)\.weight$/.test(name);
    return [
      { name, dtype: 'I8', dims: int8Dims, fill: (to) => to.set(rows(index).bytes.subarray(0, to.length)) },
      scale(name),
      // transformers ties the decoder's bytes to the embedding matrix, but expects separate scales.
      ...(tiedDecoder !== '' && isWords ? [scale(`${tiedDecoder}.weight`)] : []),
    ];
  });
  return safetensorsFile(op, items, [['format', '"pt"']]);
}

/** compressed-tensors: weights int8 by row, activations int8 by token. Omitted poolers and heads must not be listed. */
function quantizationOf({ quantized, about }: Exported): object {
  const eight = { num_bits: 8, type: 'int' };
  const weights = { ...eight, symmetric: true, strategy: 'channel', dynamic: false };
  const group = (target: string, activations: object | null) => ({
    targets: [target],
    format: 'int-quantized',
    weights,
    input_activations: activations,
    output_activations: null,
  });
  const words = [...quantized.keys()]
    .map((name) => /(\w+_embeddings|embed_tokens|embed_in|wte)\.weight$/.exec(name)?.[1])
    .find((name) => name !== undefined);
  return {
    quant_method: 'compressed-tensors',
    format: 'int-quantized',
    quantization_status: 'compressed',
    kv_cache_scheme: null,
    global_compression_ratio: null,
    config_groups: {
      group_0: group('Linear', { ...eight, symmetric: false, strategy: 'token', dynamic: true }),
      ...(words !== undefined && { group_1: group(`re:.*\\.${words}$`, null) }),
    },
    ignore: about.task === 'embedding' ? ['re:(.*\\.)?(cls|lm_head|pooler|vocab_transform|vocab_projector|head|decoder)(\\..*)?$'] : [],
  };
}

function configFile(model: Exported, json: string, kind: ExportKind): Uint8Array<ArrayBuffer> {
  const type = kind === 'float16' ? 'float16' : 'float32';
  const { architectures } = model.config;
  const first: unknown = Array.isArray(architectures) ? architectures[0] : undefined;
  const members: string[] = [];
  let typed = false;
  for (const member of membersOf(json)) {
    const name = JSON.parse(/^"(?:[^"\\]|\\.)*"/.exec(member)![0]) as string;
    if (name === 'dtype' || name === 'torch_dtype') {
      members.push(`"${name}": "${type}"`);
      typed = true;
    } else if (name === 'architectures' && model.about.task === 'embedding' && typeof first === 'string') {
      // The omitted head changes the architecture.
      members.push(`"${name}": [${JSON.stringify(first.replace(/(ForMaskedLM|ForPreTraining|LMHeadModel)$/, 'Model'))}]`);
    } else if (name !== 'quantization_config') members.push(member);
  }
  if (!typed) members.push(`"torch_dtype": "${type}"`);
  if (kind === 'int8') members.push(`"quantization_config": ${JSON.stringify(quantizationOf(model))}`);
  return encodeUtf8(`{\n  ${members.join(',\n  ')}\n}\n`);
}

export function exportFiles(model: Exported, kind: ExportKind): Record<string, Uint8Array<ArrayBuffer>> {
  const config = `${model.base}config.json`;
  const small = [...model.files].map(
    ([name, bytes]) => [name, name === config ? configFile(model, decodeUtf8(bytes), kind) : bytes.slice()] as const,
  );
  return Object.fromEntries([...small, [`${model.base}model.safetensors`, weightsFile(model, kind)]]);
}
