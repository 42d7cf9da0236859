/** Tests the exact bounds of arguments, and which argument and expectation an error reports. */
import { AttnError, load, type Attn, type ErrorCode, type Tensor, type TextModel } from 'attn';
import { assert } from 'chai';
import { detached, encoderOptions, k, maskOf, q, v, wrong, x } from '../support/catalogue.ts';
import { assertIsError, assertRejects, assertThrows } from '../support/errors.ts';
import { bytes, loadHere } from '../support/host.ts';
import { loadCheckpoint } from '../support/model_cases.ts';
import { assertDims, assertSameBits, tensor } from '../support/tensors.ts';

function about(call: () => unknown, code: Parameters<typeof assertThrows>[1]): readonly [argument: string, got: string, expected: string] {
  const { detail } = assertThrows(call, code);
  return [String(detail.argument), String(detail.got), String(detail.expected)];
}

type Buffer = ArrayBuffer & { resize?(bytes: number): void };
const growing = (bytes: number, maximum: number) => Reflect.construct(ArrayBuffer, [bytes, { maxByteLength: maximum }]) as Buffer;
const sharedOf = <T extends Float32Array | Int32Array | Uint8Array | BigInt64Array>(
  make: new (buffer: ArrayBuffer, at: number, length: number) => T,
  length: number,
) => new make(new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true }).buffer, 64, length);

