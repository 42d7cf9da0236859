import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { strToU8, zipSync } from 'fflate';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { repository as root } from '../../wasm-tests/support/paths.mjs';
import { differences } from './api_diff.mjs';
import { edit } from './edit_file.mjs';
import { headerSurface, pythonSurface, typescriptSurface, typings } from './surface.mjs';

const work = mkdtempSync(join(tmpdir(), 'attn-release-tests-'));
after(() => rmSync(work, { recursive: true, force: true }));

/**
 * Compares a folder's interface with that after changes [file, pattern, replacement]; returns the breaking names and
 * the new ones.
 */
function planting(folder, surfaceOf) {
  const before = surfaceOf();
  const names = (list) => list.map(({ name }) => name).sort();
  return (changes, { broken = [], added = [] }) => {
    const originals = new Map(changes.map(([file]) => [file, readFileSync(join(folder, file), 'utf8')]));
    for (const change of changes) edit(folder, ...change);
    const found = differences(before, surfaceOf());
    for (const [file, text] of originals) writeFileSync(join(folder, file), text);
    assert.deepEqual(names([...found.removed, ...found.changed]), broken.sort());
    assert.deepEqual(names(found.added), added.sort());
  };
}
const classNames = (surface, entry, name) =>
  Object.keys(surface[entry])
    .filter((each) => each === name || each.startsWith(`${name}.`) || each.startsWith(`${name}::`))
    .map((each) => `${entry}: ${each}`);

