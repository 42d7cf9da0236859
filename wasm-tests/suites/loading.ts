import { load, AttnError, type Attn, type ErrorCode, type LoadOptions } from 'attn';
import { assert } from 'chai';
import { detached } from '../support/catalogue.ts';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { withGlobal, withMember } from '../support/fake_caches.ts';
import { Generator } from '../support/generator.ts';
import { bytes, disposeSymbol, host, loadHere, settledHeap, url } from '../support/host.ts';
import { assertSameBits, random, tensor } from '../support/tensors.ts';

const g = new Generator(7);
const [q, k, v] = [random(g, [2, 9, 16]), random(g, [2, 11, 16]), random(g, [2, 11, 5])];
const run = (attn: Attn) => attn.scaledDotProductAttention(q, k, v).output;

const file = (variant: 'simd' | 'relaxed' = 'simd') => `wasm/attn-${variant}.wasm`;

/** Synchronous, because WebKitGTK 2.50 may never settle WebAssembly.compile() of a few bytes. */
const compiled = (few: Uint8Array<ArrayBuffer>) => new WebAssembly.Module(few);

describe('loading', () => {
  it('info has the version, variant, threads, reasons and heap', async () => {
    const attn = await loadHere();
    const { version, variant, threads, notes, heap } = attn.info;
    assert.match(version, /^\d+\.\d+\.\d+/);
    assert.equal(variant, host.variant);
    assert.equal(threads, host.threads);
    assert.isArray(notes);
    assert.isTrue(notes.every((note) => typeof note === 'string' && note.length > 10));
    assert.isAtLeast(heap.used, 0);
    assert.isAtLeast(heap.peak, heap.used);
    attn.dispose();
  });

  describe('sources of the module', () => {
    let expected: ReturnType<typeof run>;
    let wasm: Uint8Array<ArrayBuffer>;
    before(async () => {
      const attn = await load({ variant: 'simd' });
      expected = run(attn);
      attn.dispose();
      wasm = await bytes(file());
    });

    const sources: Record<string, () => Promise<LoadOptions['wasm']> | LoadOptions['wasm']> = {
      'a string': () => url(file()),
      'a URL': () => new URL(url(file())),
      'a Response': () => fetch(url(file())),
      'a Response of another content type': () => fetch(url('good/octets.wasm')),
      'a URL of another content type': () => url('good/octets.wasm'),
      'an ArrayBuffer': () => wasm.slice().buffer,
      'a Uint8Array': () => wasm.slice(),
      'a view into a larger buffer': () => {
        const larger = new Uint8Array(wasm.length + 20);
        larger.set(wasm, 13);
        return larger.subarray(13, 13 + wasm.length);
      },
      'a compiled Module': () => WebAssembly.compile(wasm),
    };
    for (const [name, source] of Object.entries(sources))
      it(name, async () => {
        const attn = await load({ wasm: await source() });
        assert.equal(attn.info.variant, 'simd', 'the module itself states its variant');
        assert.equal(attn.info.threads, 1);
        assertSameBits(run(attn), expected);
        attn.dispose();
      });

    it('the given bytes stay with the caller', async () => {
      const mine = wasm.slice();
      (await load({ wasm: mine })).dispose();
      assert.deepEqual(mine, wasm);
    });

    it('one Module serves several independent instances', async () => {
      const module = await WebAssembly.compile(wasm);
      const [a, b] = await Promise.all([load({ wasm: module }), load({ wasm: module })]);
      const mha = new a.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
      assert.isAbove(a.info.heap.used, b.info.heap.used, 'each has its own heap');
      a.dispose();
      assertSameBits(run(b), expected, 'the other instance is unaffected');
      assertThrows(() => mha.forward(tensor([1, 1, 8], () => 1)), 'DISPOSED');
      b.dispose();
    });
  });

  describe('refused modules', () => {
    const refusals: readonly (readonly [string, string, readonly ('FORMAT' | 'NETWORK')[], readonly (string | RegExp)[]])[] = [
      ['HTML', 'bad/page.wasm', ['FORMAT'], ['HTML']],
      ['HTML sent as application/wasm', 'bad/mistyped.wasm', ['FORMAT'], ['HTML']],
      ['a Git LFS pointer', 'bad/pointer.wasm', ['FORMAT'], ['LFS']],
      ['an empty file', 'bad/empty.wasm', ['FORMAT'], []],
      ['half a file', 'bad/half.wasm', ['FORMAT'], [/truncated|cut off/]],
      ['an unrelated module', 'bad/other-module.wasm', ['FORMAT'], []],
      ['an interrupted connection', 'bad/cut.wasm', ['NETWORK'], []],
      ['a missing file', 'bad/none.wasm', ['NETWORK'], ['404']],
      ['a forbidden file', 'bad/forbidden.wasm', ['NETWORK'], ['403']],
    ];
    for (const [name, path, codes, words] of refusals)
      it(`${name}: by URL and as a Response`, async () => {
        await assertRejects(load({ wasm: url(path) }), codes, [...words, path.split('/')[1]]);
        await assertRejects(async () => load({ wasm: await fetch(url(path)) }), codes, [...words, path.split('/')[1]]);
      });

    it('an unreachable server', async () => {
      await assertRejects(load({ wasm: 'http://127.0.0.1:9/attn.wasm' }), 'NETWORK');
    });

    const text = (s: string) => new TextEncoder().encode(s);
    const wrong: Record<string, readonly [unknown, readonly ('FORMAT' | 'ARGUMENT')[], readonly string[]]> = {
      'HTML bytes': [text('  <!doctype html><title>x</title>'), ['FORMAT'], ['HTML']],
      'LFS bytes': [text('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n').buffer, ['FORMAT'], ['LFS']],
      'no bytes': [new Uint8Array(0), ['FORMAT'], []],
      'the magic number alone': [new Uint8Array([0, 0x61, 0x73, 0x6d]), ['FORMAT'], []],
      'a number': [7, ['ARGUMENT'], ['wasm']],
      'a plain object': [{}, ['ARGUMENT'], ['wasm']],
      null: [null, ['ARGUMENT'], ['wasm']],
      'an object that imitates a Module': [{ [Symbol.toStringTag]: 'WebAssembly.Module' }, ['ARGUMENT'], ['WebAssembly.Module']],
    };
    for (const [name, [wasm, codes, words]] of Object.entries(wrong))
      it(`wasm: ${name}`, () => assertRejects(load({ wasm: wasm as never }), codes, words).then(() => {}));

    describe('refused bytes', () => {
      const magic = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
      const leb = (n: number): number[] => (n < 0x80 ? [n] : [(n & 0x7f) | 0x80, ...leb(n >>> 7)]);
      const section = (id: number, contents: readonly number[]) => [id, ...leb(contents.length), ...contents];
      const named = (name: string, contents: string) => [...leb(text(name).length), ...text(name), ...text(contents)];
      const custom = (name: string, contents: string) => section(0, named(name, contents));
      const module = (...sections: readonly (readonly number[])[]) => Uint8Array.from([...magic, ...sections.flat()]);
      const gotFor = async (bytes: Uint8Array<ArrayBuffer>) => {
        const { detail, message } = await assertRejects(load({ wasm: bytes }), 'FORMAT');
        assert.include(message, String(detail.got));
        assert.equal(`${String(detail.op)} ${String(detail.argument)}`, 'load wasm');
        return String(detail.got);
      };

      it('HTML pages, LFS pointers and compressed data are recognised', async () => {
        const pages = ['<!doctype html>', '<!DOCTYPE HTML>', '<!-- a -->', '<html>', '<HEAD>', '<body class>', '<?xml version="1.0"?>', '<html>'];
        for (const page of pages) for (const before of ['', '\ufeff', ' \n\t', '\ufeff\r\n']) assert.equal(await gotFor(text(before + page)), 'HTML');
        assert.match(await gotFor(text('version https://git-lfs.github.com/spec/v1')), /^a Git LFS pointer/);
        assert.match(await gotFor(Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0)), /^gzip data/);
        for (const other of ['a page: <html>', '<title>HTML</title>', 'a version https://git-lfs.github.com/spec/v1', '?\u001f\b are bytes'])
          assert.match(await gotFor(text(other)), /^bytes that start with/, other);
        assert.match(await gotFor(Uint8Array.of(0x1f, 0x8b, 0, 8, 0, 0, 0, 0)), /^bytes that start with 1f 8b 00 08/);
      });

      it('too few bytes, and other bytes, are reported by their start', async () => {
        for (const length of [0, 1, 7]) assert.equal(await gotFor(module().slice(0, length)), `${length} bytes`);
        for (let at = 0; at < 5; at++) {
          const other = module();
          other[at] = 7;
          const start = [...magic].map((byte, i) => (i === at ? '07' : byte.toString(16).padStart(2, '0'))).join(' ');
          assert.equal(await gotFor(other), `bytes that start with ${start}`);
        }
      });

      it('modules of other programs', async () => {
        for (const other of [
          module(),
          module(section(1, [])),
          module(custom('attm', 'simd')),
          module(custom('attn.', 'simd')),
          module(custom('producers', 'simd'), custom('name', 'attn')),
          module(section(0, [8, ...text('attn')]), custom('x', 'simd')),
          module(section(1, named('attn', 'simd'))),
        ])
          assert.match(await gotFor(other), /^another or a truncated module .* section "attn"/);
      });

      it('builds of other versions', async () => {
        for (const name of ['sse2', 'simd+train', 'SIMD', ''])
          assert.equal(await gotFor(module(custom('attn', name))), `the build "${name}" of another version of attn`);
      });

      it('truncated modules are reported with the truncated section', async () => {
        const long = custom('x', 'y'.repeat(300));
        const cases: readonly (readonly [Uint8Array<ArrayBuffer>, number])[] = [
          [module([0]), 8],
          [module([0, 1]), 8],
          [module([0, 0x80]), 8],
          [module([0, 0x80, 0x80, 0x80, 0x80, 0x80, 0]), 8],
          [module(long, custom('attn', 'simd').slice(0, -1)), 8 + long.length],
          [module(long.slice(0, -1)), 8],
          [module(custom('attn', 'simd'), [10, 0xff, 0xff, 3, 0]), 8 + custom('attn', 'simd').length],
        ];
        for (const [bytes, at] of cases)
          assert.equal(await gotFor(bytes), `a truncated module (${bytes.length} bytes, the section at ${at} is longer)`);
      });

      it('builds of attn load as bytes and compiled, wherever their custom section is', async () => {
        for (const build of ['simd', 'relaxed', 'simd-threads', 'relaxed-threads']) {
          const variant = build.startsWith('simd') ? 'relaxed' : 'simd';
          const own = custom('attn', build);
          const lengthInTwoBytes = section(0, [0x84, 0, ...text('attn'), ...text(build)]);
          const before = custom('y', 'z'.repeat(20000));
          for (const bytes of [module(own), module(custom('x', ''), own), module(before, own, custom('attn2', 'x')), module(lengthInTwoBytes)])
            for (const wasm of [bytes, compiled(bytes)])
              await withMember(
                WebAssembly,
                'compile',
                async (few: Uint8Array<ArrayBuffer>) => compiled(few),
                () => assertRejects(load({ wasm, variant }), 'CONFIG', ['variant', `is the ${build} build`]),
              );
        }
        for (const other of [custom('attn', 'sse2'), custom('attn', ''), custom('attn', 'simd '), custom('x', 'simd')]) {
          const { detail } = await assertRejects(load({ wasm: compiled(module(other)) }), 'FORMAT', ['without a section "attn"']);
          assert.deepEqual({ ...detail }, { op: 'load', argument: 'wasm' });
        }
        const { detail, cause } = await assertRejects(load({ wasm: { [Symbol.toStringTag]: 'WebAssembly.Module' } as never }), 'ARGUMENT');
        assert.deepEqual({ ...detail }, { op: 'load', argument: 'wasm' });
        assert.instanceOf(cause, TypeError);
      });
    });

    it('detached bytes and an unreadable address: the error names the argument', async () => {
      const gone = detached(new Uint8Array(9));
      for (const wasm of [gone, gone.buffer]) {
        const { detail } = await assertRejects(load({ wasm }), 'DETACHED');
        assert.deepEqual([detail.op, detail.argument], ['load', 'wasm']);
      }
      const mine = new RangeError('mine');
      const odd = new URL(url(file()));
      odd.toString = () => {
        throw mine;
      };
      const { detail, cause } = await assertRejects(load({ wasm: odd }), 'ARGUMENT', ['mine']);
      assert.deepEqual([detail.op, detail.argument, cause], ['load', 'options', mine]);
    });

    it('an unrelated compiled module', async () => {
      await assertRejects(load({ wasm: compiled(new Uint8Array([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0])) }), 'FORMAT');
    });

    const changed = (all: Uint8Array<ArrayBuffer>, section: number, change: (contents: Uint8Array) => void) => {
      const copy = all.slice();
      for (let at = 8; at < copy.length;) {
        const id = copy[at++]!;
        let size = 0;
        for (let shift = 0; ; shift += 7) {
          const byte = copy[at++]!;
          size += (byte & 0x7f) * 2 ** shift;
          if (byte < 0x80) break;
        }
        if (id === section) {
          change(copy.subarray(at, at + size));
          return copy;
        }
        at += size;
      }
      throw new Error(`no section ${section}`);
    };

    it('a module with damaged code, as bytes and as a Response compiled while streaming', async () => {
      const [typeSection, allOnes] = [1, 0xff];
      const damaged = changed(await bytes(file()), typeSection, (contents) => contents.fill(allOnes));
      await assertRejects(load({ wasm: damaged }), 'FORMAT', ['damaged']);
      await assertRejects(load({ wasm: new Response(damaged, { headers: { 'content-type': 'application/wasm' } }) }), 'FORMAT', ['damaged']);
      (await loadHere()).dispose();
    });

    it('a module of another version, with imports that the glue does not provide', async () => {
      const importSection = 2;
      const other = changed(await bytes(file()), importSection, (contents) => {
        // The import count, then the first import's module name and field name, each with its length.
        const name = 1 + 1 + contents[1]! + 1;
        contents[name] = '?'.charCodeAt(0);
      });
      await assertRejects(load({ wasm: other }), 'FORMAT', ['another version']);
      await assertRejects(load({ wasm: await WebAssembly.compile(other) }), 'FORMAT', ['another version']);
    });

    if (host.canThread)
      it('threads with a build without threads: one thread, and a note with the reason', async () => {
        const attn = await load({ wasm: await bytes(file()), threads: 2 });
        assert.equal(attn.info.threads, 1);
        assert.isTrue(attn.info.notes.includes('one thread instead of 2: the given wasm is the simd build'), attn.info.notes.join());
        attn.dispose();
      });

    it('bytes truncated at many places', async () => {
      const all = await bytes(file());
      for (const part of [0.01, 0.3, 0.9, 0.999]) await assertRejects(load({ wasm: all.slice(0, Math.floor(all.length * part)) }), 'FORMAT');
    });

    // A wrong type is ARGUMENT; the right type out of range is CONFIG.
    const outOfRange: Record<string, unknown> = {
      "variant: 'sse2'": { variant: 'sse2' },
      'threads: 0': { threads: 0 },
      'maximumMemory: -1': { maximumMemory: -1 },
    };
    for (const [name, value] of Object.entries(outOfRange))
      it(`${name} is CONFIG`, () => assertRejects(load(value as LoadOptions), 'CONFIG', [name.split(':')[0]]).then(() => {}));

    const options: Record<string, unknown> = {
      'variant: 1': { variant: 1 },
      'threads: 1.5': { threads: 1.5 },
      "threads: 'two'": { threads: 'two' },
      'threads: NaN': { threads: NaN },
      "maximumMemory: '1 GB'": { maximumMemory: '1 GB' },
      'onProgress: 3': { onProgress: 3 },
      'signal: {}': { signal: {} },
      'a signal that cannot be left': { signal: { aborted: false, addEventListener: () => {} } },
      'options: 5': 5,
    };
    for (const [name, value] of Object.entries(options))
      it(`${name} is ARGUMENT`, () => assertRejects(load(value as LoadOptions), 'ARGUMENT').then(() => {}));
  });

  describe('a Response made by the caller', () => {
    type Progress = Parameters<NonNullable<LoadOptions['onProgress']>>[0];
    let wasm: Uint8Array<ArrayBuffer>;
    before(async () => void (wasm = await bytes(file())));

    /** Streams the pieces, then ends or does what `after` does; also reports whether the stream was cancelled. */
    function streamed(pieces: readonly Uint8Array[], after = (stream: ReadableStreamDefaultController<Uint8Array>) => stream.close()) {
      const state = { given: 0, canceled: false };
      const body = new ReadableStream<Uint8Array>({
        pull(stream) {
          const piece = pieces[state.given];
          if (!piece) return void after(stream);
          state.given++;
          stream.enqueue(piece);
        },
        cancel() {
          state.canceled = true;
        },
      });
      return { body, state };
    }
    const inPieces = (sizes: readonly number[]) => {
      let at = 0;
      const pieces = sizes.map((size) => wasm.slice(at, (at += size)));
      return [...pieces, wasm.slice(at)];
    };

    it('progress of a Response in chunks, with a length, without, and compressed', async () => {
      const size = wasm.length;
      for (const [headers, total] of [
        [{ 'content-length': String(size) }, size],
        [{}, undefined],
        [{ 'content-length': '0' }, undefined],
        [{ 'content-length': 'long' }, undefined],
        [{ 'content-length': '5', 'content-encoding': 'br' }, undefined],
      ] as const) {
        const seen: Progress[] = [];
        const { body } = streamed(inPieces([1, 1000, 7]));
        const attn = await load({ wasm: new Response(body, { headers }), onProgress: (p) => seen.push(p) });
        assert.isTrue(run(attn).data.every(Number.isFinite));
        attn.dispose();
        assert.deepEqual(
          seen.filter(({ phase }) => phase === 'download'),
          [0, 1, 1001, 1008, size].map((loaded) => (total === undefined ? { phase: 'download', loaded } : { phase: 'download', loaded, total })),
        );
        assert.deepEqual(
          seen.filter(({ phase }) => phase !== 'download'),
          [
            { phase: 'compile', loaded: size, total: size },
            { phase: 'start', loaded: size, total: size },
          ],
        );
      }
    });

    it('a Response with an error status is cancelled, and its status reported', async () => {
      const { body, state } = streamed([wasm]);
      const error = await assertRejects(load({ wasm: new Response(body, { status: 503, statusText: 'Busy' }) }), 'NETWORK', [
        /^load: the given Response answered 503 Busy$/,
      ]);
      assert.deepEqual({ ...error.detail }, { op: 'load', argument: 'wasm', url: '', status: 503 });
      assert.isTrue(state.canceled);
      await assertRejects(load({ wasm: new Response(null, { status: 404 }) }), 'NETWORK', [/^load: the given Response answered 404$/]);
    });

    it('a Response without a body, already read, or without WebAssembly', async () => {
      await assertRejects(load({ wasm: new Response(null) }), 'FORMAT', ['the given Response returned 0 bytes']);
      await assertRejects(load({ wasm: new Response('<html>') }), 'FORMAT', ['the given Response returned HTML']);
      for (const type of ['application/wasm', 'text/plain']) {
        const read = new Response(wasm, { headers: { 'content-type': type } });
        await read.arrayBuffer();
        const error = await assertRejects(load({ wasm: read }), 'ARGUMENT', ['has been read', 'a fresh Response']);
        assert.deepEqual([error.detail.op, error.detail.argument], ['load', 'wasm']);
      }
    });

    it('a Response that sends nothing: an abort takes effect at once and keeps its reason', async () => {
      for (const isBefore of [true, false]) {
        const mine = new RangeError('mine');
        const controller = new AbortController();
        const abort = () => controller.abort(mine);
        if (isBefore) abort();
        else setTimeout(abort, 20);
        const wasm = new Response(new ReadableStream({ pull: () => new Promise<void>(() => {}) }));
        const error = await assertRejects(load({ wasm, signal: controller.signal }), 'ABORTED', [/^load: aborted/]);
        assert.deepEqual({ ...error.detail }, { op: 'load' });
        assert.equal(error.cause, mine);
      }
    });

    it('an interrupted Response keeps the cause', async () => {
      const mine = new RangeError('mine');
      const { body } = streamed(inPieces([5]).slice(0, 1), (stream) => stream.error(mine));
      const error = await assertRejects(load({ wasm: new Response(body) }), 'NETWORK', ['the given Response broke off', 'mine']);
      assert.equal(error.cause, mine);
      assert.deepEqual({ ...error.detail }, { op: 'load', argument: 'wasm', url: '' });
    });

    it('a Response larger than any build is cancelled early', async () => {
      const piece = new Uint8Array(2 ** 22);
      const { body, state } = streamed([], (stream) => (state.given++, void stream.enqueue(piece)));
      const { detail } = await assertRejects(load({ wasm: new Response(body) }), 'FORMAT', ['more than 67108864 bytes']);
      assert.deepEqual({ ...detail }, { op: 'load', argument: 'wasm' });
      assert.isAtLeast(state.given, 17);
      assert.isAtMost(state.given, 20);
      assert.isTrue(state.canceled);
    });
  });

  describe('a host with missing features', () => {
    let wasm: Uint8Array<ArrayBuffer>;
    before(async () => void (wasm = await bytes(file())));
    const given = (more: LoadOptions = {}) => load({ wasm: wasm.slice(), ...more });

    /** The facts of an error other than its help. */
    const detailOf = async (work: Promise<unknown>, code: Parameters<typeof assertRejects>[1], words: readonly string[] = []) => {
      const { detail } = await assertRejects(work, code, words);
      return Object.fromEntries(Object.entries(detail).filter(([name]) => name !== 'help'));
    };

    it('missing WebAssembly, or a missing feature of it, is ENVIRONMENT with its name', async () => {
      const lacking = (got: string) => ({ op: 'load', expected: 'WebAssembly with SIMD and exceptions', got });
      for (const options of [{ variant: 'simd' }, { wasm: wasm.slice() }] as const) {
        for (const none of [undefined, {}])
          await withGlobal('WebAssembly', none, async () =>
            assert.deepEqual(await detailOf(load(options), 'ENVIRONMENT'), lacking('has no WebAssembly')),
          );
        for (const [nth, got] of ['has no WebAssembly SIMD', 'has no WebAssembly exceptions'].entries()) {
          let calls = 0;
          await withMember(
            WebAssembly,
            'validate',
            () => calls++ !== nth,
            async () => assert.deepEqual(await detailOf(load(options), 'ENVIRONMENT'), lacking(got)),
          );
        }
      }
      const module = await WebAssembly.compile(wasm);
      await withMember(
        WebAssembly,
        'validate',
        () => false,
        async () => (await load({ wasm: module })).dispose(),
      );
    });

    it('compilation blocked by a policy is ENVIRONMENT with the needed directive; bytes that fail to compile are FORMAT', async () => {
      const refusal = new WebAssembly.CompileError('blocked');
      const about: object = { op: 'load', argument: 'wasm', build: 'simd' };
      const refused = async (code: ErrorCode, words: readonly string[]) => {
        const error = await assertRejects(given(), code, words);
        assert.deepInclude({ ...error.detail }, about);
        assert.equal(error.cause, refusal);
      };
      // Like WebKitGTK 2.50, whose promise may never settle for a few bytes.
      const compile = ({ length }: Uint8Array<ArrayBuffer>) => (length > 1000 ? Promise.reject(refusal) : new Promise(() => {}));
      await withMember(WebAssembly, 'compile', compile, async () => {
        await refused('FORMAT', ['damaged', 'blocked']);
        const Module = function () {
          throw new WebAssembly.CompileError('by a policy');
        };
        await withMember(WebAssembly, 'Module', Module, () => refused('ENVIRONMENT', ['by a policy', "'wasm-unsafe-eval'"]));
      });
    });

    it('errors of WebAssembly.instantiate map to codes by their class', async () => {
      for (const [thrown, code, detail] of [
        [new RangeError('no room'), 'MEMORY', { op: 'load' }],
        [new WebAssembly.LinkError('no room'), 'FORMAT', { op: 'load', argument: 'wasm' }],
        [new TypeError('no room'), 'ENVIRONMENT', { op: 'load' }],
      ] as const)
        await withMember(
          WebAssembly,
          'instantiate',
          () => Promise.reject(thrown),
          async () => {
            const error = await assertRejects(given(), code, ['no room']);
            assert.deepEqual({ ...error.detail } as object, detail);
            assert.equal(error.cause, thrown);
          },
        );
    });

    it('no memory is MEMORY; a shared maximum is halved until it works, then one thread is used, unless the size was given', async () => {
      const { Memory } = WebAssembly;
      const asked: WebAssembly.MemoryDescriptor[] = [];
      const refusing = (isRefused: (descriptor: WebAssembly.MemoryDescriptor) => unknown) =>
        function (descriptor: WebAssembly.MemoryDescriptor) {
          asked.push(descriptor);
          if (isRefused(descriptor)) throw new RangeError('no room');
          return new Memory(descriptor);
        };
      const maxima = () => asked.splice(0).map(({ shared, maximum }) => [shared ?? false, maximum]);
      await withMember(
        WebAssembly,
        'Memory',
        refusing(() => true),
        async () => {
          const error = await assertRejects(given(), 'MEMORY', ['2097152 to 4294967296 bytes']);
          assert.deepEqual({ ...error.detail }, { op: 'load' });
          assert.instanceOf(error.cause, RangeError);
          await assertRejects(given({ maximumMemory: 2 ** 28 + 65535 }), 'MEMORY', ['2097152 to 268435456 bytes']);
          assert.deepEqual(maxima(), [
            [false, 65536],
            [false, 4096],
          ]);
        },
      );
      if (!host.canThread) return;
      const halves = [65536, 32768, 16384, 8192, 4096];
      await withMember(
        WebAssembly,
        'Memory',
        refusing(({ maximum, shared }) => shared && maximum! > 4096),
        async () => {
          const attn = await load({ variant: 'simd', threads: 2 });
          assert.equal(attn.info.threads, 2);
          assert.deepEqual(
            maxima(),
            halves.map((maximum) => [true, maximum]),
          );
          attn.dispose();
        },
      );
      await withMember(
        WebAssembly,
        'Memory',
        refusing(({ shared }) => shared),
        async () => {
          for (const [maximumMemory, shared] of [
            [undefined, halves],
            [2 ** 29, [8192]],
          ] as const) {
            const attn = await load({ variant: 'simd', threads: 2, ...(maximumMemory && { maximumMemory }) });
            assert.equal(attn.info.threads, 1);
            assert.match(attn.info.notes.join('\n'), /^one thread instead of 2: a memory of 2097152 to /m);
            assert.deepEqual(maxima(), [...shared.map((maximum) => [true, maximum]), [false, shared[0]]]);
            attn.dispose();
          }
        },
      );
    });

    it('a result too large to allocate is MEMORY with its bytes, and the instance stays usable', async () => {
      const attn = await given();
      const used = settledHeap(attn);
      const { slice } = Float32Array.prototype;
      const refusal = new RangeError('no room');
      Float32Array.prototype.slice = () => {
        throw refusal;
      };
      try {
        const error = assertThrows(() => attn.softmax(q), 'MEMORY', [String(4 * q.data.length)]);
        assert.deepEqual([error.detail.got, error.cause], [4 * q.data.length, refusal]);
      } finally {
        Float32Array.prototype.slice = slice;
      }
      assert.isTrue(run(attn).data.every(Number.isFinite));
      assert.equal(attn.info.heap.used, used);
      attn.dispose();
    });

    it('an engine failure within a call is INTERNAL, and so are all later calls, because the heap may be inconsistent', async () => {
      const mine = new Error('mine');
      let fails = false;
      const { instantiate } = WebAssembly;
      const wrapped = (module: WebAssembly.Module, imports: WebAssembly.Imports) => {
        const all = Object.entries(imports).map(([name, members]) => {
          const each = Object.entries(members).map(([member, value]) => {
            if (typeof value !== 'function') return [member, value] as const;
            const called = (...args: unknown[]): unknown => {
              if (fails) throw mine;
              return Reflect.apply(value, undefined, args) as unknown;
            };
            return [member, called] as const;
          });
          return [name, Object.fromEntries(each)] as const;
        });
        return instantiate(module, Object.fromEntries(all));
      };
      const attn = await withMember(WebAssembly, 'instantiate', wrapped, () => given());
      const layer = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
      fails = true;
      const first = assertThrows(() => attn.softmax(tensor([2 ** 23], new Float32Array(2 ** 23))), 'INTERNAL', ['mine']);
      assert.deepEqual([{ ...first.detail }, first.cause], [{ op: 'softmax' }, mine]);
      fails = false;
      for (const [op, call] of [
        ['softmax', () => attn.softmax(q)],
        ['Embedding', () => layer.forward([1])],
        ['info', () => attn.info],
      ] as const) {
        const error = assertThrows(call, 'INTERNAL', ['has stopped', 'mine', 'Call load() for a new one.']);
        assert.deepEqual([error.detail.op, error.cause], [op, first]);
      }
      layer.dispose();
      attn.dispose();
      assert.deepEqual({ ...assertThrows(() => attn.softmax(q), 'DISPOSED').detail }, { op: 'softmax' });
    });

    it('streaming compilation is used if the content type and the engine allow it', async () => {
      const { compileStreaming } = WebAssembly;
      let compiled = 0;
      const counting = (response: Response) => (++compiled, compileStreaming(response));
      const loaded = async (type: string | undefined) =>
        (await load({ wasm: new Response(wasm, { headers: type === undefined ? {} : { 'content-type': type } }) })).dispose();
      const asked: Record<string, number> = {};
      const phases: string[] = [];
      const typed = new Response(wasm, { headers: { 'content-type': 'application/wasm' } });
      (await load({ wasm: typed, onProgress: ({ phase, loaded }) => phases.push(`${phase} ${loaded}`) })).dispose();
      assert.deepEqual(phases.slice(-2), [`compile ${wasm.length}`, `start ${wasm.length}`]);
      for (const type of ['application/wasm', 'Application/WASM', 'application/wasm; a=b', 'application/wasms', 'x/application/wasm', 'text/plain']) {
        compiled = 0;
        await withMember(WebAssembly, 'compileStreaming', counting, () => loaded(type));
        asked[type] = compiled;
      }
      assert.deepEqual(Object.values(asked), [1, 0, 0, 0, 0, 0]);
      compiled = 0;
      await withMember(WebAssembly, 'compileStreaming', counting, () => loaded(undefined));
      await withMember(WebAssembly, 'compileStreaming', undefined, () => loaded('application/wasm'));
      const bad = new Response('no', { status: 500, headers: { 'content-type': 'application/wasm' } });
      await withMember(WebAssembly, 'compileStreaming', counting, () => assertRejects(load({ wasm: bad }), 'NETWORK', ['500']));
      assert.equal(compiled, 0);
    });

    it("fetch errors: no fetch, a failed request, and the server's status", async () => {
      await withGlobal('fetch', undefined, async () =>
        assert.deepEqual(await detailOf(load({ wasm: url(file()) }), 'ENVIRONMENT', ['Pass a module or bytes as wasm']), { op: 'load' }),
      );
      const mine = new TypeError('down');
      const asked: RequestInit[] = [];
      const controller = new AbortController();
      const failing = (_: unknown, init: RequestInit) => (asked.push(init), Promise.reject(mine));
      await withGlobal('fetch', failing, async () => {
        const location = 'http://localhost/attn.wasm';
        const error = await assertRejects(load({ wasm: location }), 'NETWORK', ['down', location]);
        assert.deepEqual({ ...error.detail }, { op: 'load', argument: 'wasm', url: location });
        assert.equal(error.cause, mine);
      });
      const hanging = (_: unknown, init: RequestInit) => (asked.push(init), controller.abort(mine), new Promise(() => {}));
      await withGlobal('fetch', hanging, async () => {
        const error = await assertRejects(load({ wasm: url(file()), signal: controller.signal }), 'ABORTED');
        assert.equal(error.cause, mine);
      });
      assert.deepEqual(
        asked.map(({ credentials, signal }) => [credentials, signal!.aborted]),
        [
          ['same-origin', false],
          ['same-origin', true],
        ],
      );
    });
  });

  describe('variants', () => {
    it('a variant other than the fastest has a note with the reason', async () => {
      const notesOf = async (options: LoadOptions) => {
        const attn = await load(options);
        const { notes, variant } = attn.info;
        attn.dispose();
        assert.match(notes.at(-1)!, variant === 'simd' ? /^int8: 16-bit pairs$/ : /^int8: (16-bit pairs|relaxed dot, (un)?signed)$/);
        return notes.slice(0, -1);
      };
      assert.deepEqual(await notesOf({ variant: 'simd' }), ['simd: chosen by variant']);
      assert.deepEqual(await notesOf({ wasm: await bytes(file()) }), ['simd: the given wasm is that build']);
      const [note, ...others] = await notesOf({});
      assert.isEmpty(others);
      if (host.takesRelaxed) assert.isUndefined(note);
      else assert.match(note!, /^simd: this engine does not accept relaxed SIMD( unless it is started as node --experimental-wasm-relaxed-simd)?$/);
      const { process } = globalThis as { process?: { versions: { v8?: string } } };
      if (host.engine === 'node' && process?.versions.v8?.startsWith('11.3') && !host.takesRelaxed) assert.include(note!, 'unless');
      if (host.takesRelaxed) assert.deepEqual(await notesOf({ wasm: await bytes(file('relaxed')) }), []);
    });

    it("'auto' takes relaxed if the engine supports it, and has a note otherwise", async () => {
      const attn = await load();
      assert.equal(attn.info.variant, host.takesRelaxed ? 'relaxed' : 'simd');
      if (!host.takesRelaxed) assert.match(attn.info.notes.join('\n'), /relaxed/i);
      attn.dispose();
    });

    it("'relaxed' is ENVIRONMENT if the engine does not support it", async () => {
      if (host.takesRelaxed) {
        const attn = await load({ variant: 'relaxed' });
        assert.equal(attn.info.variant, 'relaxed');
        attn.dispose();
        const given = await load({ wasm: await bytes(file('relaxed')) });
        assert.equal(given.info.variant, 'relaxed', 'the given bytes state their variant');
        given.dispose();
      } else {
        const { detail } = await assertRejects(load({ variant: 'relaxed' }), 'ENVIRONMENT', ['relaxed']);
        assert.deepEqual({ ...detail }, { op: 'load', argument: 'variant' });
        await assertRejects(async () => load({ wasm: await bytes(file('relaxed')) }), 'ENVIRONMENT', ['relaxed']);
        await assertRejects(load({ wasm: url(file('relaxed')) }), 'ENVIRONMENT', ['relaxed']);
      }
    });

    it('given bytes of another variant than requested are refused with both names', async () => {
      const { detail } = await assertRejects(async () => load({ wasm: await bytes(file('simd')), variant: 'relaxed' }), 'CONFIG', [
        'simd',
        'relaxed',
      ]);
      assert.deepEqual([detail.op, detail.argument], ['load', 'variant']);
    });
  });

  describe('threads', () => {
    it('the requested number if possible, else one and the reason', async () => {
      const attn = await loadHere({ threads: 2, maximumMemory: 2 ** 28 });
      if (host.canThread) assert.equal(attn.info.threads, 2);
      else {
        assert.equal(attn.info.threads, 1);
        assert.match(attn.info.notes.join('\n'), /isolat|worker|main thread|this build/i);
      }
      attn.dispose();
    });

    it("'auto' is between one and four", async () => {
      const attn = await loadHere({ threads: 'auto', maximumMemory: 2 ** 28 });
      assert.isAtLeast(attn.info.threads, 1);
      assert.isAtMost(attn.info.threads, 4);
      assert.equal(attn.info.threads === 1, /^one thread/m.test(attn.info.notes.join('\n')));
      attn.dispose();
    });
  });

  describe('abort and progress', () => {
    it('a signal that is aborted before loading', async () => {
      await assertRejects(load({ signal: AbortSignal.abort() }), 'ABORTED');
      await assertRejects(load({ wasm: url(file()), signal: AbortSignal.abort(new Error('mine')) }), 'ABORTED');
    });

    it('a signal that is aborted during a download', async () => {
      const controller = new AbortController();
      const started = Date.now();
      const promise = load({ wasm: url('good/slow.wasm'), signal: controller.signal });
      setTimeout(() => controller.abort(), 60);
      await assertRejects(promise, 'ABORTED');
      assert.isBelow(Date.now() - started, 5000);
    });

    it('an abort in a progress callback of any phase stops loading in that phase', async () => {
      const seen: unknown[] = [];
      const wasm = await bytes(file());
      const size = wasm.length;
      for (const [source, phases] of [
        [wasm, ['compile', 'start']],
        [await WebAssembly.compile(wasm), ['start']],
        [new Response(wasm), ['download', 'compile', 'start']],
      ] as const) {
        (await load({ wasm: source instanceof Response ? source.clone() : source, onProgress: (p) => seen.push(p) })).dispose();
        const last = { phase: 'start', loaded: phases.length === 1 ? 0 : size };
        assert.deepEqual(seen.splice(0).at(-1), { ...last, total: last.loaded });
        for (const phase of phases) {
          const controller = new AbortController();
          const onProgress = (p: { phase: string }) => {
            seen.push(p.phase);
            if (p.phase === phase) controller.abort('why');
          };
          const given = source instanceof Response ? source.clone() : source;
          const error = await assertRejects(load({ wasm: given, signal: controller.signal, onProgress }), 'ABORTED');
          assert.deepEqual([{ ...error.detail }, error.cause, seen.splice(0).at(-1)], [{ op: 'load' }, 'why', phase]);
        }
      }
    });

    it('an abort after loading has no effect', async () => {
      const controller = new AbortController();
      const attn = await load({ variant: host.variant, signal: controller.signal });
      controller.abort();
      assert.isTrue(run(attn).data.every(Number.isFinite));
      attn.dispose();
    });

    it('progress counts bytes up to the total, by phase', async () => {
      const seen: { phase: string; loaded: number; total?: number }[] = [];
      const attn = await load({ wasm: url(file()), onProgress: (p) => seen.push({ ...p }) });
      assert.isNotEmpty(seen);
      const size = (await bytes(file())).length;
      const byPhase = new Map<string, number>();
      for (const { phase, loaded, total } of seen) {
        assert.isString(phase);
        assert.isAtLeast(loaded, byPhase.get(phase) ?? 0, 'never decreases');
        byPhase.set(phase, loaded);
        if (total !== undefined) assert.isAtMost(loaded, total);
      }
      assert.include(
        seen.map((p) => p.loaded),
        size,
        'the whole file was counted',
      );
      attn.dispose();
    });

    it('an error thrown by onProgress stops loading and becomes the cause', async () => {
      const mine = new RangeError('mine');
      const error = await assertRejects(
        load({
          wasm: url(file()),
          onProgress: () => {
            throw mine;
          },
        }),
        'ARGUMENT',
        ['onProgress', 'mine'],
      );
      assert.equal(error.cause, mine);
      assert.deepEqual({ ...error.detail }, { op: 'load', argument: 'onProgress' });
    });

    if (host.canThread)
      it('a load that the caller stops is not retried with one thread', async () => {
        const mine = new RangeError('mine');
        const thrown: object[] = [];
        const throwing = (p: object) => {
          thrown.push(p);
          throw mine;
        };
        const options = { variant: 'simd', threads: 2, maximumMemory: 2 ** 28 } as const;
        assert.equal((await assertRejects(load({ ...options, onProgress: throwing }), 'ARGUMENT')).cause, mine);
        const controller = new AbortController();
        const seen: string[] = [];
        const aborting = (p: { phase: string }) => {
          seen.push(p.phase);
          if (p.phase === 'start') controller.abort(mine);
        };
        assert.equal((await assertRejects(load({ ...options, signal: controller.signal, onProgress: aborting }), 'ABORTED')).cause, mine);
        // A retry would start at once, so it would have begun by now.
        (await load({ variant: 'simd' })).dispose();
        assert.lengthOf(thrown, 1);
        assert.equal(seen.filter((phase) => phase === 'start').length, 1);
        assert.equal(seen.at(-1), 'start');
      });
  });

  describe('memory', () => {
    it('above maximumMemory: MEMORY before any allocation, and a small forward still works', async () => {
      const attn = await loadHere({ maximumMemory: 32 * 2 ** 20 });
      const expected = run(attn);
      const used = settledHeap(attn);
      const long = tensor([1, 4096, 8], () => 0.5);
      assertThrows(() => attn.scaledDotProductAttention(long, long, long, { needWeights: true }), 'MEMORY', ['bytes']);
      assert.equal(attn.info.heap.used, used, 'no memory is left behind');
      assertSameBits(run(attn), expected);
      attn.dispose();
    });

    it('if layers may hold the memory, the error counts them', async () => {
      const attn = await loadHere({ maximumMemory: 32 * 2 ** 20 });
      const long = tensor([1, 4096, 8], () => 0.5);
      const fails = () => assertThrows(() => attn.scaledDotProductAttention(long, long, long, { needWeights: true }), 'MEMORY');
      const layers = [];
      for (const count of [0, 1, 2, 3]) {
        if (count > 0) layers.push(new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 }));
        const { detail, message } = fails();
        assert.equal(detail.layers, count < 2 ? undefined : count);
        assert.equal(message.includes(`this instance has ${count} layers.`), count >= 2, message);
      }
      layers[0]!.dispose();
      layers[0]!.dispose();
      assert.equal(fails().detail.layers, 2);
      attn.dispose();
    });

    it('a request past 2^32 elements is MEMORY, estimated in 64 bits', async () => {
      const attn = await loadHere();
      // Empty inputs of (65536, 0) would have 65536 × 65536 scores, which is 0 in 32 bits.
      const wide = tensor([65536, 1], new Float32Array(65536));
      assertThrows(() => attn.scaledDotProductAttention(wide, wide, wide, { needWeights: true }), 'MEMORY');
      assert.isTrue(run(attn).data.every(Number.isFinite));
      attn.dispose();
    });

    it('earlier modules and results stay correct when the heap grows', async () => {
      const attn = await loadHere();
      const mha = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
      const x = random(new Generator(70), [1, 5, 16]);
      const expected = mha.forward(x).output;
      const big = tensor([1, 3000, 64], (i) => (i % 7) / 7);
      attn.scaledDotProductAttention(big, big, big, { needWeights: true });
      assert.isAbove(attn.info.heap.peak, 3000 * 3000 * 4);
      assertSameBits(mha.forward(x).output, expected);
      attn.dispose();
    });
  });

  describe('disposal', () => {
    it('is idempotent, and every later call is DISPOSED', async () => {
      const attn = await loadHere();
      const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
      const x = tensor([1, 2, 8], () => 1);
      attn.dispose();
      attn.dispose();
      attn[disposeSymbol]();
      mha.dispose();
      const uses: Record<string, () => unknown> = {
        scaledDotProductAttention: () => attn.scaledDotProductAttention(q, k, v),
        linear: () =>
          attn.linear(
            x,
            tensor([2, 8], () => 1),
          ),
        softmax: () => attn.softmax(x),
        parseSafetensors: () => attn.parseSafetensors(new Uint8Array(16)),
        MultiHeadAttention: () => new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 }),
        forward: () => mha.forward(x),
        loadStateDict: () => mha.loadStateDict({}),
        stateDict: () => mha.stateDict(),
        initialize: () => mha.initialize(),
        parameterCount: () => mha.parameterCount,
        parameterShapes: () => mha.parameterShapes(),
      };
      for (const [name, use] of Object.entries(uses)) {
        const error = assertThrows(use, 'DISPOSED');
        assert.instanceOf(error, AttnError, name);
      }
    });

    it('disposing of one module frees its memory, and other modules stay usable', async () => {
      const attn = await loadHere();
      const start = settledHeap(attn);
      const [a, b] = [new attn.MultiHeadAttention({ embedDim: 32, numHeads: 4 }), new attn.MultiHeadAttention({ embedDim: 32, numHeads: 4 })];
      const x = tensor([1, 2, 32], () => 0.1);
      a.forward(x);
      a.dispose();
      a.dispose();
      a[disposeSymbol]();
      for (const use of [
        () => a.forward(x),
        () => a.stateDict(),
        () => a.parameterCount,
        () => a.parameterShapes(),
        () => a.initialize(),
        () => a.loadStateDict({}),
      ])
        assertThrows(use, 'DISPOSED');
      assert.isTrue(b.forward(x).output.data.every(Number.isFinite));
      b.dispose();
      assert.equal(attn.info.heap.used, start);
      attn.dispose();
    });
  });
});
