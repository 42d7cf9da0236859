import { strict as assert } from 'node:assert';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { basename, join } from 'node:path';
import { before, test } from 'node:test';
import ts from 'typescript';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at, repository } from '../../wasm-tests/support/paths.mjs';
import { differences } from '../bundlers/readme.mjs';
import { builds, checkpoint, execute, filesOf, project, tarball } from './consumer.mjs';

const { consumer, installed, install } = project('files');
let manifest;
before(() => {
  install();
  manifest = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
});

test('the package installs offline into an empty project and brings no dependencies', limit, () =>
  assert.deepEqual(
    readdirSync(join(consumer, 'node_modules')).filter((name) => !name.startsWith('.')),
    ['attn'],
  ),
);

test('the package contains the expected files, and no more bytes than allowed', limit, (t) => {
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
    ...builds.map((build) => `dist/attn-${build}.wasm`),
  ])
    assert.ok(files.includes(name), `${name} is in the package`);
  const odd = files.filter(
    (name) =>
      !/^(package\.json|LICENSE|README\.md|CHANGELOG\.md|dist\/([\w-]+\.(js|mjs|cjs|d\.ts|d\.cts|wasm|js\.map)|THIRD_PARTY_NOTICES\.md))$/.test(name),
  );
  assert.deepEqual(odd, [], 'other files');
  const size = (list) => list.reduce((a, name) => a + statSync(join(installed, name)).size, 0);
  const maps = size(files.filter((name) => name.endsWith('.map')));
  const bytes = size(files) - maps;
  const kib = (value) => `${(value / 1024).toFixed(0)} KiB`;
  t.diagnostic(`${files.length} files, ${kib(bytes)} and source maps of ${kib(maps)}, packed ${kib(statSync(tarball).size)}`);
  assert.ok(bytes < 4_740_000, `${bytes} bytes`);
  assert.ok(statSync(tarball).size < 2_960_000, `${statSync(tarball).size} bytes packed`);
});

test('the guide on releases gives the size of the packed package', limit, () => {
  const [, megabytes] = /^\| npm package, ([\d.]+) MB \|/m.exec(readFileSync(at('docs/guide/releases.md'), 'utf8'));
  const packed = statSync(tarball).size / 1e6;
  assert.ok(Math.abs(packed - Number(megabytes)) < 0.1, `${packed.toFixed(2)} MB packed, ${megabytes} MB in the guide`);
});

test('package.json declares no side effects and no dependencies, and its exports exist', limit, () => {
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

test('npx attn runs the command', limit, async () => {
  assert.deepEqual(manifest.bin, { attn: 'dist/cli.js' });
  const attn = (...args) => execute(join(consumer, 'node_modules/.bin/attn'), args, { cwd: consumer });
  assert.equal((await attn('--version')).stdout, `${manifest.version}\n`);
  assert.match((await attn('inspect', checkpoint)).stdout, /^attn {8}takes it, as float32$/m);
  await attn('convert', checkpoint, 'converted', '--weights', 'int8');
  assert.match((await attn('inspect', 'converted')).stdout, /^attn {8}takes it, as int8$/m);
});

test('no file contains a local path, eval or the address of another host', limit, () => {
  for (const name of filesOf(installed)) {
    const text = readFileSync(join(installed, name), 'latin1');
    assert.ok(!text.includes(repository), `${name} names the build folder`);
    assert.doesNotMatch(text, /\/(home|root|tmp)\/[\w.-]+\//, `${name} names a folder of a machine`);
    if (!/\.(js|mjs|cjs)$/.test(name)) continue;
    assert.doesNotMatch(text, /\beval\(|new Function\(|\bFunction\(["'`]/, `${name} makes code from strings`);
    assert.doesNotMatch(text, /https?:\/\/(?!www\.w3\.org|huggingface\.co\/\$\{)[a-z0-9.-]+\.[a-z]+\//i, `${name} names a host`);
  }
});

test('every script has a source map that contains its sources, except those of dependencies', limit, () => {
  let placed = 0;
  const scripts = [...filesOf(installed)].filter((name) => name.endsWith('.js'));
  for (const name of scripts) {
    const code = readFileSync(join(installed, name), 'utf8');
    assert.deepEqual(code.match(/sourceMappingURL=.*/g), [`sourceMappingURL=${basename(name)}.map`], name);
    const map = JSON.parse(readFileSync(join(installed, `${name}.map`), 'utf8'));
    for (const [i, source] of map.sources.entries()) {
      const [, folder, file] =
        /^\.\.\/(src|dist|node_modules\/comlink\/dist\/esm|node_modules\/@huggingface\/jinja\/dist|node_modules\/minisearch\/dist\/es)\/([\w/-]+\.(?:ts|mjs|js))$/.exec(
          source,
        ) ?? [];
      assert.ok(folder, `${name}: ${source}`);
      const from = { src: at('web/lib/src', file), dist: join(installed, 'dist', file) }[folder];
      assert.equal(map.sourcesContent[i], from === undefined ? null : readFileSync(from, 'utf8'), `${name}: ${source}`);
    }
    // The map is right if it points to the name of the class.
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

test('publint finds no problem', limit, async () => {
  const { publint } = await import('publint');
  const { formatMessage } = await import('publint/utils');
  const { messages } = await publint({ pkgDir: installed, strict: true, pack: false });
  assert.deepEqual(
    messages.map((m) => formatMessage(m, manifest)),
    [],
  );
});

test('are-the-types-wrong finds no problem', limit, async () => {
  const { createPackageFromTarballData, checkPackage } = await import('@arethetypeswrong/core');
  const analysis = await checkPackage(createPackageFromTarballData(readFileSync(tarball)), { excludeEntrypoints: [/\.wasm$/, './package.json'] });
  assert.ok(analysis.types, 'types were found');
  // Resolution without `exports` finds no file of that name.
  const ignored = (p) => p.resolutionKind === 'node10' && p.kind === 'NoResolution';
  assert.deepEqual(
    analysis.problems.filter((p) => !ignored(p)).map((p) => JSON.stringify(p)),
    [],
  );
});

test('the workers and the service worker are single files, and the glue for browsers does not use import.meta', limit, () => {
  const read = (name) => readFileSync(join(installed, 'dist', name), 'utf8');
  const imports = (name) => ts.preProcessFile(read(name), true, true).importedFiles.map(({ fileName }) => fileName);
  for (const name of ['worker-host.js', 'service-worker.js']) assert.deepEqual(imports(name), [], name);
  for (const name of ['attn.mjs', 'attn-threads.mjs']) assert.ok(!read(name).includes('import.meta'), name);
});

test('the table of bundlers in the README agrees with the expectations of tests/bundlers', limit, () => {
  const readme = readFileSync(join(installed, 'README.md'), 'utf8');
  assert.deepEqual(differences(readme), []);
  assert.equal(differences(readme.replace('| workerd | one thread', '| workerd | two threads')).length, 1, 'a difference is seen');
  assert.equal(differences(readme.replace(/\| Parcel .*\n/, '')).length, 1, 'a line that is missing is seen');
});

test('the package contains the files of web/lib/dist', limit, () => {
  for (const name of filesOf(join(installed, 'dist')))
    assert.ok(readFileSync(join(installed, 'dist', name)).equals(readFileSync(at('web/lib/dist', name))), name);
});
