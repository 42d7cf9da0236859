/** The npm package as its users get it: build/attn.tgz unpacked, installed, type-checked, bundled and run. */
import { strict as assert } from 'node:assert';
import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompressSync } from 'node:zlib';
import ts from 'typescript';
import { Checks } from '../support/checks.mjs';
import { repository } from '../support/paths.mjs';
import { differences } from './matrix/readme.mjs';
import { differences as typeDifferences, openModule } from './signatures.mjs';

const at = (...parts) => join(repository, ...parts);
const tarball = at('build/attn.tgz');
const work = at('build/wasm-tests/packaging');
const consumer = join(work, 'consumer');
const installed = join(consumer, 'node_modules/attn');

const execute = promisify(execFile);
/** Runs Node; the error of a failure holds what it printed. */
async function node(args, options = {}) {
  try {
    return (await execute(process.execPath, args, { cwd: consumer, maxBuffer: 1 << 24, ...options })).stdout;
  } catch (error) {
    throw new Error(`node ${args.join(' ')}: exit ${error.code}\n${error.stdout}${error.stderr}`, { cause: error });
  }
}

/** The worked example; its first number is known from paper. */
const attention = `
const [q, k, v] = [[1, 0, 2, 2, 2, 2, 2, 1, 3], [0, 1, 1, 4, 4, 0, 2, 3, 1], [1, 2, 3, 2, 8, 0, 2, 6, 3]].map((rows) => ({ data: new Float32Array(rows), dims: [3, 3] }));
const { output } = await attn.scaledDotProductAttention(q, k, v, { scale: 1 });
console.log(output.dims.join(), output.data[0].toFixed(6));
await attn.dispose();
`;
const expected = '3,3 1.936621';

/** A model from a folder, which comes as the last argument: its labels by falling probability. */
const reading = `
const model = await attn.loadModel(process.argv.at(-1));
const [[best, ...others]] = await model.classify('It was good');
console.log((await model.embed(['a', 'b'])).dims.join(), others.length, best.score > others[0].score);
await attn.dispose();
`;
const read = '2,32 2 true';
const checkpoint = at('testdata/models/tiny-bert');

const builds = ['', 'train-'].flatMap((kind) => ['simd', 'relaxed', 'simd-threads', 'relaxed-threads'].map((variant) => kind + variant));

/** Members that the package has beyond the contract, and those of the contract that they change. */
const additions = {
  LoadOptions: ['training'],
  RuntimeInfo: ['training'],
  Attn: ['peak', 'loadModel', 'info', 'Embedding', 'SGD', 'Adam', 'AdamW'],
  Embedding: ['forward'],
  Optimizer: ['setLearningRate', '[dispose]'],
  TextModel: [
    'wordEmbeddings',
    'parameterShapes',
    'stateDict',
    'getParameter',
    'loadStateDict',
    'forward',
    'task',
    'decode',
    'classifyTokens',
    'fillMask',
    'answer',
    'rank',
  ],
  TextModelOutput: ['trace'],
};

/**
 * A file that compiles if every type of the contract is the package's, to the last optional member; and the names that it compares. Where there
 * are additions all else is the same, and the package's type may be used as the contract's.
 */
function comparison(contract) {
  const source = ts.createSourceFile('contract.d.ts', contract, ts.ScriptTarget.ES2022);
  const names = source.statements.filter((node) => ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)).map((node) => node.name.text);
  const same = (name) => {
    const rest = (of) =>
      `Omit<${of}.${name}, ${additions[name].map((member) => (member === '[dispose]' ? 'typeof Symbol.dispose' : `'${member}'`)).join(' | ')}>`;
    return additions[name]
      ? `check<Same<${rest('Package')}, ${rest('Contract')}>>();\ncheck<Package.${name} extends Contract.${name} ? true : false>();`
      : `check<Same<Package.${name}, Contract.${name}>>();`;
  };
  const text = `import type * as Package from 'attn';
import type * as Contract from './contract.js';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const check = <T extends true>(): T => true as T;
${names.map(same).join('\n')}
check<Same<typeof Package.AttnError.prototype, typeof Contract.AttnError.prototype>>();
check<Parameters<typeof Contract.load> extends Parameters<typeof Package.load> ? true : false>();
check<Same<ReturnType<typeof Package.load>, Promise<Package.Attn>>>();
`;
  return { names, text };
}

/** The examples in the comments of a .d.ts. */
function examplesOf(file) {
  const blocks = readFileSync(file, 'utf8').matchAll(/^ *\* ```ts\n([\s\S]*?)^ *\* ```$/gm);
  return [...blocks].map(([, block]) => block.replaceAll(/^ *\* ?/gm, ''));
}

function* filesOf(folder, prefix = '') {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) yield* filesOf(join(folder, entry.name), `${prefix}${entry.name}/`);
    else yield prefix + entry.name;
  }
}