describe('exact checks of arguments', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());
  const attention = (options: unknown) => attn.scaledDotProductAttention(q, k, v, wrong(options));

  describe('masks', () => {
    const floats = (kind: string, ...numbers: readonly number[]) => ({ kind, data: Float32Array.from(numbers), dims: [5] });

    it('numeric masks are flags or additive; only additive ones take infinities', () => {
      const expected = attention({ mask: maskOf([5], 'attend', Uint8Array.of(1, 0, 1, 1, 0)) }).output;
      assertSameBits(attention({ mask: floats('attend', 1, 0, 0.5, -1, -0) }).output, expected);
      assertSameBits(attention({ mask: floats('block', 0, 2, 0, -0, 1) }).output, expected);
      assertSameBits(attention({ mask: floats('additive', 0, -Infinity, 0, 0, -Infinity) }).output, expected);
      for (const kind of ['attend', 'block'])
        for (const number of [NaN, Infinity, -Infinity])
          assert.deepEqual(
            about(() => attention({ mask: floats(kind, 1, 1, number, 1, 1) }), 'MASK'),
            ['mask', 'NaN or an infinity', `finite numbers for kind '${kind}'`],
          );
    });

    it('errors about masks list the accepted arrays', () => {
      const bytes = new Uint8Array(5);
      assert.deepEqual(
        about(() => attention({ mask: maskOf([5], 'additive', bytes) }), 'DTYPE'),
        ['mask.data', 'a Uint8Array', 'a Float32Array'],
      );
      for (const kind of ['attend', 'block'])
        assert.deepEqual(
          about(() => attention({ mask: maskOf([5], kind, new Int32Array(5)) }), 'DTYPE'),
          ['mask.data', 'an Int32Array', 'a Uint8Array or a Float32Array'],
        );
    });

    it('a mask without kind is refused as ambiguous', () => {
      for (const mask of [bytesOf(5), [1, 1, 1, 1, 1], new Float32Array(5)])
        assert.include(assertThrows(() => attention({ mask }), 'MASK').message, 'polarity of a bare array would be a guess');
      for (const mask of [null, 5, 'attend']) {
        const error = assertThrows(() => attention({ mask }), 'MASK');
        assert.equal(error.detail.argument, 'mask');
        assert.notInclude(error.message, 'guess');
      }
      assert.equal(about(() => attention({ mask: { kind: 'other', data: bytesOf(5), dims: [5] } }), 'MASK')[0], 'mask.kind');
    });
  });
  const bytesOf = (length: number) => new Uint8Array(length);

  describe('tensors', () => {
    const softmax = (value: unknown) => attn.softmax(wrong(value));

    it('tensors are objects with data and dims', () => {
      for (const value of [[1], new Float32Array(2), null, 'text', 7])
        assert.deepEqual(
          about(() => softmax(value), 'ARGUMENT')
            .slice(0, 1)
            .concat(about(() => softmax(value), 'ARGUMENT')[2]),
          ['x', 'a tensor { data: Float32Array, dims: number[] }'],
        );
      assert.equal(about(() => softmax({ dims: [2] }), 'ARGUMENT')[0], 'x.data');
      assert.include(assertThrows(() => softmax([[1, 0]]), 'ARGUMENT').message, '. tensor([[1, 0], [0, 1]]) makes one.');
      assert.include(assertThrows(() => softmax({ data: [1, 0], dims: [2] }), 'DTYPE').message, '. tensor([[1, 0], [0, 1]]) makes one.');
      assert.equal(about(() => softmax({ data: new Float32Array(2) }), 'ARGUMENT')[0], 'x.dims');
    });

    it('tensors have at most 8 dims of at most 2³¹ - 1, and 2³² elements', () => {
      const one = new Float32Array(1);
      assertDims(softmax({ data: one, dims: Array(8).fill(1) }), Array(8).fill(1));
      assert.include(assertThrows(() => softmax({ data: one, dims: Array(9).fill(1) }), 'SHAPE').message, 'rank 9');
      assert.deepEqual(about(() => softmax({ data: one, dims: [0x7fffffff] }), 'SHAPE').slice(0, 2), ['x.data', '1 elements']);
      assert.equal(about(() => softmax({ data: one, dims: [2, 3] }), 'SHAPE')[2], '6 elements for dims (2,3)');
      assert.deepEqual(about(() => softmax({ data: one, dims: [1, 0x80000000] }), 'ARGUMENT').slice(0, 2), ['x.dims[1]', '2147483648']);
      for (const dim of [-1, 0.5, NaN, '1', 1n, undefined])
        assert.equal(about(() => softmax({ data: one, dims: [1, dim] }), 'ARGUMENT')[0], 'x.dims[1]');
      assert.equal(assertThrows(() => softmax({ data: one, dims: [65536, 65536] }), 'SHAPE').detail.argument, 'x.data');
      assert.equal(about(() => softmax({ data: one, dims: [65536, 65537] }), 'MEMORY')[1], '4295032832 elements in shape (65536,65537)');
      assertDims(softmax({ data: new Float32Array(0), dims: [3, 0] }), [3, 0]);
    });

    it('tensors detached while later arguments are read are DETACHED', () => {
      const taken = { data: q.data.slice(), dims: q.dims };
      const options = {
        get isCausal() {
          detached(taken.data);
          return false;
        },
      };
      const { detail } = assertThrows(() => attn.scaledDotProductAttention(taken, k, v, options), 'DETACHED');
      assert.deepEqual([detail.op, detail.argument], ['scaledDotProductAttention', 'query']);
    });

    it('tensors on a detached or shrunk buffer are DETACHED, also without elements', () => {
      for (const [length, dims] of [
        [2, [2]],
        [2, [0]],
        [0, [0]],
      ] as const)
        // prettier-ignore
        assert.equal(assertThrows(() => softmax({ data: detached(new Float32Array(length)), dims }), 'DETACHED').detail.argument, 'x');
      const buffer = growing(96, 192);
      if (!buffer.resize) return;
      const data = new Float32Array(buffer, 16, 20);
      buffer.resize(80);
      // The array could become valid again: at the maximum of 192 bytes, 44 elements follow the first 16 bytes.
      for (const length of [20, 44]) assertThrows(() => softmax({ data, dims: [length] }), 'DETACHED');
      assertThrows(() => softmax({ data, dims: [45] }), ['SHAPE', 'DETACHED']);
      const tracking = new Float32Array(buffer);
      for (const length of [21, 48]) assertThrows(() => softmax({ data: tracking, dims: [length] }), 'DETACHED');
      for (const length of [19, 49]) assertThrows(() => softmax({ data: tracking, dims: [length] }), 'SHAPE');
      const flags = new Uint8Array(growing(10, 20));
      const block = (length: number) => attention({ mask: { kind: 'block', data: flags, dims: [length] } });
      for (const length of [11, 20]) assertThrows(() => block(length), 'DETACHED');
      for (const length of [9, 21]) assertThrows(() => block(length), 'SHAPE');
      assertThrows(() => softmax({ data: new Float32Array(2), dims: [3] }), 'SHAPE');
      assertThrows(() => softmax({ data: sharedOf(Float32Array, 2), dims: [3] }), 'SHAPE');
    });
  });

  describe('ids', () => {
    const table = () => new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
    const forward = (ids: unknown, dims?: readonly number[]) => table().forward(wrong(ids), dims);

    it('ids are 32-bit integers in any container', () => {
      for (const outside of [2 ** 31, -(2 ** 31) - 1, 2 ** 40])
        for (const ids of [[0, outside], BigInt64Array.of(0n, BigInt(outside))]) {
          const error = assertThrows(() => forward(ids), 'OUT_OF_RANGE');
          assert.deepEqual(
            { ...error.detail, op: undefined },
            {
              op: undefined,
              argument: 'ids[1]',
              expected: 'a whole number from -2147483648 to 2147483647',
              got: String(outside),
              index: 1,
            },
          );
        }
      for (const inside of [2 ** 31 - 1, -(2 ** 31)])
        for (const ids of [[0, inside], BigInt64Array.of(0n, BigInt(inside)), Int32Array.of(0, inside)])
          assert.notInclude(assertThrows(() => forward(ids), 'OUT_OF_RANGE').message, '-2147483648 to 2147483647', 'the embedding has its own range');
    });

    it('other values than ids are ARGUMENT, other arrays DTYPE', () => {
      for (const ids of [{}, null, 'text', 3, new Set([1])]) assert.equal(about(() => forward(ids), 'ARGUMENT')[0], 'ids');
      for (const ids of [Float32Array.of(1), Uint8Array.of(1), BigUint64Array.of(1n)]) assert.equal(about(() => forward(ids), 'DTYPE')[0], 'ids');
      for (const id of ['1', 1.5, NaN, 1n, null]) assert.equal(about(() => forward([0, id]), 'ARGUMENT')[0], 'ids[1]');
      assert.equal(about(() => table().nearest(wrong({}), 1), 'ARGUMENT')[0], 'target');
      assert.equal(about(() => table().nearest(wrong(new Float64Array(2)), 1), 'DTYPE')[0], 'target');
      assert.equal(about(() => table().nearest(2 ** 60, 1), 'OUT_OF_RANGE')[0], 'target');
    });

    it('ids may be empty or shared, but not detached', () => {
      for (const none of [[], new Int32Array(0), new BigInt64Array(0)]) assertDims(forward(none), [0, 2]);
      assertThrows(() => forward(detached(new Int32Array(0))), 'DETACHED');
      const wide = BigInt64Array.of(1n);
      structuredClone(wide.buffer, { transfer: [wide.buffer] });
      assertThrows(() => forward(wide), 'DETACHED');
      const layer = table();
      const expected = layer.forward([0, 0]);
      assertSameBits(layer.forward(sharedOf(Int32Array, 2)), expected);
      assertSameBits(layer.forward(sharedOf(BigInt64Array, 2)), expected);
      assertSameBits(layer.forward([0, 0], [1, 2]), { data: expected.data, dims: [1, 2, 2] });
      assert.equal(about(() => layer.forward([0], wrong('1')), 'ARGUMENT')[0], 'dims');
      assert.equal(about(() => layer.forward([0, 1], [3]), 'SHAPE')[0], 'ids');
    });
  });

  describe('files and states', () => {
    it('bytes may be a buffer, a shared buffer or a part of one', () => {
      const file = attn.writeSafetensors({ a: tensor([2], [1, 2]) });
      const shared = sharedOf(Uint8Array, file.length);
      shared.set(file);
      const part = new Uint8Array(file.length + 9);
      part.set(file, 5);
      for (const bytes of [file, file.buffer, shared, part.subarray(5, 5 + file.length)])
        assert.deepEqual([...attn.parseSafetensors(wrong(bytes)).get('a')!.data], [1, 2]);
      assert.deepEqual(
        about(() => attn.parseSafetensors(wrong(new Int8Array(9))), 'DTYPE'),
        ['bytes', 'an Int8Array', 'a Uint8Array or an ArrayBuffer'],
      );
      for (const lost of [detached(file as Uint8Array<ArrayBuffer>), detached(new Uint8Array(0))])
        assert.equal(assertThrows(() => attn.parseSafetensors(lost as Uint8Array), 'DETACHED').detail.argument, 'bytes');
      const buffer = new ArrayBuffer(8);
      structuredClone(buffer, { transfer: [buffer] });
      const { detail, message, cause } = assertThrows(() => attn.parseSafetensors(buffer), 'DETACHED');
      assert.deepEqual({ ...detail }, { op: 'parseSafetensors', argument: 'bytes' });
      assert.include(message, 'transferred');
      assert.instanceOf(cause, TypeError);
    });

    it('names keep a byte order mark, and all of Unicode', () => {
      const names = ['\ufeffa', 'a\ufeff', 'é', '名', '😀', '\u0000'];
      const file = attn.writeSafetensors(Object.fromEntries(names.map((name) => [name, tensor([1], [3])])));
      assert.sameMembers([...attn.parseSafetensors(file).keys()], names);
    });

    it('a state is a Map or an object of tensors by name', () => {
      const layer = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 2 });
      const weight = tensor([1, 2], [5, 6]);
      for (const state of [{ weight }, new Map([['weight', weight]])]) {
        layer.loadStateDict(state);
        assertSameBits(layer.stateDict().get('weight'), weight);
      }
      for (const state of [[], new Float32Array(1), new Set(), 7, null, Promise.resolve()])
        assert.deepEqual(about(() => layer.loadStateDict(wrong(state)), 'ARGUMENT').slice(0, 1), ['state']);
      assert.equal(about(() => layer.loadStateDict(wrong(new Map([[7, weight]]))), 'ARGUMENT')[0], 'a name in state');
    });
  });

  describe('options', () => {
    it('in place of a tensor are refused with their place', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
      const x = tensor([1, 3, 8], (i) => i);
      const misplaced = { isCausal: true } as never;
      assert.equal(
        assertThrows(() => mha.forward(x, misplaced), 'ARGUMENT').message,
        'MultiHeadAttention: key is an object of options, expected a tensor. The options are argument 4: query, key, value, options.',
      );
      assertThrows(() => attn.scaledDotProductAttention(x, misplaced, x), 'ARGUMENT', ['key', 'argument 4']);
      assertThrows(() => mha.forward(x, { isCausal: true, data: 1 } as never), 'DTYPE', ['key.data']);
      assertThrows(() => mha.forward(x, {} as never), 'ARGUMENT', ['key.data is missing']);
      const keys = new Proxy(
        { isCausal: true },
        {
          ownKeys: () => {
            throw new Error('planted');
          },
        },
      );
      assertThrows(() => mha.forward(x, keys as never), 'ARGUMENT', ['key']);
      mha.dispose();
    });

    it('for an unknown option the error suggests a similar name, or lists the known ones', () => {
      const unknown = (options: object) => assertThrows(() => attention(options), 'ARGUMENT');
      const error = unknown({ is_causal: true });
      assert.include(error.message, 'option "is_causal" is unknown, expected one of ');
      assert.isTrue(error.message.endsWith('. Did you mean isCausal?'));
      assert.deepEqual([error.help, error.detail.help], ['Did you mean isCausal?', 'Did you mean isCausal?']);
      assert.deepEqual([error.detail.argument, error.detail.got], ['is_causal', 'is_causal']);
      assert.include(String(error.detail.expected).split(', '), 'isCausal');
      assert.include(unknown({ causal: true }).message, 'Did you mean isCausal?');
      assert.include(unknown({ needweight: true }).message, 'Did you mean needWeights?');
      assert.match(unknown({ zzzzzzzzzz: 1 }).message, /expected one of .*isCausal, [^.]*$/);
      assert.isUndefined(unknown({ zzzzzzzzzz: 1 }).help);
      // At most three edits in a long name, fewer in a short one; of equally similar names the first is suggested.
      assert.include(unknown({ needweihgtzz: 1 }).message, 'Did you mean needWeights?');
      assert.isUndefined(unknown({ mxyz: 1 }).help);
      const encoder = new attn.TransformerEncoder({ ...encoderOptions, numLayers: 2 });
      const inner = assertThrows(() => encoder.forward(x, wrong({ trace: { layer: [1] } })), 'ARGUMENT');
      assert.include(inner.message, 'option "trace.layer" is unknown');
      assert.equal(inner.help, 'Did you mean layers?');
      assert.equal(inner.detail.argument, 'trace.layer');
      assert.equal(about(() => encoder.forward(x, wrong({ trace: { layers: [0.5] } })), 'ARGUMENT')[0], 'trace.layers[0]');
      assert.equal(about(() => encoder.forward(x, wrong({ trace: { layers: Int32Array.of(1) } })), 'ARGUMENT')[0], 'trace.layers');
      assert.equal(about(() => attention({ isCausal: 1 }), 'ARGUMENT')[0], 'isCausal');
    });

    it('numeric options: another type is ARGUMENT, out of range CONFIG', () => {
      const dropout = (value: unknown) => attention({ dropout: 0.5, seed: value });
      for (const seed of ['1', 0.5, NaN, 1n, null]) assert.equal(about(() => dropout(seed), 'ARGUMENT')[0], 'seed');
      for (const seed of [-1, 2 ** 53])
        assert.deepEqual(
          about(() => dropout(seed), 'CONFIG'),
          ['seed', String(seed), 'a whole number from 0 to 9007199254740991'],
        );
      for (const seed of [0, 2 ** 53 - 1]) assertDims(dropout(seed).output, [2, 3, 6]);
      for (const scale of ['1', 1n, true, null]) assert.equal(about(() => attention({ scale }), 'ARGUMENT')[0], 'scale');
      for (const scale of [NaN, Infinity]) assert.deepEqual(about(() => attention({ scale }), 'CONFIG').slice(0, 1), ['scale']);
      const heads = (numHeads: unknown) => new attn.MultiHeadAttention(wrong({ embedDim: 8, numHeads }));
      for (const value of ['2', 1.5, NaN, null]) assert.equal(about(() => heads(value), 'ARGUMENT')[0], 'numHeads');
      for (const value of [2 ** 53, -(2 ** 53)]) assert.deepEqual(about(() => heads(value), 'CONFIG').slice(0, 1), ['numHeads']);
    });

    it('for window, queryOffset, softcap and theta the error names the number and its range', () => {
      assert.deepEqual(
        about(() => attention({ window: 3 }), 'ARGUMENT'),
        ['window', '3', 'an Array [left, right] of two whole numbers'],
      );
      assert.deepEqual(
        about(() => attention({ window: [1, 2, 3] }), 'ARGUMENT'),
        ['window', '3 elements', 'an Array [left, right] of two whole numbers'],
      );
      assert.deepEqual(
        about(() => attention({ window: [1, 0.5] }), 'ARGUMENT'),
        ['window[1]', '0.5', 'a whole number'],
      );
      assert.deepEqual(
        about(() => attention({ window: [2 ** 53, 0] }), 'CONFIG'),
        ['window[0]', '9007199254740992', 'a number below 2^53'],
      );
      assert.deepEqual(
        about(() => attention({ window: [0, -2] }), 'CONFIG'),
        ['window', '-2', 'whole numbers of at least -1'],
      );
      assert.deepEqual(
        about(() => attention({ queryOffset: -(2 ** 53) }), 'CONFIG'),
        ['queryOffset', '-9007199254740992', 'a number below 2^53'],
      );
      assert.deepEqual(
        about(() => attention({ softcap: -0.5 }), 'CONFIG'),
        ['softcap', '-0.5', '0 or a normal number above 0'],
      );
      assert.deepEqual(
        about(() => attention({ past: { key: k } }), 'ARGUMENT').filter((_, i) => i !== 1),
        ['past.value', 'a tensor { data: Float32Array, dims: number[] }'],
      );
      assert.deepEqual(
        about(() => new attn.TransformerEncoderLayer({ ...encoderOptions, rotary: { theta: 0 } }), 'CONFIG'),
        ['rotary.theta', '0', 'a finite number above 0'],
      );
      const nothing = { softcap: undefined, window: undefined, queryOffset: undefined, past: undefined, outputPresent: undefined };
      assertSameBits(attention(nothing).output, attention({}).output);
    });

    it('string options: another type is ARGUMENT, unknown CONFIG; every element of a list is checked', () => {
      assert.equal(about(() => attn.activation(x, wrong(7)), 'ARGUMENT')[0], 'name');
      assert.include(about(() => attn.activation(x, wrong('x')), 'CONFIG')[2], 'one of relu, ');
      for (const name of ['scores', 'masked_scores', 'probabilities', 'weights', 'context'] as const)
        assert.deepEqual(Object.keys(attention({ trace: [name] }).trace!), [name]);
      const all = Object.keys(attention({ trace: true }).trace!);
      for (const name of all) assert.deepEqual(Object.keys(attention({ trace: [name] }).trace!), [name]);
      assert.deepEqual(Object.keys(attention({ trace: [] }).trace ?? {}), []);
      assert.isUndefined(attention({ trace: false }).trace);
      assert.deepEqual(about(() => attention({ trace: ['scores', 'x'] }), 'ARGUMENT').slice(0, 2), ['trace[1]', '"x"']);
      assert.deepEqual(
        about(() => attention({ trace: [7] }), 'ARGUMENT'),
        ['trace[0]', '7', 'a name'],
      );
      assert.deepEqual(
        about(() => attention({ trace: 'scores' }), 'ARGUMENT'),
        ['trace', '"scores"', 'true, false or an Array of names'],
      );
    });

    it('an error about a missing options object lists its required members', () => {
      assert.deepEqual(
        about(() => attn.additiveAttention(q, k, v, wrong(undefined)), 'ARGUMENT'),
        ['params', 'missing', 'an object with queryWeight, keyWeight, scoreWeight'],
      );
      assert.equal(about(() => new attn.TransformerEncoder(wrong(undefined)), 'ARGUMENT')[2], 'an object with dModel, nhead, numLayers');
      assert.equal(about(() => attn.generalAttention(q, k, v, wrong([])), 'ARGUMENT')[2], 'an object');
    });
  });

  describe('options of load', () => {
    it('wasm is an address, a Response, a module or bytes', async () => {
      for (const [wasm, got] of [
        ['', '""'],
        [{}, 'an object'],
        [7, '7'],
        [null, 'null'],
        [new Float32Array(1), 'a Float32Array'],
      ] as const) {
        // prettier-ignore
        const { detail } = await assertRejects(loadHere({ wasm: wrong(wasm) }), 'ARGUMENT');
        assert.deepEqual([detail.op, detail.argument, detail.got], ['load', 'wasm', got]);
      }
    });

    it('threads, variant and memory', async () => {
      const refused = async (options: object, code: 'ARGUMENT' | 'CONFIG') => {
        const { detail } = await assertRejects(loadHere(options), code);
        return [detail.op, detail.argument, detail.expected];
      };
      assert.deepEqual(await refused({ threads: 'two' }, 'ARGUMENT'), ['load', 'threads', "a whole number from 1 to 64, or 'auto'"]);
      for (const threads of [0, 65]) assert.deepEqual(await refused({ threads }, 'CONFIG'), ['load', 'threads', 'a whole number from 1 to 64']);
      assert.deepEqual(await refused({ threads: 1.5 }, 'ARGUMENT'), ['load', 'threads', 'a whole number from 1 to 64']);
      assert.deepEqual(await refused({ variant: 'fast' }, 'CONFIG'), ['load', 'variant', 'one of auto, simd, relaxed']);
      const memory = 'a whole number from 2097152 to 4294967296';
      for (const maximumMemory of [2 ** 21 - 1, 2 ** 32 + 1])
        assert.deepEqual(await refused({ maximumMemory }, 'CONFIG'), ['load', 'maximumMemory', memory]);
      (await loadHere({ maximumMemory: 2 ** 22 })).dispose();
    });

    it('callbacks are functions, and signal is an AbortSignal', async () => {
      for (const onProgress of [5, {}, null, 'x']) {
        const { detail } = await assertRejects(loadHere({ onProgress: wrong(onProgress) }), 'ARGUMENT');
        assert.deepEqual([detail.op, detail.argument, detail.expected], ['load', 'onProgress', 'a function']);
      }
      for (const signal of [5, null, 'x', {}, { aborted: false }, { aborted: false, addEventListener() {} }]) {
        const { detail } = await assertRejects(loadHere({ signal: wrong(signal) }), 'ARGUMENT');
        assert.deepEqual([detail.op, detail.argument, detail.expected], ['load', 'signal', 'an AbortSignal']);
      }
      for (const options of ['options', null, []]) {
        const { detail } = await assertRejects(load(wrong(options)), 'ARGUMENT');
        assert.deepEqual([detail.op, detail.argument, detail.expected], ['load', 'options', 'an object']);
      }
    });

    it('any object with the members of a signal works: its exceptions are ARGUMENT, and exceptions on removal are ignored', async () => {
      const plain = { aborted: false, addEventListener() {}, removeEventListener() {} };
      const thrown = await assertRejects(
        loadHere({
          signal: wrong({
            ...plain,
            addEventListener() {
              throw new Error('no listeners');
            },
          }),
        }),
        'ARGUMENT',
        ['no listeners'],
      );
      assert.equal(thrown.detail.argument, 'signal');
      const unheard = {
        ...plain,
        removeEventListener() {
          throw new Error('nobody');
        },
      };
      (await loadHere({ signal: wrong(unheard) })).dispose();
      const heard: string[] = [];
      const listening = {
        ...plain,
        addEventListener: (type: string) => void heard.push(`+${type}`),
        removeEventListener: (type: string) => void heard.push(`-${type}`),
      };
      (await loadHere({ signal: wrong(listening) })).dispose();
      assert.deepEqual([...new Set(heard)].sort(), ['+abort', '-abort']);
      const why = new Error('enough');
      const error = await assertRejects(loadHere({ signal: wrong({ ...plain, aborted: true, reason: why }) }), 'ABORTED');
      assert.equal(error.cause, why);
    });
  });

  describe('arguments of models', () => {
    let model: TextModel;
    const name = 'tiny-bert';
    const read = async (file: string) => bytes(`testdata/models/${name}/${file}`);
    before(async () => void (model = await loadCheckpoint(attn, name)));
    after(() => model.dispose());
    const refused = async (call: () => Promise<unknown>, code: ErrorCode) => {
      const { detail } = await assertRejects(call, code);
      return [detail.op, detail.argument, detail.expected];
    };

    it('the source is a folder or an object of files', async () => {
      const expected = 'the URL or path of a folder, or an object of files by name';
      for (const source of ['', 7, null, undefined, [], new Map(), new Uint8Array(3)])
        assert.deepEqual(await refused(() => attn.loadModel(wrong(source)), 'ARGUMENT'), ['loadModel', 'source', expected]);
      assert.deepEqual(await refused(() => attn.loadModel({}), 'ARGUMENT'), [
        'loadModel',
        'source',
        'an object with config.json, tokenizer.json, model.safetensors',
      ]);
      assert.deepEqual(await refused(() => attn.loadModel({ 'config.json': wrong(7) }), 'DTYPE'), [
        'loadModel',
        'source["config.json"]',
        'a Uint8Array or an ArrayBuffer',
      ]);
      for (const pretender of ['Blob', 'File'])
        assert.equal((await refused(() => attn.loadModel({ 'config.json': wrong({ [Symbol.toStringTag]: pretender }) }), 'ARGUMENT'))[1], 'source');
      const [config, tokenizer, weights] = [await read('config.json'), await read('tokenizer.json'), await read('model.safetensors')];
      const files = {
        'config.json': new TextDecoder().decode(config),
        'tokenizer.json': new Blob([tokenizer]),
        'model.safetensors': new File([weights], 'x'),
      };
      (await attn.loadModel(files)).dispose();
      (await attn.loadModel({ ...files, 'config.json': config.buffer })).dispose();
    });

    it('digests are in hex and of files that are read', async () => {
      const sha256 = async (given: unknown) => refused(() => attn.loadModel('./nothing/', { sha256: wrong(given) }), 'ARGUMENT');
      const digest = '0'.repeat(64);
      for (const given of [null, 'x', 7, []]) assert.deepEqual(await sha256(given), ['loadModel', 'sha256', 'an object of hex digests by file name']);
      for (const bad of ['0'.repeat(63), '0'.repeat(65), `${'0'.repeat(63)}g`, 7, null, [digest]])
        assert.deepEqual(await sha256({ 'config.json': bad }), ['loadModel', 'sha256["config.json"]', '64 hex digits']);
      for (const file of [
        'pytorch_model.bin',
        'Config.json',
        'a/b/config.json',
        '/config.json',
        '.a/config.json',
        '../config.json',
        '2_Dense/other.json',
      ]) {
        const { detail, message } = await assertRejects(attn.loadModel('./nothing/', { sha256: { [file]: digest } }), 'ARGUMENT');
        assert.deepEqual([detail.argument, detail.got], ['sha256', file]);
        assert.include(String(detail.expected).split(', '), 'model.safetensors');
        assert.include(message, JSON.stringify(file));
      }
      for (const file of ['config.json', '2_Dense/model.safetensors', '3_Dense/config.json', 'any-thing_1.2/config.json', '2_Dense/modules.json'])
        assert.notEqual(
          (
            await refused(() => attn.loadModel({ 'config.json': '{}' }, { sha256: { [file]: digest } }), [
              'FORMAT',
              'NETWORK',
              'ARGUMENT',
              'CONFIG',
              'UNSUPPORTED',
            ] as never)
          )[1],
          'sha256',
        );
    });

    it('options of loadModel', async () => {
      const option = async (options: unknown, code: ErrorCode) => refused(() => attn.loadModel('./nothing/', wrong(options)), code);
      assert.deepEqual(await option({ cache: 'always' }, 'CONFIG'), ['loadModel', 'cache', 'one of default, none, reload']);
      assert.deepEqual(await option({ cache: 1 }, 'ARGUMENT'), ['loadModel', 'cache', 'one of default, none, reload']);
      for (const fetch of [null, 'x', {}]) assert.deepEqual(await option({ fetch }, 'ARGUMENT'), ['loadModel', 'fetch', 'a function']);
      for (const onProgress of [null, 'x', {}]) assert.deepEqual(await option({ onProgress }, 'ARGUMENT'), ['loadModel', 'onProgress', 'a function']);
      assert.deepEqual(await option({ signal: 1 }, 'ARGUMENT'), ['loadModel', 'signal', 'an AbortSignal']);
      for (const options of [null, 'x', []]) assert.deepEqual(await option(options, 'ARGUMENT'), ['loadModel', 'options', 'an object']);
      assert.equal((await option({ sha: {} }, 'ARGUMENT'))[1], 'sha');
    });

    it('the config is frozen at every level', () => {
      const check = (object: object) => {
        assert.isTrue(Object.isFrozen(object));
        for (const member of Object.values(object)) if (typeof member === 'object' && member !== null) check(member as object);
      };
      check(model.config);
    });

    it('texts are strings, or pairs of strings if the method takes pairs', async () => {
      const of = (texts: unknown) => about(() => model.tokenize(wrong(texts)), 'ARGUMENT');
      const either = 'a string, an Array of strings or an Array of pairs of strings';
      for (const texts of [7, null, undefined, {}, new Uint8Array(1)]) assert.deepEqual([of(texts)[0], of(texts)[2]], ['texts', either]);
      assert.deepEqual(of(['a', 7]), ['texts[1]', '7', 'a string or a pair of strings']);
      assert.deepEqual(of([['a', 'b'], ['a']]), ['texts[1]', '1 elements', 'a pair of strings']);
      assert.deepEqual(of([['a', 'b', 'c']]), ['texts[0]', '3 elements', 'a pair of strings']);
      assert.deepEqual(of([[7, 'b']]), ['texts[0][0]', '7', 'a string']);
      assert.deepEqual(of([['a', null]]), ['texts[0][1]', 'null', 'a string']);
      assert.deepEqual(
        of(['a', 'b', ['a', 'b']])
          .slice(0, 1)
          .concat(of(['a', ['a', 'b']])[2]),
        ['texts[2]', 'a string'],
      );
      assert.deepEqual([of([['a', 'b'], 'c'])[0], of([['a', 'b'], 'c'])[2]], ['texts[1]', 'a pair of strings']);
      for (const texts of [7, [['a', 'b']]]) {
        const [op, argument, expected] = await refused(() => model.embed(wrong(texts)), 'ARGUMENT');
        assert.deepEqual(
          [op, argument, expected],
          texts === 7 ? ['embed', 'texts', 'a string or an Array of strings'] : ['embed', 'texts[0]', 'a string'],
        );
      }
      assertDims(await model.embed([]), [0, (await model.embed('a')).dims[1]!]);
      assert.deepEqual([...model.tokenize([]).dims], [0, 0]);
    });

    it('options of methods that take texts', async () => {
      const of = (options: unknown, code: ErrorCode) => about(() => model.tokenize('a', wrong(options)), code);
      for (const maxLength of ['1', 1.5, null]) assert.deepEqual(of({ maxLength }, 'ARGUMENT').slice(0, 1), ['maxLength']);
      for (const maxLength of [0, 2 ** 31])
        assert.deepEqual(of({ maxLength }, 'CONFIG'), ['maxLength', String(maxLength), 'a whole number from 1 to 2147483647']);
      assert.deepEqual(of({ maxLength: 65 }, 'OUT_OF_RANGE'), ['maxLength', '65', 'at most 64']);
      assert.equal(model.tokenize('a', { maxLength: 64 }).dims[1], 3);
      for (const truncation of [1, 'x', null])
        assert.deepEqual(of({ truncation }, 'ARGUMENT'), ['truncation', truncation === 'x' ? '"x"' : String(truncation), 'true or false']);
      assert.equal(of({ batchSize: 1 }, 'ARGUMENT')[0], 'batchSize', 'tokenize has no such option');
      for (const options of [null, 'x', []]) assert.deepEqual(of(options, 'ARGUMENT').slice(0, 1), ['options']);
      const embed = async (options: object, code: ErrorCode) => refused(() => model.embed('a', wrong(options)), code);
      for (const normalize of [1, 'x', null]) assert.deepEqual(await embed({ normalize }, 'ARGUMENT'), ['embed', 'normalize', 'true or false']);
      for (const member of ['prompt', 'promptName'])
        for (const given of [1, null, {}]) assert.deepEqual(await embed({ [member]: given }, 'ARGUMENT'), ['embed', member, 'a string']);
      for (const batchSize of [0, 2 ** 20 + 1])
        assert.deepEqual(await embed({ batchSize }, 'CONFIG'), ['embed', 'batchSize', 'a whole number from 1 to 1048576']);
      assertDims(await model.embed('a', { batchSize: 2 ** 20 }), (await model.embed('a', { batchSize: 1 })).dims);
      const poolings = 'mean, cls, max, lasttoken, weightedmean, mean_sqrt_len';
      assert.deepEqual(await embed({ pooling: 'sum' }, 'CONFIG'), ['embed', 'pooling', `one of ${poolings}`]);
      for (const pooling of poolings.split(', ')) assertDims(await model.embed('a', wrong({ pooling })), [1, 32]);
      assert.deepEqual(await embed({ onProgress: 1 }, 'ARGUMENT'), ['embed', 'onProgress', 'a function']);
      assert.deepEqual(await embed({ signal: 1 }, 'ARGUMENT'), ['embed', 'signal', 'an AbortSignal']);
      assert.include((await assertRejects(model.embed('a', { promptName: 'no such prompt' }), 'CONFIG')).message, 'no such prompt');
    });

    it('for values that cannot be read, or parts of them, the error names the argument', async () => {
      const { proxy: dead, revoke } = Proxy.revocable({}, {});
      revoke();
      assert.equal(about(() => model.tokenize(wrong(dead)), 'ARGUMENT')[0], 'texts');
      assert.equal(about(() => model.tokenize('a', wrong(dead)), 'ARGUMENT')[0], 'options');
      assert.equal(about(() => model.forward(wrong(dead)), 'ARGUMENT')[0], 'inputs');
      assert.equal((await refused(() => attn.loadModel(wrong(dead)), 'ARGUMENT'))[1], 'source');
      assert.equal((await refused(() => attn.loadModel('./nothing/', wrong(dead)), 'ARGUMENT'))[1], 'options');
      const encoding = model.tokenize('a b');
      for (const part of ['inputIds', 'tokenTypeIds']) assert.equal(about(() => model.forward({ ...encoding, [part]: 'x' }), 'ARGUMENT')[0], part);
      assert.equal(about(() => model.forward(wrong({ ...encoding, attentionMask: 'x' })), 'DTYPE')[0], 'attentionMask.data');
    });

    it('encodings, tokens, ids and parameter names', () => {
      const encoding = model.tokenize('a b');
      for (const inputs of [7, null, undefined, 'a', []])
        assert.deepEqual(
          [about(() => model.forward(wrong(inputs)), 'ARGUMENT')[0], about(() => model.forward(wrong(inputs)), 'ARGUMENT')[2]],
          ['inputs', 'an Encoding'],
        );
      assert.equal(assertThrows(() => model.forward(wrong('a')), 'ARGUMENT').help, 'tokenize() returns one');
      assert.equal(assertThrows(() => model.forward(wrong(Promise.resolve(encoding))), 'ARGUMENT').help, 'Await tokenize()');
      assert.deepEqual(about(() => model.forward(wrong({ ...encoding, dims: undefined })), 'ARGUMENT').slice(0, 1), ['inputs.dims']);
      assertSameBits(
        model.forward({ ...encoding, attentionMask: undefined as never }).lastHiddenState,
        model.forward({ ...encoding, attentionMask: encoding.attentionMask.map(() => 1) }).lastHiddenState,
      );
      const hidden = encoding.attentionMask.slice();
      hidden[1] = 0;
      assert.notDeepEqual(model.forward({ ...encoding, attentionMask: hidden }).lastHiddenState, model.forward(encoding).lastHiddenState);
      for (const token of [7, null, undefined]) assert.deepEqual(about(() => model.tokenToId(wrong(token)), 'ARGUMENT').slice(0, 1), ['token']);
      for (const id of ['1', 1.5, NaN, null]) assert.deepEqual(about(() => model.idToToken(wrong(id)), 'ARGUMENT').slice(0, 1), ['id']);
      for (const parameter of [7, null, undefined])
        assert.deepEqual(about(() => model.getParameter(wrong(parameter)), 'ARGUMENT').slice(0, 1), ['name']);
      assert.deepEqual(
        about(() => model.getParameter('x'), 'OUT_OF_RANGE'),
        ['name', '"x"', 'one of parameterShapes()'],
      );
      assert.equal(model.tokenToId(model.idToToken(5)!), 5);
      assert.deepEqual([model.idToToken(-1), model.idToToken(2 ** 40), model.tokenToId('no such token')], [undefined, undefined, undefined]);
    });
  });

  describe('functions and classes', () => {
    it('functions and methods have their public names, and methods can be replaced', async () => {
      const own = await loadHere();
      assert.equal(own.softmax.name, 'softmax');
      assert.equal(own.MultiHeadAttention.name, 'MultiHeadAttention');
      const layer = new own.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
      assert.equal(layer.constructor, own.MultiHeadAttention);
      const { prototype } = own.MultiHeadAttention;
      const { value, writable, configurable, enumerable } = Object.getOwnPropertyDescriptor(prototype, 'forward')!;
      assert.deepEqual([(value as { name: string }).name, writable, configurable, enumerable], ['forward', true, true, false]);
      assert.isTrue(Object.getOwnPropertyDescriptor(prototype, 'parameterCount')!.configurable);
      assert.isTrue(Object.getOwnPropertyDescriptor(own.softmax, 'name')!.configurable);
      assert.notProperty(prototype, 'weight', 'a method of another class');
      assert.equal(Object.hasOwn(prototype, 'nearest'), false, 'a method of another class');
      assert.equal(assertThrows(() => layer.forward(wrong(1)), 'ARGUMENT').detail.op, 'MultiHeadAttention');
      assert.equal(assertThrows(() => layer.loadStateDict(wrong(1)), 'ARGUMENT').detail.op, 'loadStateDict');
      own.dispose();
    });

    it('errors share one class and have its name', () => {
      const error = assertThrows(() => attn.softmax(wrong(1)), 'ARGUMENT');
      assertIsError(error, 'ARGUMENT');
      assert.notInclude(Object.keys(error), 'name');
      assert.isTrue(Object.isFrozen(error.detail));
      const long = assertThrows(() => attn.softmax(x as Tensor, wrong('x'.repeat(5000))), 'ARGUMENT');
      assert.isBelow(long.message.length, 300);
    });

    it('errors contain short values unchanged, and of long ones the start and end in whole characters', () => {
      const of = (got: unknown) => new AttnError('ARGUMENT', 'x', { got }).detail.got;
      const half = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
      for (const [most, kept] of [
        [2048, (text: string) => new AttnError('ARGUMENT', text).message],
        [1000, (text: string) => of(text) as string],
        [200, (text: string) => (of([text]) as readonly string[])[0]!],
      ] as const) {
        assert.equal(kept('x'.repeat(most)), 'x'.repeat(most));
        // A cut may then split a pair on either half.
        for (const edge of ['-', '--', '---']) {
          const text = kept(`<${edge}${'😀'.repeat(most)}${edge}>`);
          assert.isTrue(text.startsWith(`<${edge}😀`) && text.endsWith(`😀${edge}>`), text);
          assert.notMatch(text, half);
          assert.isTrue(text.length <= most && text.length >= 0.9 * most, `${text.length} of ${most}`);
          assert.isTrue(/^[^ ]{60,} … [^ ]{30,}$/.test(text), text);
        }
      }
      assert.lengthOf(of(Array(1500).fill(7)) as unknown[], 1000);
      assert.deepEqual(of([5, null, 'a']), [5, null, 'a']);
      assert.equal(of(5), 5);
    });

    it('errors describe every kind of value, also unreadable ones', () => {
      const { proxy: dead, revoke } = Proxy.revocable({}, {});
      revoke();
      for (const [value, got] of [
        [0.5, '0.5'],
        [true, 'true'],
        ['x', '"x"'],
        ['x'.repeat(40), `"${'x'.repeat(40)}"`],
        ['x'.repeat(41), `"${'x'.repeat(40)}…"`],
        [7n, 'the BigInt 7'],
        [Symbol('x'), 'a symbol'],
        [() => 1, 'a function'],
        [null, 'null'],
        [{}, 'an object'],
        [[], 'an Array'],
        [new Map(), 'a Map'],
        [dead, 'an object that cannot be read'],
      ] as const)
        assert.equal(about(() => attn.softmax(x, wrong(value)), 'ARGUMENT')[1], got);
      assert.equal(about(() => attn.softmax(wrong(undefined)), 'ARGUMENT')[1], 'missing');
      const throwing = (thrown: unknown) => ({
        get data() {
          throw thrown;
        },
      });
      for (const [thrown, words] of [
        [new Error('own'), '(own)'],
        ['text', '(text)'],
        [dead, '(an exception that cannot be read)'],
      ] as const) {
        const error = assertThrows(() => attn.softmax(wrong(throwing(thrown))), 'ARGUMENT');
        assert.include(error.message, words);
        assert.equal(error.cause, thrown);
        assert.deepEqual([error.detail.argument, error.detail.expected], ['x', 'a value that can be read']);
      }
      const own = new AttnError('MASK', 'from inside of a getter');
      assert.equal(
        assertThrows(() => attn.softmax(wrong(throwing(own))), 'MASK'),
        own,
      );
    });

    it('errors have a cause if there is one, and no empty one', async () => {
      const cause = new TypeError('down');
      const fetching = (answer: () => Response) => ({ cache: 'none', fetch: () => Promise.resolve().then(answer) }) as const;
      const failing = () => {
        throw cause;
      };
      const absent = () => new Response(null, { status: 404 });
      assert.equal((await assertRejects(attn.loadModel('http://localhost/x/', fetching(failing)), 'NETWORK')).cause, cause);
      assert.notProperty(await assertRejects(attn.loadModel('http://localhost/x/', fetching(absent)), 'NETWORK'), 'cause');
    });

    it("an allocation that the engine refuses is MEMORY, with the bytes and the engine's message", () => {
      const refusal = new RangeError('Array buffer allocation failed');
      const table = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
      const { from } = Int32Array;
      Int32Array.from = () => {
        throw refusal;
      };
      try {
        const { detail, cause } = assertThrows(() => table.forward(BigInt64Array.of(1n, 2n)), 'MEMORY');
        assert.deepEqual({ ...detail }, { op: 'Embedding', got: 8 });
        assert.equal(cause, refusal);
      } finally {
        Int32Array.from = from;
      }
      table.dispose();
    });

    it('an aborted call has the error name AbortError, writable like that of every error', async () => {
      const { name, cause, ...rest } = Object.getOwnPropertyDescriptors(await assertRejects(load({ signal: AbortSignal.abort('why') }), 'ABORTED'));
      assert.deepEqual(name, { value: 'AbortError', configurable: true, enumerable: false, writable: true });
      assert.equal(cause?.value, 'why');
      assert.notProperty(rest, 'name');
      assert.deepEqual(Object.getOwnPropertyDescriptor(AttnError.prototype, 'name'), {
        value: 'AttnError',
        configurable: true,
        enumerable: false,
        writable: true,
      });
    });
  });
});
