/**
 * Tests parseSafetensors on files from Python and hand-made files, and writeSafetensors. For refusals see bad_files.ts.
 */
import { type Attn, readSafetensorsHeader, type SafetensorsHeader, type Tensor } from 'attn';
import { assert } from 'chai';
import { assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes, loadHere } from '../support/host.ts';
import { assertDims, assertSameBits, random, tensor } from '../support/tensors.ts';

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
    it(`${name}: every tensor of both types has the right values`, async () => {
      const described: Described = JSON.parse(new TextDecoder().decode(await bytes(`testdata/${name}.json`)));
      const tensors = attn.parseSafetensors(await bytes(`testdata/${name}.safetensors`));
      assert.sameMembers(
        [...tensors.keys()],
        described.tensors.map((t) => t.name),
      );
      for (const t of described.tensors) assertSameBits(tensors.get(t.name), tensor(t.dims, t.data.map(Number)), t.name);
    });

  it('half precision gives the same numbers as single precision', async () => {
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

  describe('readSafetensorsHeader', () => {
    const one: SafetensorsHeader['tensors'] = { a: { dtype: 'BF16', shape: [2], data_offsets: [0, 4] } };

    it('reads names, types, shapes, offsets and metadata without the tensors', () => {
      const whole = file({ __metadata__: { format: 'pt' }, ...one }, new Uint8Array(4));
      for (const bytes of [whole, whole.subarray(0, -4)])
        assert.deepEqual(readSafetensorsHeader(bytes), { tensors: one, metadata: { format: 'pt' }, dataStart: whole.length - 4 });
      assert.deepEqual(readSafetensorsHeader(file({ __metadata__: null }, [])), { tensors: {}, metadata: {}, dataStart: 29 });
    });

    it('reads a tensor named __proto__', () => {
      const { tensors } = readSafetensorsHeader(file('{"__proto__":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}', []));
      assert.deepEqual(Object.keys(tensors), ['__proto__']);
    });

    const text = (header: unknown) => file(header, []);
    const valid = JSON.stringify(one.a);
    const long = text('{}');
    long[7] = 1;
    for (const [title, bytes, code, said] of [
      ['an ArrayBuffer', text('{}').buffer, 'ARGUMENT', 'expected a Uint8Array'],
      ['7 bytes', new Uint8Array(7), 'FORMAT', 'has 7 elements, expected at least 8'],
      ['a header that ends early', text('{}').subarray(0, -1), 'FORMAT', 'has 9 elements, expected at least 10'],
      ['a length of 2⁵⁶', long, 'FORMAT', 'expected at most 100000000 bytes'],
      ['text that is not JSON', text('{"a"'), 'FORMAT', 'expected a JSON object'],
      ['a list', text('[1]'), 'FORMAT', 'expected a JSON object'],
      ...[
        'null',
        '{}',
        '{"dtype":"F32","shape":[1]}',
        '{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}',
        '{"dtype":1,"shape":[1],"data_offsets":[0,4]}',
        '{"dtype":"F32","shape":[1],"data_offsets":[4,0]}',
      ].map((tensor) => [`a tensor ${tensor}`, text(`{"a":${tensor}}`), 'FORMAT', '"a" is not valid'] as const),
      ['two tensors of a name', text(`{"a":${valid},"\\u0061":${valid}}`), 'FORMAT', 'a name twice'],
      ['deep nesting', text(`{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`), 'FORMAT', '"a" is not valid'],
      [
        'deep nesting beside valid fields',
        text(`{"a":${valid.slice(0, -1)},"b":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`),
        'FORMAT',
        'the header',
      ],
      ['two fields of a name', text('{"a":{"dtype":"F32","shape":[0],"shape":[1],"data_offsets":[0,4]}}'), 'FORMAT', 'a name twice'],
      ['a byte order mark', text('\ufeff{}'), 'FORMAT', 'expected a JSON object'],
      ['metadata that is a list', text('{"__metadata__":[]}'), 'FORMAT', '__metadata__'],
      ['metadata with a number', text('{"__metadata__":{"a":1}}'), 'FORMAT', '__metadata__'],
    ] as const)
      it(`refuses ${title}`, () => assertThrows(() => readSafetensorsHeader(bytes as Uint8Array), code, ['readSafetensorsHeader', said]));
  });

  it('an ArrayBuffer, a Uint8Array and a view into a larger buffer give the same', () => {
    const whole = file({ a: { dtype: 'F32', shape: [2], data_offsets: [0, 8] } }, floats(1.5, -2));
    const larger = new Uint8Array(whole.length + 9);
    larger.set(whole, 5);
    for (const source of [whole, whole.buffer, larger.subarray(5, 5 + whole.length)])
      assertSameBits(attn.parseSafetensors(source).get('a'), tensor([2], [1.5, -2]));
  });

  it('no tensors, zero-size, rank 0, padding before and after the header', () => {
    assert.equal(attn.parseSafetensors(file({}, [])).size, 0);
    for (const __metadata__ of [{ a: 'b' }, null]) assert.equal(attn.parseSafetensors(file({ __metadata__ }, [])).size, 0);
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

  it('names of Object.prototype are ordinary names', () => {
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

  it('a parsed state can be loaded into a module', () => {
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

  describe('writing', () => {
    const headerOf = (bytes: Uint8Array) => {
      const { dataStart } = readSafetensorsHeader(bytes);
      return { length: dataStart - 8, text: new TextDecoder().decode(bytes.subarray(8, dataStart)) };
    };

    it('written files are read back bit for bit, with every kind of value, rank and size', () => {
      const g = new Generator(51);
      const state = new Map<string, Tensor>([
        ['specials', tensor([8], [0, -0, 1e-45, -1e-45, 3.4e38, Infinity, -Infinity, NaN])],
        ['rank 0', tensor([], [7])],
        ['nothing', tensor([3, 0, 2], [])],
        ['rank 8', random(g, [1, 2, 1, 2, 1, 2, 1, 3])],
        ['odd length', random(g, [17])],
      ]);
      const back = attn.parseSafetensors(attn.writeSafetensors(state));
      assert.sameMembers([...back.keys()], [...state.keys()]);
      for (const [name, t] of state) assertSameBits(back.get(name), t, name);
      assert.deepEqual(attn.writeSafetensors(back), attn.writeSafetensors(state), 'and the same file is written again');
      assert.equal(attn.parseSafetensors(attn.writeSafetensors({})).size, 0);
    });

    it('names are ordered by their UTF-8 bytes, data are in that order and aligned to 8', () => {
      const names = [
        'b',
        'a',
        '10',
        '9',
        'A',
        'é',
        'z',
        'layers.10.w',
        'layers.2.w',
        '\u{1f600}',
        '\uffee',
        '__proto__',
        'constructor',
        '',
        ' ',
        '"\\\n',
      ];
      const state = new Map(names.map((name, i) => [name, tensor([1], [i])]));
      const bytes = attn.writeSafetensors(state, { format: 'pt', a: 'é' });
      const { length, text } = headerOf(bytes);
      assert.equal((8 + length) % 8, 0);
      assert.match(text, / *$/);
      const order = [...text.matchAll(/"((?:[^"\\]|\\.)*)":\{"dtype":"F32","shape":\[1\],"data_offsets":\[(\d+),(\d+)\]\}/g)];
      const encoder = new TextEncoder();
      const hex = (name: string) => Array.from(encoder.encode(name), (byte) => byte.toString(16).padStart(2, '0')).join('');
      const sorted = [...names].sort((a, b) => (hex(a) < hex(b) ? -1 : 1));
      assert.deepEqual(order.map(([, name]) => JSON.parse(`"${name}"`) as string), sorted); // prettier-ignore
      assert.deepEqual(order.map(([, , begin]) => Number(begin)), sorted.map((_, i) => 4 * i)); // prettier-ignore
      assert.isTrue(text.startsWith('{"__metadata__":{"a":"é","format":"pt"},'));
      const back = attn.parseSafetensors(bytes);
      names.forEach((name, i) => assert.equal(back.get(name)!.data[0], i, name));
      assert.deepEqual(attn.writeSafetensors(new Map([...state].reverse()), { a: 'é', format: 'pt' }), bytes, 'the order given does not matter');
    });

    it('metadata may hold any string, and is omitted if there is none', () => {
      const words = { __metadata__: 'x', __proto__x: '', 'a "b"': '\u0000\u001f\\"', emoji: '\u{1f600}', '1': '2' };
      const { text } = headerOf(attn.writeSafetensors({ a: tensor([1], [1]) }, words));
      assert.deepEqual((JSON.parse(text) as { __metadata__: object }).__metadata__, words);
      for (const none of [undefined, {}]) assert.notInclude(headerOf(attn.writeSafetensors({ a: tensor([1], [1]) }, none)).text, '__metadata__');
    });

    it('inputs may be views or shared and stay unchanged; the file is an independent copy', () => {
      const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
      const shared = new Float32Array(memory.buffer, 8, 3);
      shared.set([1, 2, 3]);
      const larger = Float32Array.of(9, 1, 2, 3, 9);
      const a = attn.writeSafetensors({ a: { data: shared, dims: [3] } as unknown as Tensor });
      assert.deepEqual(attn.writeSafetensors({ a: { data: larger.subarray(1, 4), dims: [3] } }), a);
      assert.equal(a.byteOffset, 0);
      assert.equal(a.buffer.byteLength, a.length);
      assert.deepEqual([...larger], [9, 1, 2, 3, 9]);
    });

    it('a file from Python, read and written, has the same numbers', async () => {
      const first = attn.parseSafetensors(await bytes('testdata/safetensors_python.safetensors'));
      const second = attn.parseSafetensors(attn.writeSafetensors(first));
      assert.sameMembers([...second.keys()], [...first.keys()]);
      for (const [name, t] of first) assertSameBits(second.get(name), t, name);
    });
  });
});