export async function packaging() {
  const checks = new Checks('packaging');
  const check = checks.check.bind(checks);
  if (!existsSync(tarball)) throw new Error('build/attn.tgz is missing: make package');
  rmSync(work, { recursive: true, force: true });
  mkdirSync(consumer, { recursive: true });
  // Nothing of the workspace is in reach of the consumer but the package itself.
  writeFileSync(join(consumer, 'package.json'), JSON.stringify({ name: 'consumer', version: '1.0.0', private: true, type: 'module' }));

  await check('installs offline into a new project, and brings nothing else', () => {
    execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball], { cwd: consumer, stdio: 'pipe' });
    assert.deepEqual(
      readdirSync(join(consumer, 'node_modules')).filter((name) => !name.startsWith('.')),
      ['attn'],
    );
  });
  const manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));

  await check('holds what is needed and nothing else', (note) => {
    const files = [...filesOf(installed)];
    for (const name of [
      'package.json',
      'LICENSE',
      'dist/index.js',
      'dist/node.js',
      'dist/attn.d.ts',
      'dist/worker.d.ts',
      'dist/attn.mjs',
      'dist/attn-threads.mjs',
      'dist/attn-threads-node.mjs',
      'dist/attn-train.mjs',
      'dist/attn-train-threads.mjs',
      'dist/attn-train-threads-node.mjs',
      ...builds.map((build) => `dist/attn-${build}.wasm`),
    ])
      assert.ok(files.includes(name), `${name} is in the package`);
    const odd = files.filter(
      (name) =>
        !/^(package\.json|LICENSE|README\.md|CHANGELOG\.md|dist\/([\w-]+\.(js|mjs|cjs|d\.ts|d\.cts|wasm|js\.map)|THIRD_PARTY_NOTICES\.md))$/.test(
          name,
        ),
    );
    assert.deepEqual(odd, [], 'other files');
    const size = (list) => list.reduce((a, name) => a + statSync(join(installed, name)).size, 0);
    const maps = size(files.filter((name) => name.endsWith('.map')));
    const bytes = size(files) - maps;
    const kib = (value) => `${(value / 1024).toFixed(0)} KiB`;
    note(`${files.length} files, ${kib(bytes)} and source maps of ${kib(maps)}, packed ${kib(statSync(tarball).size)}`);
    assert.ok(bytes < 10 << 19, `${bytes} bytes`);
    assert.ok(statSync(tarball).size < 11 << 18, `${statSync(tarball).size} bytes packed`);
  });
  await check('the manifest: no side effects, no dependencies, every export there', () => {
    assert.equal(manifest.name, 'attn');
    assert.equal(manifest.type, 'module');
    assert.equal(manifest.sideEffects, false);
    assert.deepEqual(Object.keys(manifest.dependencies ?? {}), []);
    assert.equal(manifest.license, 'Apache-2.0');
    for (const script of ['preinstall', 'install', 'postinstall', 'prepare']) assert.equal(manifest.scripts?.[script], undefined, script);
    const targets = (value) => (value === null ? [] : typeof value === 'string' ? [value] : Object.values(value).flatMap(targets));
    for (const target of targets(manifest.exports)) assert.ok(existsSync(join(installed, target)), target);
    for (const key of ['types', 'node', 'default']) assert.ok(key in manifest.exports['.'], key);
    assert.equal(Object.keys(manifest.exports['.'])[0], 'types', 'types comes first');
    for (const name of builds) assert.ok(manifest.exports[`./attn-${name}.wasm`], name);
  });
  await check('npx attn runs the command', async () => {
    assert.deepEqual(manifest.bin, { attn: 'dist/cli.js' });
    const attn = (...args) => execute(join(consumer, 'node_modules/.bin/attn'), args, { cwd: consumer });
    assert.equal((await attn('--version')).stdout, `${manifest.version}\n`);
    assert.match((await attn('inspect', checkpoint)).stdout, /^attn {8}takes it, as float32$/m);
    await attn('convert', checkpoint, 'converted', '--weights', 'int8');
    assert.match((await attn('inspect', 'converted')).stdout, /^attn {8}takes it, as int8$/m);
  });
  await check('no path of a machine, no eval, no address of another host in any file', () => {
    for (const name of filesOf(installed)) {
      const text = readFileSync(join(installed, name), 'latin1');
      assert.ok(!text.includes(repository), `${name} names the build folder`);
      assert.doesNotMatch(text, /\/(home|root|tmp)\/[\w.-]+\//, `${name} names a folder of a machine`);
      if (!/\.(js|mjs|cjs)$/.test(name)) continue;
      assert.doesNotMatch(text, /\beval\(|new Function\(|\bFunction\(["'`]/, `${name} makes code from strings`);
      assert.doesNotMatch(text, /https?:\/\/(?!www\.w3\.org)[a-z0-9.-]+\.[a-z]+\//i, `${name} names a host`);
    }
  });

  await check('each script has a source map, with the sources in it', () => {
    let placed = 0;
    const scripts = [...filesOf(installed)].filter((name) => name.endsWith('.js'));
    for (const name of scripts) {
      const code = readFileSync(join(installed, name), 'utf8');
      assert.deepEqual(code.match(/sourceMappingURL=.*/g), [`sourceMappingURL=${basename(name)}.map`], name);
      const map = JSON.parse(readFileSync(join(installed, `${name}.map`), 'utf8'));
      for (const [i, source] of map.sources.entries()) {
        const [, folder, file] = /^\.\.\/(src|dist|node_modules\/comlink\/dist\/esm)\/([\w/-]+\.(?:ts|mjs))$/.exec(source) ?? [];
        assert.ok(folder, `${name}: ${source}`);
        const from = folder === 'src' ? at('web/lib/src', file) : folder === 'dist' ? join(installed, 'dist', file) : at(folder, file);
        assert.equal(map.sourcesContent[i], readFileSync(from, 'utf8'), `${name}: ${source}`);
      }
      // The places are right: the class's name stands where the map says.
      const place = code.indexOf('AttnError=class');
      if (place < 0) continue;
      const before = code.slice(0, place).split('\n');
      const { originalSource, originalLine } = new SourceMap(map).findEntry(before.length - 1, before.at(-1).length);
      assert.equal(originalSource, '../src/args/error.ts');
      const source = map.sourcesContent[map.sources.indexOf(originalSource)];
      assert.match(source.split('\n')[originalLine], /class AttnError/);
      placed++;
    }
    assert.ok(placed > 0 && scripts.length > 5);
  });
  await check('publint finds nothing', async () => {
    const { publint } = await import('publint');
    const { formatMessage } = await import('publint/utils');
    const { messages } = await publint({ pkgDir: installed, strict: true, pack: false });
    assert.deepEqual(
      messages.map((m) => formatMessage(m, manifest)),
      [],
    );
  });
  await check('are-the-types-wrong finds nothing', async () => {
    const { createPackageFromTarballData, checkPackage } = await import('@arethetypeswrong/core');
    const analysis = await checkPackage(createPackageFromTarballData(readFileSync(tarball)), { excludeEntrypoints: [/\.wasm$/, './package.json'] });
    assert.ok(analysis.types, 'types were found');
    // What knows no exports finds no file of that name.
    const ignored = (p) => p.resolutionKind === 'node10' && p.kind === 'NoResolution';
    assert.deepEqual(
      analysis.problems.filter((p) => !ignored(p)).map((p) => JSON.stringify(p)),
      [],
    );
  });
  for (const [resolution, module] of [
    ['nodenext', 'nodenext'],
    ['bundler', 'esnext'],
  ])
    await check(`its types are the contract's, under strict with ${resolution}`, async () => {
      for (const name of ['contract.d.ts', 'types.ts', 'exact.ts']) cpSync(at('wasm-tests/packaging', name), join(consumer, name));
      const { names, text } = comparison(readFileSync(join(consumer, 'contract.d.ts'), 'utf8'));
      assert.ok(names.length >= 20, `${names.length} types of the contract`);
      writeFileSync(join(consumer, 'same.ts'), text);
      const options = {
        strict: true,
        noEmit: true,
        target: 'es2022',
        module,
        moduleResolution: resolution,
        lib: ['es2022', 'dom', 'esnext.disposable'],
        types: [],
        exactOptionalPropertyTypes: false,
        skipLibCheck: false,
      };
      writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['types.ts', 'same.ts'] }));
      await node([at('node_modules/typescript/bin/tsc'), '-p', '.']);
      const exact = { ...options, exactOptionalPropertyTypes: true };
      writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions: exact, files: ['exact.ts'] }));
      await node([at('node_modules/typescript/bin/tsc'), '-p', '.']);
    });

  await check('its types name what the module takes, and nothing else', async () => {
    const file = join(installed, 'dist/attn.d.ts');
    const module = await openModule(join(installed, 'dist'));
    assert.deepEqual(typeDifferences(file, module), []);
    const planted = join(work, 'planted.d.ts');
    writeFileSync(planted, readFileSync(file, 'utf8').replace('  gated?: boolean', '  gate?: boolean'));
    assert.ok(typeDifferences(planted, module).includes('new TransformerEncoder.options: the types lack gated'), 'a difference is seen');
  });

  await check('the suites type-check against it', () => node([at('node_modules/typescript/bin/tsc'), '-p', at('wasm-tests')]));

  const script = (name, text) => (writeFileSync(join(consumer, name), text), name);
  await check('runs in Node', async () =>
    assert.equal((await node([script('run.mjs', `import { load } from 'attn';\nconst attn = await load();${attention}`)])).trim(), expected),
  );
  await check('every example in the types compiles and runs', async (note) => {
    const examples = ['attn.d.ts', 'worker.d.ts'].flatMap((name) => examplesOf(join(installed, 'dist', name)));
    assert.ok(examples.length >= 20, `${examples.length} examples`);
    const [folder, out] = [join(consumer, 'examples'), join(consumer, 'examples-run')];
    mkdirSync(folder);
    examples.forEach((code, i) => writeFileSync(join(folder, `example${i + 1}.mts`), code));
    const compilerOptions = {
      strict: true,
      target: 'es2022',
      module: 'nodenext',
      lib: ['es2022', 'dom', 'esnext.disposable'],
      types: [],
      outDir: out,
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mts'] }));
    await node([at('node_modules/typescript/bin/tsc'), '-p', folder]);
    for (const i of examples.keys()) await node([join(out, `example${i + 1}.mjs`)], { timeout: 30000 });
    note(`${examples.length} examples`);
  });
  await check('runs in Node with relaxed SIMD', async () => {
    const out = await node([
      '--experimental-wasm-relaxed-simd',
      script(
        'relaxed.mjs',
        `import { load } from 'attn';\nconst attn = await load({ variant: 'relaxed' });\nif (attn.info.variant !== 'relaxed') throw attn.info;${attention}`,
      ),
    ]);
    assert.equal(out.trim(), expected);
  });
  await check('runs in Node with threads, and the process ends by itself', async () => {
    const out = await node(
      [
        script(
          'threads.mjs',
          `import { load } from 'attn';\nconst attn = await load({ threads: 2 });\nif (attn.info.threads !== 2) throw attn.info;${attention}`,
        ),
      ],
      { timeout: 30000 },
    );
    assert.equal(out.trim(), expected);
  });
  await check('runs in Node through attn/worker, and the process ends by itself', async () => {
    assert.equal(
      (await node([script('worker.mjs', `import { load } from 'attn/worker';\nconst attn = await load();${attention}`)], { timeout: 30000 })).trim(),
      expected,
    );
  });
  await check('reads a model from a folder in Node, in the caller and in a worker', async () => {
    for (const entry of ['attn', 'attn/worker']) {
      const name = script(`model-${entry.replace('/', '-')}.mjs`, `import { load } from '${entry}';\nconst attn = await load();${reading}`);
      assert.equal((await node(['--disallow-code-generation-from-strings', name, checkpoint], { timeout: 30000 })).trim(), read, entry);
    }
  });
  await check('a process that does not dispose ends by itself too', async () => {
    await node(
      [
        script(
          'forgetful.mjs',
          `import { load } from 'attn';\nimport { load as inWorker } from 'attn/worker';\nawait load();\nawait load({ threads: 2 });\nawait (await inWorker()).info;\nconsole.log('end');`,
        ),
      ],
      { timeout: 30000 },
    );
  });
  await check('needs no code from strings', async () => {
    for (const name of ['run.mjs', 'threads.mjs', 'worker.mjs'])
      assert.equal((await node(['--disallow-code-generation-from-strings', name])).trim(), expected, name);
  });
  await check('an engine without WebAssembly, or without SIMD, is told so in words', async () => {
    const text = `import { load } from 'attn';\ntry { await load(); console.log('loaded'); } catch (error) { console.log(error.code, error.message); }`;
    assert.match(await node(['--jitless', script('engine.mjs', text)]), /^ENVIRONMENT .*WebAssembly/m);
    // No flag of Node takes SIMD away: an engine that validates and compiles nothing of it stands in.
    const without = `WebAssembly.validate = () => false;\nWebAssembly.compile = () => Promise.reject(new WebAssembly.CompileError('invalid opcode 0xfd'));\n${text.replace("import { load } from 'attn';", "const { load } = await import('attn');")}`;
    assert.match(await node([script('scalar.mjs', without)]), /^ENVIRONMENT .*SIMD/m);
  });
  await check('require() gives the same, from the files for hosts that cannot require() ES modules and as the host takes it', async () => {
    for (const name of ['node.cjs', 'attn'])
      for (const worker of name === 'attn' ? ['attn/worker'] : ['worker-node.cjs']) {
        const from = (file) => JSON.stringify(name === 'attn' ? file : join(installed, 'dist', file));
        const text = `const { load, AttnError } = require(${from(name)});
const inWorker = require(${from(worker)});
(async () => {
for (const attn of [await load(), await load({ threads: 2 }), await inWorker.load()]) {${attention}}
const attn = await load();
${reading}
console.log((await load({ threads: 2 })).info.threads, AttnError === inWorker.AttnError, await load({ thread: 2 }).catch((error) => error instanceof AttnError));
})();`;
        const lines = (await node([script('required.cjs', text), checkpoint], { timeout: 60000 })).trim().split('\n');
        assert.deepEqual(lines, [expected, expected, expected, read, '2 true true'], name);
      }
  });
  await check('says its own version', async () => {
    const out = await node([script('version.mjs', `import { load } from 'attn';\nconst attn = await load();\nconsole.log(attn.info.version);`)]);
    assert.equal(out.trim(), manifest.version);
  });
  await check('importing it does nothing', async () => {
    const out = await node([
      script(
        'idle.mjs',
        `const before = process._getActiveHandles().length;\nawait import('attn');\nawait import('attn/worker');\nconsole.log(process._getActiveHandles().length - before, Object.keys(globalThis).filter((k) => /attn|module/i.test(k)).length);`,
      ),
    ]);
    assert.equal(out.trim(), '0 0');
  });
  await check('importing it asks the host for nothing: worklets, jsdom and servers lack much', async () => {
    const names = ['TextEncoder', 'TextDecoder', 'clearTimeout', 'setTimeout', 'URL', 'fetch', 'Worker', 'WebAssembly', 'navigator', 'performance'];
    const files = ['index.js', 'worker-web.js', 'service-worker.js'].map((name) => join(installed, 'dist', name));
    const throwing = names.map((name) => `Object.defineProperty(globalThis, '${name}', { get() { throw new Error('${name} was asked for'); } });`);
    const imports = files.map((file) => `await import(${JSON.stringify(file)});`);
    assert.equal(
      (await node([script('nothing.mjs', `${throwing.join('\n')}\n${imports.join('\n')}\nprocess.stdout.write('nothing');`)])).trim(),
      'nothing',
    );
  });
  await check('the worker is one file, and glue for browsers asks for no address of its own', () => {
    const read = (name) => readFileSync(join(installed, 'dist', name), 'utf8');
    const imports = (name) => ts.preProcessFile(read(name), true, true).importedFiles.map(({ fileName }) => fileName);
    for (const name of ['worker-host.js', 'worker-host-train.js']) assert.deepEqual(imports(name), [], name);
    for (const name of ['', '-threads', '-train', '-train-threads'].map((kind) => `attn${kind}.mjs`))
      assert.ok(!read(name).includes('import.meta'), name);
    // import() is an error of its own in service workers: no way leads to one from there.
    const reached = new Set(['service-worker.js']);
    for (const name of reached) {
      assert.doesNotMatch(read(name), /\bimport\(["'`]\.\//, name);
      for (const other of imports(name)) reached.add(other.replace('./', ''));
    }
    assert.ok(reached.has('load_model.js'));
  });
  await check('whatever keeps threads from starting: one thread, and a note that says why', async () => {
    for (const [what, file, text, note] of [
      [
        'glue that a bundler spoiled',
        'attn-train-threads-node.mjs',
        `export default () => { throw new TypeError('h.startsWith is not a function'); };`,
        /startsWith/,
      ],
      ['glue that is not there', 'attn-train-threads-node.mjs', undefined, /attn-train-threads-node/],
      ['a .wasm that is not there', 'attn-train-simd-threads.wasm', undefined, /attn-train-simd-threads\.wasm/],
      ['another .wasm', 'attn-train-simd-threads.wasm', '<!doctype html>', /HTML/],
    ]) {
      const broken = join(work, 'broken');
      rmSync(broken, { recursive: true, force: true });
      cpSync(installed, broken, { recursive: true });
      rmSync(join(broken, 'dist', file));
      if (text !== undefined) writeFileSync(join(broken, 'dist', file), text);
      const program = `import { load } from ${JSON.stringify(join(broken, 'dist/node.js'))};
const attn = await load({ threads: 2, variant: 'simd' });
console.log(attn.info.threads, attn.info.notes.find((note) => note.startsWith('one thread')));
${attention}`;
      const [info, value] = (await node([script('broken.mjs', program)], { timeout: 60000 })).trim().split('\n');
      assert.match(info, /^1 one thread instead of 2: /, what);
      assert.match(info, note, what);
      assert.equal(value, expected, what);
    }
  });
  const without = (...names) => names.map((name) => `delete globalThis.${name};`).join('\n');
  const files = ['config.json', 'tokenizer.json', 'model.safetensors'].map(
    (name) => `${JSON.stringify(name)}: readFileSync(${JSON.stringify(join(checkpoint, name))})`,
  );
  await check('runs, with models, where nothing is but the language, as in an AudioWorklet', async () => {
    const text = `import { readFileSync } from 'node:fs';
const files = { ${files.join(', ')} };
const module = new WebAssembly.Module(readFileSync(${JSON.stringify(join(installed, 'dist/attn-simd.wasm'))}));
const write = (text) => process.stdout.write(text + '\\n');
${without('TextEncoder', 'TextDecoder', 'AbortController', 'MessageChannel', 'clearTimeout', 'setTimeout', 'fetch', 'URL', 'Blob', 'crypto')}
const index = await import(${JSON.stringify(join(installed, 'dist/index.js'))});
await index.load({ wasm: module }).catch((error) => write(error.code + ' ' + error.message));
const { load } = await import(${JSON.stringify(join(installed, 'dist/service-worker.js'))});
const attn = await load({ wasm: module, threads: 2 });
write(attn.info.notes[0]);
const model = await attn.loadModel(files);
write(String(model.embed(['é', 'b']) instanceof Promise) + ' ' + (await model.embed(['é', 'b'])).dims.join());
await attn.loadModel('http://localhost/').catch((error) => write(error.code + ' ' + error.message));
const [name] = attn.parseSafetensors(attn.writeSafetensors({ 'é\u{1f600}': { data: new Float32Array(1), dims: [1] } })).keys();
try { attn.softmax({ data: new Float32Array(2), dims: [3] }); } catch (error) { write(name + ' ' + error.code); }
${attention.replace('console.log(output.dims.join(), output.data[0].toFixed(6));', "write(output.dims.join() + ' ' + output.data[0].toFixed(6));")}`;
    const [lacks, note, dims, noFetch, ...others] = (await node([script('worklet.mjs', text)])).trim().split('\n');
    assert.match(lacks, /^ENVIRONMENT .*TextDecoder.*attn\/service-worker/);
    assert.equal(note, 'one thread instead of 2: workers cannot be started here');
    assert.equal(dims, 'true 2,32');
    assert.match(noFetch, /^ENVIRONMENT loadModel: there is no fetch here; give the files/);
    assert.deepEqual(others, [`é\u{1f600} SHAPE`, expected]);
  });
  await check('files whose URLs a bundler writes without an origin: relative to the page, and on a server in words', async () => {
    const text = `import { readFile } from 'node:fs/promises';
const Whole = URL;
globalThis.URL = class extends Whole {
  constructor(url, base) {
    if (String(url).startsWith('./attn-')) return { href: '/media/' + url.slice(2) };
    super(url, base);
  }
};
const { load: onServer } = await import('attn');
await onServer().catch((error) => console.log(error.code, error.message));
globalThis.location = { href: 'http://page/of/an/app' };
globalThis.fetch = async (url) => (console.log(String(url)), new Response(await readFile(${JSON.stringify(join(installed, 'dist'))} + new Whole(url).pathname.slice(6))));
const { load } = await import(${JSON.stringify(join(installed, 'dist/index.js'))});
const attn = await load({ variant: 'simd' });${attention}`;
    const [server, url, result] = (await node([script('relative.mjs', text)])).trim().split('\n');
    assert.match(server, /^ENVIRONMENT load: attn-train-\w+\.wasm has no address here .*serverExternalPackages: \['attn'\]/);
    assert.equal(url, 'http://page/media/attn-simd.wasm');
    assert.equal(result, expected);
  });
  await check('without a fetch: ENVIRONMENT, and what to do', async () => {
    const text = `delete globalThis.fetch;
const { load } = await import(${JSON.stringify(join(installed, 'dist/index.js'))});
await load().catch((error) => console.log(error.code, error.message));`;
    assert.match(await node([script('fetchless.mjs', text)]), /^ENVIRONMENT load: there is no fetch here; give load\(\{ wasm \}\).*jest/);
  });
  await check('scripts of models that cannot be loaded: ENVIRONMENT, in the caller and for a worker', async () => {
    const broken = join(work, 'broken');
    rmSync(broken, { recursive: true, force: true });
    cpSync(installed, broken, { recursive: true });
    for (const name of ['load_model.js', 'remote_model.js']) rmSync(join(broken, 'dist', name));
    for (const entry of ['node.js', 'worker-node.js']) {
      const program = `import { load } from ${JSON.stringify(join(broken, 'dist', entry))};
const attn = await load();
await attn.loadModel(process.argv[2]).catch((error) => console.log(error.code, error.message));
await attn.dispose();`;
      assert.match(await node([script('scriptless.mjs', program), checkpoint]), /^ENVIRONMENT loadModel: could not load scripts/, entry);
    }
  });
  await check('the table of tools in its README is what the matrix expects of them', () => {
    const readme = readFileSync(join(installed, 'README.md'), 'utf8');
    assert.deepEqual(differences(readme), []);
    assert.equal(differences(readme.replace('| workerd | one thread', '| workerd | two threads')).length, 1, 'a difference is seen');
    assert.equal(differences(readme.replace(/\| Parcel .*\n/, '')).length, 1, 'a line that is missing is seen');
  });
  await check('the .wasm files are found by name, inner files are not', async () => {
    const out = await node([
      script(
        'resolve.mjs',
        `import { readFile } from 'node:fs/promises';
import { load } from 'attn';
for (const variant of ['simd', 'relaxed', 'simd-threads', 'relaxed-threads']) {
  const bytes = await readFile(new URL(import.meta.resolve('attn/attn-' + variant + '.wasm')));
  if (bytes.readUInt32LE(0) !== 0x6d736100) throw new Error(variant);
}
const attn = await load({ wasm: new URL(import.meta.resolve('attn/attn-simd.wasm')) });
try { import.meta.resolve('attn/dist/instance.js'); console.log('inner files resolve'); } catch (error) { console.log(error.code); }
attn.dispose();`,
      ),
    ]);
    assert.equal(out.trim(), 'ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  const { rolldown } = await import('rolldown');
  const bundle = async (name, text, conditionNames, platform) => {
    script(`${name}.src.mjs`, text);
    const build = await rolldown({
      input: join(consumer, `${name}.src.mjs`),
      cwd: consumer,
      platform,
      resolve: { conditionNames },
      logLevel: 'silent',
      external: [/^node:/],
    });
    const { output } = await build.generate({ format: 'esm' });
    await build.close();
    return output;
  };
  await check('bundled to one file for Node, with the .wasm given as bytes', async () => {
    const text = `import { readFile } from 'node:fs/promises';\nimport { load } from 'attn';\nconst attn = await load({ wasm: await readFile(process.argv[2]) });${attention}`;
    const output = await bundle('given', text, ['node', 'import', 'default'], 'node');
    mkdirSync(join(work, 'bundled'), { recursive: true });
    for (const chunk of output)
      if (chunk.type === 'chunk')
        writeFileSync(
          join(work, 'bundled', chunk.fileName.replace(/\.js$/, '.mjs')),
          chunk.code.replaceAll(/(from|import\()\s*("\.\/[^"]+)\.js"/g, '$1 $2.mjs"'),
        );
    const entry = output.find((chunk) => chunk.isEntry).fileName.replace(/\.js$/, '.mjs');
    assert.equal((await node([join(work, 'bundled', entry), join(installed, 'dist/attn-simd.wasm')], { cwd: work })).trim(), expected);
  });
  await check('a bundle leaves what models take apart, until one is loaded', async (note) => {
    const text = `import { readFile } from 'node:fs/promises';\nimport { load } from 'attn';\nconst attn = await load({ wasm: await readFile(process.argv[2]) });${reading}`;
    const output = (await bundle('reading', text, ['node', 'import', 'default'], 'node')).filter((chunk) => chunk.type === 'chunk');
    const [start] = output.filter((chunk) => chunk.isEntry);
    assert.ok(!start.code.includes('config.json'), 'the start knows nothing of models');
    const folder = join(work, 'reading');
    mkdirSync(folder, { recursive: true });
    for (const { fileName, code } of output)
      writeFileSync(join(folder, fileName.replace(/\.js$/, '.mjs')), code.replaceAll(/(from|import\()\s*("\.\/[^"]+)\.js"/g, '$1 $2.mjs"'));
    const name = join(folder, start.fileName.replace(/\.js$/, '.mjs'));
    assert.equal((await node([name, join(installed, 'dist/attn-simd.wasm'), checkpoint], { cwd: work })).trim(), read);
    const size = (chunks) => chunks.reduce((sum, { code }) => sum + brotliCompressSync(code).length, 0);
    note(`${size([start])} bytes of brotli at the start, ${size(output) - size([start])} for later`);
  });
  await check('attn/element: a file of its own, small, typed, and without a page it does no harm', async (note) => {
    const code = readFileSync(join(installed, 'dist/element.js'));
    const size = brotliCompressSync(code).length;
    note(`${size} bytes of brotli`);
    assert.ok(size < 6500, `${size} bytes`);
    assert.doesNotMatch(code.toString(), /\bimport\b|\bfetch\(|WebAssembly|innerHTML/, 'it loads nothing, and writes no HTML');
    for (const name of filesOf(join(installed, 'dist')))
      if (/\.(js|cjs|mjs)$/.test(name) && !name.startsWith('element'))
        assert.doesNotMatch(readFileSync(join(installed, 'dist', name), 'utf8'), /attention-map/, `${name} knows nothing of it`);
    const figure = "figureToSvg(mapFigure({ tokens: ['a', 'b'], weights: [0.9, 0.1, 0.4, 0.6], title: 'T' }))";
    const program = `const svg = ${figure};\nconsole.log(svg.match(/<rect /g).length, svg.includes('#fde725'), svg.includes('>.90<'));`;
    assert.equal((await node([script('element.mjs', `import { figureToSvg, mapFigure } from 'attn/element';\n${program}`)])).trim(), '5 true true');
    const required = script('element.cjs', `const { figureToSvg, mapFigure } = require('attn/element');\n${program}`);
    assert.equal((await node([required])).trim(), '5 true true');
    const typed = `import { defineAttentionMap, linesFigure, type Figure, type AttentionMap } from 'attn/element';
const define: (name?: string) => typeof AttentionMap = defineAttentionMap;
const map: AttentionMap = document.createElement('attention-map');
map.tokens = ['a', 'b'];
map.weights = { data: Float32Array.of(1, 0, 0, 1), dims: [1, 2, 2] };
map.weights = [[1, 0], Float32Array.of(0, 1)];
map.addEventListener('attention-cell', ({ detail: { row, weight } }) => [row.toFixed(), weight.toFixed()]);
const lines: Figure = linesFigure({ tokens: map.tokens, weights: [1, 0, 0, 1] });
// @ts-expect-error: a number is no token
map.tokens = [1];
// @ts-expect-error: there is no such scale
map.scale = 'column';
export { define, lines };
`;
    writeFileSync(join(consumer, 'element.ts'), typed);
    const compilerOptions = { strict: true, noEmit: true, target: 'es2022', lib: ['es2022', 'dom'], types: [], skipLibCheck: false };
    for (const [moduleResolution, module] of [
      ['nodenext', 'nodenext'],
      ['bundler', 'esnext'],
    ]) {
      writeFileSync(
        join(consumer, 'tsconfig.json'),
        JSON.stringify({ compilerOptions: { ...compilerOptions, module, moduleResolution }, files: ['element.ts'] }),
      );
      await node([at('node_modules/typescript/bin/tsc'), '-p', '.']);
    }
  });
  await check('attn/tokenizer: a file of its own, typed, which computes without the module', async (note) => {
    const code = readFileSync(join(installed, 'dist/tokenizer.js'));
    const size = brotliCompressSync(code).length;
    note(`${size} bytes of brotli`);
    assert.doesNotMatch(code.toString(), /\bimport\s*[({*"'`]|\bfetch\(|WebAssembly\.|new Worker/, 'it loads nothing');
    const program = `const { readFileSync } = process.getBuiltinModule?.('node:fs') ?? globalThis.fs;
const read = (name) => readFileSync(process.argv.at(-1) + '/' + name);
const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': read('tokenizer.json'), 'tokenizer_config.json': read('tokenizer_config.json').toString() });
const { inputIds, tokens, dims, truncated } = tokenizer.encode(['she is good', 'she is good, she is'], { maxLength: 5 });
console.log(tokens[0].join(' '), dims.join(), truncated.join(), tokenizer.decode(inputIds.subarray(0, 5), { skipSpecialTokens: true }));
const bare = tokenizer.encode('she is good', { maxLength: 2, addSpecialTokens: false, truncationSide: 'left' });
console.log(bare.tokens[0].join(' '), tokenizer.idToToken(tokenizer.tokenToId('she')), tokenizer.vocabularySize);
for (const wrong of [() => Tokenizer.fromFiles({}), () => Tokenizer.fromFiles({ 'tokenizer.jsn': '' }), () => Tokenizer.fromFiles({ 'tokenizer.json': '[' }),
  () => tokenizer.encode('a', { maxLength: 0 }), () => tokenizer.encode('a b', { maxLength: 1, truncation: false }), () => new Tokenizer()])
  try { console.log(wrong()); } catch (error) { console.log(error instanceof AttnError, error.code, error.message.slice(0, 30)); }
`;
    const wanted = `[CLS] she is good [SEP] 2,5 false,true she is good
is good she 339
true ARGUMENT fromFiles: files["tokenizer.js
true ARGUMENT fromFiles: files has "tokenize
true FORMAT fromFiles: tokenizer.json is n
true CONFIG encode: maxLength is 0, expect
true OUT_OF_RANGE encode: text 0 has 4 tokens, e
true ARGUMENT Tokenizer: new is called, expe
`;
    const head = "import * as fs from 'node:fs';\nglobalThis.fs = fs;\nimport { AttnError, Tokenizer } from 'attn/tokenizer';\n";
    assert.equal(await node([script('tokenizer.mjs', head + program), checkpoint]), wanted);
    const required = "globalThis.fs = require('node:fs');\nconst { AttnError, Tokenizer } = require('attn/tokenizer');\n";
    assert.equal(await node([script('tokenizer.cjs', required + program), checkpoint]), wanted);
    const typed = `import { AttnError, Tokenizer, type Encoding } from 'attn/tokenizer';
const tokenizer: Tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': new Uint8Array(2), 'config.json': '{}' });
const encoding: Encoding = tokenizer.encode([['a', 'b']], { truncationSide: 'left', addSpecialTokens: false, maxLength: 9 });
const text: string = tokenizer.decode(encoding.inputIds, { skipSpecialTokens: true });
const size: number = tokenizer.vocabularySize;
// @ts-expect-error: it is made of files
new Tokenizer();
// @ts-expect-error: there is no such side
tokenizer.encode('a', { truncationSide: 'middle' });
// @ts-expect-error: tokenizer.json has to be there
Tokenizer.fromFiles({});
export const code = (error: unknown) => (error instanceof AttnError ? error.code : [text, size]);
`;
    writeFileSync(join(consumer, 'tokenizer.ts'), typed);
    const compilerOptions = { strict: true, noEmit: true, target: 'es2022', lib: ['es2022', 'dom'], types: [], skipLibCheck: false };
    for (const [moduleResolution, module] of [
      ['nodenext', 'nodenext'],
      ['bundler', 'esnext'],
    ]) {
      const files = ['tokenizer.ts'];
      writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions: { ...compilerOptions, module, moduleResolution }, files }));
      await node([at('node_modules/typescript/bin/tsc'), '-p', '.']);
    }
  });
  await check('what is not used falls away', async (note) => {
    const unused = await bundle(
      'unused',
      `import 'attn';\nimport { load } from 'attn';\nexport const nothing = 1;`,
      ['browser', 'import', 'default'],
      'browser',
    );
    const size = unused.reduce((a, chunk) => a + (chunk.code?.length ?? 0), 0);
    note(`${size} characters left`);
    assert.ok(size < 200, `${size} characters are left of an unused import`);
  });
  await check('the workspace link and the package are the same code', () => {
    for (const name of filesOf(join(installed, 'dist')))
      assert.ok(readFileSync(join(installed, 'dist', name)).equals(readFileSync(at('web/lib/dist', name))), name);
  });
  return checks.counts;
}
