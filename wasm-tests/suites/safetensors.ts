/** parseSafetensors on files that Python wrote, and on files made here. Its refusals are in bad_input.ts. */
import type { Attn, Tensor } from 'attn';
import { assert } from 'chai';
import { bytes, loadHere } from '../support/host.ts';
import { assertDims, assertSameBits, tensor } from '../support/tensors.ts';

interface Described {
  readonly tensors: readonly {
    readonly name: string;
    readonly dtype: string;
    readonly dims: readonly number[];
    readonly data: readonly (number | string)[];
  }[];
}

function file(header: unknown, data: ArrayLike<number>, pad = ''): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header) + pad);
  const out = new Uint8Array(8 + text.length + data.length);
  new DataView(out.buffer).setBigUint64(0, BigInt(text.length), true);
  out.set(text, 8);
  out.set(data, 8 + text.length);
  return out;
}

const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);

describe('safetensors', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const name of ['safetensors_python', 'safetensors_unaligned'])
    it(`${name}: every tensor of both types, by value`, async () => {
      const described: Described = JSON.parse(new TextDecoder().decode(await bytes(`testdata/${name}.json`)));
      const tensors = attn.parseSafetensors(await bytes(`testdata/${name}.safetensors`));
      assert.sameMembers(
        [...tensors.keys()],
        described.tensors.map((t) => t.name),
      );
      for (const t of described.tensors) assertSameBits(tensors.get(t.name), tensor(t.dims, t.data.map(Number)), t.name);
    });

  it('half precision reads as the same numbers in single precision', async () => {
    const tensors = attn.parseSafetensors(await bytes('testdata/safetensors_python.safetensors'));
    assertSameBits(tensors.get('f16.corners'), tensors.get('f16.corners_as_f32'));
  });

  it('all 65536 halves', () => {
    const halves = Uint16Array.from({ length: 65536 }, (_, i) => i);
    const t = attn
      .parseSafetensors(file({ h: { dtype: 'F16', shape: [65536], data_offsets: [0, 131072] } }, new Uint8Array(halves.buffer)))
      .get('h')!;
    const expected = tensor([65536], (i) => {
      const [sign, exponent, fraction] = [i >> 15 ? -1 : 1, (i >> 10) & 31, i & 1023];
      if (exponent === 31) return fraction ? NaN : sign * Infinity;
      return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14);
    });
    assertSameBits(t, expected);
  });

  it('an ArrayBuffer, a Uint8Array and a view into a larger one are the same', () => {
    const whole = file({ a: { dtype: 'F32', shape: [2], data_offsets: [0, 8] } }, floats(1.5, -2));
    const larger = new Uint8Array(whole.length + 9);
    larger.set(whole, 5);
    for (const source of [whole, whole.buffer, larger.subarray(5, 5 + whole.length)])
      assertSameBits(attn.parseSafetensors(source).get('a'), tensor([2], [1.5, -2]));
  });

  it('no tensors, zero-size, rank 0, padding before and after the header', () => {
    assert.equal(attn.parseSafetensors(file({}, [])).size, 0);
    assert.equal(attn.parseSafetensors(file({ __metadata__: { a: 'b' } }, [])).size, 0);
    const t = attn.parseSafetensors(
      file({ z: { dtype: 'F32', shape: [0, 3], data_offsets: [0, 0] }, s: { dtype: 'F32', shape: [], data_offsets: [0, 4] } }, floats(7), '     '),
    );
    assertDims(t.get('z'), [0, 3], 'z');
    assertSameBits(t.get('s'), tensor([], [7]));
    assertSameBits(
      attn.parseSafetensors(file(` \n${JSON.stringify({ a: { dtype: 'F32', shape: [1], data_offsets: [0, 4] } })}`, floats(3))).get('a'),
      tensor([1], [3]),
    );
  });

  it('names from Object.prototype are ordinary names', () => {
    const t = attn.parseSafetensors(
      file(
        '{"__proto__":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"constructor":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        floats(1, 2),
      ),
    );
    assert.sameMembers([...t.keys()], ['__proto__', 'constructor']);
    assert.deepEqual([...t.get('__proto__')!.data, ...t.get('constructor')!.data], [1, 2]);
    assert.isUndefined(({} as Record<string, Tensor>).dtype);
  });

  it('a state that was read goes straight into a module', () => {
    const mha = new attn.MultiHeadAttention({ embedDim: 4, numHeads: 2 });
    const state = mha.stateDict();
    const header: Record<string, unknown> = {};
    let at = 0;
    for (const [name, t] of state) header[name] = { dtype: 'F32', shape: t.dims, data_offsets: [at, (at += t.data.byteLength)] };
    const data = new Uint8Array(at);
    at = 0;
    for (const t of state.values()) {
      data.set(new Uint8Array(t.data.buffer, t.data.byteOffset, t.data.byteLength), at);
      at += t.data.byteLength;
    }
    const read = attn.parseSafetensors(file(header, data));
    mha.initialize({ seed: 3 });
    mha.loadStateDict(read);
    for (const [name, t] of mha.stateDict()) assertSameBits(t, state.get(name), name);
    mha.dispose();
  });
});
