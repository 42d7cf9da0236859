import { execFile, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';

export const tarball = at('build/attn.tgz');
export const tsc = at('node_modules/typescript/bin/tsc');

/** The worked example; its first number is known from the article. */
export const attention = `
const [q, k, v] = [[1, 0, 2, 2, 2, 2, 2, 1, 3], [0, 1, 1, 4, 4, 0, 2, 3, 1], [1, 2, 3, 2, 8, 0, 2, 6, 3]].map((rows) => ({ data: new Float32Array(rows), dims: [3, 3] }));
const { output } = await attn.scaledDotProductAttention(q, k, v, { scale: 1 });
console.log(output.dims.join(), output.data[0].toFixed(6));
await attn.dispose();
`;
export const expected = '3,3 1.936621';

export const reading = `
const model = await attn.loadModel(process.argv.at(-1));
const [[best, ...others]] = await model.classify('It was good');
console.log((await model.embed(['a', 'b'])).dims.join(), others.length, best.score > others[0].score);
await attn.dispose();
`;
export const read = '2,32 2 true';
export const checkpoint = at('testdata/models/tiny-bert');

export const builds = ['simd', 'relaxed', 'simd-threads', 'relaxed-threads'];

export function* filesOf(folder, prefix = '') {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) yield* filesOf(join(folder, entry.name), `${prefix}${entry.name}/`);
    else yield prefix + entry.name;
  }
}

export const execute = promisify(execFile);

/** A project for one test file, which can access nothing of this repository but the package. */
export function project(name) {
  const work = at('build/tests/packaging', name);
  const consumer = join(work, 'consumer');
  return {
    work,
    consumer,
    installed: join(consumer, 'node_modules/attn'),

    install() {
      if (!existsSync(tarball)) throw new Error('build/attn.tgz is missing: make package');
      rmSync(work, { recursive: true, force: true });
      mkdirSync(consumer, { recursive: true });
      writeFileSync(join(consumer, 'package.json'), JSON.stringify({ name: 'consumer', version: '1.0.0', private: true, type: 'module' }));
      execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--ignore-scripts', tarball], { cwd: consumer, stdio: 'pipe' });
    },

    script: (file, text) => (writeFileSync(join(consumer, file), text), file),

    async node(args, options = {}) {
      try {
        return (await execute(process.execPath, args, { cwd: consumer, maxBuffer: 1 << 24, timeout: limit.timeout / 2, ...options })).stdout;
      } catch (error) {
        throw new Error(`node ${args.join(' ')}: exit ${error.code}\n${error.stdout}${error.stderr}`, { cause: error });
      }
    },

    /** Type-checks a file with tsc --strict, with both kinds of module resolution. */
    async typeCheck(file) {
      const compilerOptions = { strict: true, noEmit: true, target: 'es2022', lib: ['es2022', 'dom'], types: [], skipLibCheck: false };
      for (const [moduleResolution, module] of [
        ['nodenext', 'nodenext'],
        ['bundler', 'esnext'],
      ]) {
        const options = { compilerOptions: { ...compilerOptions, module, moduleResolution }, files: [file] };
        writeFileSync(join(consumer, 'tsconfig.json'), JSON.stringify(options));
        await this.node([tsc, '-p', '.']);
      }
    },
  };
}