test("incompatible changes of the npm package's types are reported, compatible changes are not", limit, (t) => {
  const folder = join(work, 'types');
  cpSync(join(root, 'web/lib/src'), join(folder, 'web/lib/src'), {
    recursive: true,
    filter: (path) => !/\.\w+$/.test(path) || path.endsWith('.d.ts'),
  });
  const surfaceOf = () => typescriptSurface(typings(folder));
  const surface = surfaceOf();
  t.diagnostic(
    Object.entries(surface)
      .map(([entry, names]) => `${entry} ${Object.keys(names).length}`)
      .join(', '),
  );
  const planted = planting(folder, surfaceOf);
  const [file, shared] = ['web/lib/src/attn.d.ts', 'web/lib/src/types.d.ts'];
  planted(
    [
      [shared, '  needWeights?: boolean', '  needsWeights?: boolean'],
      [shared, '  averageWeights?: boolean', '  averageWeights?: number'],
      [shared, '  isCausal?: boolean', '  /** Other words. */\n  isCausal?:\n boolean'],
      // Breaks programs that construct the options without it.
      [file, /(interface LoadOptions \{)/, '$1\n  more: boolean;'],
      [file, /(interface RuntimeInfo \{)/, '$1\n  more: boolean;'],
    ],
    {
      broken: ['attn: AttentionOptions.needWeights', 'attn: AttentionOptions.averageWeights', 'attn: LoadOptions'],
      added: ['attn: AttentionOptions.needsWeights', 'attn: LoadOptions.more', 'attn: RuntimeInfo.more'],
    },
  );
  assert.throws(
    () => planted([[file, 'export class AttnError', 'declare class AttnError']], {}),
    /worker\.d\.ts exports AttnError, which is declared nowhere/,
  );
});

test('incompatible changes of the C and C++ headers are reported, compatible changes are not', limit, (t) => {
  if (spawnSync('doxygen', ['--version']).error) return skipUnlessCi(t, 'doxygen not found: tools/setup release');
  const folder = join(work, 'headers');
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true, filter: (path) => !path.endsWith('.cpp') });
  const surfaceOf = () => headerSurface(folder);
  const surface = surfaceOf();
  t.diagnostic(
    Object.entries(surface)
      .map(([entry, names]) => `${entry} ${Object.keys(names).length}`)
      .join(', '),
  );
  const [c, cpp, sgd] = ['src/attn/c.h', 'src/attn/ops/attention.hpp', classNames(surface, 'attn/attn.hpp', 'attn::SGD')];
  assert.ok(sgd.length > 1);
  planting(folder, surfaceOf)(
    [
      [c, /^ATTN_API unsigned attn_num_threads\(void\);\n/m, ''],
      [c, 'ATTN_API void attn_tensors_free', 'ATTN_API int attn_tensors_free'],
      [c, 'attn_arch(const char** name,', 'attn_arch(const char** text,'],
      // Compiled programs would pass a smaller struct.
      [c, '  int64_t batch_size;          /**<', '  bool more;\n  int64_t batch_size;          /**<'],
      [c, 'ATTN_ERROR_SHAPE = 2', 'ATTN_ERROR_SHAPE = 20'],
      [c, 'ATTN_ERROR_INTERNAL = 11', 'ATTN_ERROR_INTERNAL = 11, ATTN_ERROR_NEW = 12'],
      [cpp, 'std::optional<float> scale = std::nullopt', 'bool more = false;\n  std::optional<double> scale = std::nullopt'],
      [cpp, 'bool is_causal = false', 'bool is_causal = true'],
      ['src/attn/ops/linear.hpp', /namespace attn \{/, 'namespace attn {\nnamespace detail {\nvoid more();\n}'],
      ['src/attn/train/sgd.hpp', /\bSGD\b/g, 'SGD2'],
    ],
    {
      broken: [
        ...['attn_num_threads', 'attn_tensors_free', 'attn_embed_options', 'attn_status::ATTN_ERROR_SHAPE'].map((name) => `attn/c.h: ${name}`),
        ...['scale', 'is_causal'].map((name) => `attn/attn.hpp: attn::AttentionOptions::${name}`),
        ...sgd,
      ],
      added: [
        'attn/c.h: attn_status::ATTN_ERROR_NEW',
        'attn/attn.hpp: attn::AttentionOptions::more',
        ...sgd.map((name) => name.replace(/\bSGD\b/g, 'SGD2')),
      ],
    },
  );
});

test('incompatible changes of a Python wheel are reported, compatible changes are not', limit, () => {
  const stub =
    'class Model:\n    """Words."""\n    def embed(self, texts: list[str], /, *, batch: int = 32) -> object: ...\n    def _inner(self) -> None: ...\ndef threads() -> int: ...\ndef hidden() -> int: ...\n';
  const init = 'from ._attn import Model, threads\nfrom ._results import Result\n__all__ = ["Model", "Result", "threads"]\n';
  const results = 'from typing import NamedTuple\nclass Result(NamedTuple):\n    output: float\n    weights: float | None = None\n';
  const wheel = join(work, 'attn.whl');
  const surfaceOf = (files) => {
    writeFileSync(wheel, zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [`attn/${name}`, strToU8(text)]))));
    return pythonSurface(wheel);
  };
  const files = { '__init__.py': init, '_attn.pyi': stub, '_results.py': results };
  const before = surfaceOf(files);
  assert.deepEqual(Object.keys(before.python), [
    'attn.Model',
    'attn.Model.embed',
    'attn.Result',
    'attn.Result.output',
    'attn.Result.weights',
    'attn.threads',
  ]);
  const broken = (changes) => {
    const { removed, changed } = differences(before, surfaceOf({ ...files, ...changes }));
    return [...removed, ...changed].map(({ name }) => name);
  };
  assert.deepEqual(broken({ '_attn.pyi': stub.replace('batch: int = 32', 'batch_size: int = 32') }), ['python: attn.Model.embed']);
  assert.deepEqual(broken({ '_attn.pyi': stub.replace('Words', 'Other words').replace('_inner', '_other').replace('hidden', 'seen') }), []);
  assert.deepEqual(broken({ '__init__.py': init.replace(', "threads"', '') }), ['python: attn.threads']);
  assert.deepEqual(broken({ '_results.py': results.replace('float | None', 'float') }), ['python: attn.Result.weights']);
});
