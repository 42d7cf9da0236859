/** A small GGUF file whose parts can be changed: a Llama of one layer, width 4, two heads, four tokens. */
const encode = (text: string) => new TextEncoder().encode(text);

export function joined(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

function raw(bytes: number, write: (view: DataView) => void): Uint8Array<ArrayBuffer> {
  const made = new Uint8Array(bytes);
  write(new DataView(made.buffer));
  return made;
}
export const u32 = (value: number) => raw(4, (view) => view.setUint32(0, value, true));
export const u64 = (value: number | bigint) => raw(8, (view) => view.setBigUint64(0, BigInt(value), true));
const f32 = (value: number) => raw(4, (view) => view.setFloat32(0, value, true));
const quoted = (value: string | Uint8Array) => {
  const bytes = typeof value === 'string' ? encode(value) : value;
  return joined(u64(bytes.length), bytes);
};

export const pair = (key: string, type: number, value: Uint8Array) => joined(quoted(key), u32(type), value);
export const whole = (key: string, value: number) => pair(key, 4, u32(value));
export const real = (key: string, value: number) => pair(key, 6, f32(value));
export const string = (key: string, value: string) => pair(key, 8, quoted(value));
export const strings = (key: string, values: readonly (string | Uint8Array)[]) =>
  pair(key, 9, joined(u32(8), u64(values.length), ...values.map(quoted)));
export const numbers = (key: string, values: readonly number[]) => pair(key, 9, joined(u32(5), u64(values.length), ...values.map(u32)));
export const reals = (key: string, values: readonly number[]) => pair(key, 9, joined(u32(6), u64(values.length), ...values.map(f32)));

interface Tensor {
  name: string;
  dims: (number | bigint)[];
  type: number;
  offset: number | bigint;
}

const padding = (size: number) => new Uint8Array((32 - (size % 32)) % 32);

const shapes: readonly (readonly [name: string, ...dims: number[]])[] = [
  ['token_embd.weight', 4, 4],
  ['output_norm.weight', 4],
  ['blk.0.attn_norm.weight', 4],
  ['blk.0.attn_q.weight', 4, 4],
  ['blk.0.attn_k.weight', 4, 2],
  ['blk.0.attn_v.weight', 4, 2],
  ['blk.0.attn_output.weight', 4, 4],
  ['blk.0.ffn_norm.weight', 4],
  ['blk.0.ffn_gate.weight', 4, 2],
  ['blk.0.ffn_up.weight', 4, 2],
  ['blk.0.ffn_down.weight', 2, 4],
];
const sizes = shapes.map(([, ...dims]) => dims.reduce((size, dim) => size * dim, 1));

export class SmallGguf {
  magic = 'GGUF';
  version = 3;
  tensorCount: number | bigint | undefined;
  keyCount: number | bigint | undefined;
  keys: [name: string, bytes: Uint8Array][];
  tensors: Tensor[];

  constructor() {
    const settings = {
      context_length: 8,
      embedding_length: 4,
      block_count: 1,
      feed_forward_length: 2,
      'attention.head_count': 2,
      'attention.head_count_kv': 1,
      'rope.dimension_count': 2,
    };
    this.keys = [['general.architecture', string('general.architecture', 'llama')]];
    for (const [name, value] of Object.entries(settings)) this.set(`llama.${name}`, whole(`llama.${name}`, value));
    const epsilon = 'llama.attention.layer_norm_rms_epsilon';
    this.set(epsilon, real(epsilon, 1e-5));
    const tokenizer: Record<string, (key: string) => Uint8Array> = {
      model: (key) => string(key, 'gpt2'),
      pre: (key) => string(key, 'gpt-2'),
      tokens: (key) => strings(key, ['<e>', 'a', 'b', 'ab']),
      token_type: (key) => numbers(key, [3, 1, 1, 1]),
      merges: (key) => strings(key, ['a b']),
      eos_token_id: (key) => whole(key, 0),
    };
    for (const [name, make] of Object.entries(tokenizer)) this.set(`tokenizer.ggml.${name}`, make(`tokenizer.ggml.${name}`));
    let offset = 0;
    this.tensors = shapes.map(([name, ...dims], i) => {
      const tensor = { name, dims, type: 0, offset };
      offset += 4 * sizes[i] + padding(4 * sizes[i]).length;
      return tensor;
    });
  }

  set(key: string, bytes: Uint8Array): this {
    const found = this.keys.find(([name]) => name === key);
    if (found) found[1] = bytes;
    else this.keys.push([key, bytes]);
    return this;
  }

  remove(key: string): void {
    this.keys = this.keys.filter(([name]) => name !== key);
  }

  header(): Uint8Array<ArrayBuffer> {
    return joined(
      encode(this.magic),
      u32(this.version),
      u64(this.tensorCount ?? this.tensors.length),
      u64(this.keyCount ?? this.keys.length),
      ...this.keys.map(([, bytes]) => bytes),
      ...this.tensors.map(({ name, dims, type, offset }) => joined(quoted(name), u32(dims.length), ...dims.map(u64), u32(type), u64(offset))),
    );
  }

  file(): Uint8Array<ArrayBuffer> {
    const header = this.header();
    const data = sizes.flatMap((size) => {
      const values = new Uint8Array(Float32Array.from({ length: size }, (_, i) => 0.125 * (i + 1)).buffer);
      return [values, padding(values.length)];
    });
    return joined(header, padding(header.length), ...data);
  }
}
