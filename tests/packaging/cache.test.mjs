/** Tests attn/cache of the npm package, and the cache folder with several processes and the command. */
import { strict as assert } from 'node:assert';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync } from 'node:zlib';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { startServer } from '../../wasm-tests/support/server.mjs';
import { execute, project } from './consumer.mjs';

const consumer = project('cache');
let server;
let lastRun = 0;
before(async () => {
  consumer.install();
  server = await startServer();
});
after(() => server.close());

/** A model folder of the test server, and an empty cache folder. */
function places(how, name = 'tiny-bert') {
  const run = `packaging-${++lastRun}`;
  const folder = join(consumer.work, run);
  rmSync(folder, { recursive: true, force: true });
  return { address: `${server.url}model/${how}/run-${run}/${name}`, run, folder, env: { ...process.env, ATTN_CACHE_DIR: folder } };
}
async function weightsAsked(run) {
  const asked = await (await fetch(`${server.url}asked?run=${run}`)).json();
  return asked.filter(({ method, file }) => method === 'GET' && file === 'model.safetensors');
}
const loading = `import { load } from 'attn';
const attn = await load();
const phases = new Set();
const onProgress = ({ phase, loaded, total }) => (phases.add(phase), console.error(loaded, total));
const model = await attn.loadModel(process.argv[2], { onProgress });
const { data } = await model.embed('It was good');
console.log([...phases].join(), Math.hypot(...data) > 0);
attn.dispose();
`;

test('attn/cache is a small self-contained file with types, for import and require()', limit, async (t) => {
  const code = readFileSync(join(consumer.installed, 'dist/cache.js'));
  t.diagnostic(`${brotliCompressSync(code).length} bytes of brotli`);
  assert.doesNotMatch(code.toString(), /\bimport\s*[({*"'`]|\bfetch\(|WebAssembly\.|node:/, 'it loads nothing');
  const program = `(async () => {
  console.log(await cache.list({ cacheDir: 'none' }), await cache.size({ cacheDir: 'none' }), await cache.delete({ cacheDir: 'none' }));
  await cache.list().catch((error) => console.log(error instanceof AttnError, error.code, error.help));
})();`;
  const wanted = '[] 0 0\ntrue ENVIRONMENT Pass cacheDir, or set the environment variable ATTN_CACHE_DIR\n';
  const imported = consumer.script('entry.mjs', `import { AttnError, cache } from 'attn/cache';\n${program}`);
  const required = consumer.script('entry.cjs', `const { AttnError, cache } = require('attn/cache');\n${program}`);
  for (const script of [imported, required]) assert.equal(await consumer.node([script]), wanted);
  consumer.script(
    'entry.ts',
    `import { hub } from 'attn';
import { cache, type CachedFile, type CacheOptions } from 'attn/cache';
const options: CacheOptions = { cacheDir: 'a' };
export async function use(): Promise<number> {
  const files: CachedFile[] = await cache.list(options);
  const [{ url, bytes, complete, date }] = files;
  const text: string = url + (complete ? date?.toISOString() ?? '' : '');
  // @ts-expect-error: a model is not a URL
  await cache.delete(files);
  // @ts-expect-error: undefined may be a mistake
  await cache.delete(undefined, options);
  return bytes + text.length + (await cache.size()) + (await cache.delete()) + (await cache.delete(options)) + (await cache.delete(hub('a/b'), options));
}
`,
  );
  await consumer.typeCheck('entry.ts');
});

test('of several processes that load one model, one downloads and the others wait for its files', limit, async () => {
  const { address, run, folder, env } = places('good', 'large-tiny-bert');
  const script = consumer.script('loading.mjs', loading);
  const loads = await Promise.all([1, 2, 3].map(() => execute(process.execPath, [script, address], { cwd: consumer.consumer, env })));
  assert.deepEqual(loads.map(({ stdout }) => stdout).sort(), ['cache true\n', 'cache true\n', 'download true\n']);
  assert.equal((await weightsAsked(run)).length, 1);
  assert.deepEqual(readdirSync(join(folder, 'attn-models-locks')), []);
  for (const name of readdirSync(join(folder, 'attn-models'))) assert.match(name, /^[0-9a-f]{64}$/);
  assert.deepEqual(readdirSync(join(folder, 'attn-models-parts')), []);
});

test('the next process continues the download of one that was killed', limit, async () => {
  const { address, run, folder, env } = places('stalls', 'large-tiny-bert');
  const script = consumer.script('loading.mjs', loading);
  const child = spawn(process.execPath, [script, address], { cwd: consumer.consumer, env, stdio: 'ignore' });
  const ended = new Promise((done) => child.on('exit', done));
  const parts = () => {
    try {
      return readdirSync(join(folder, 'attn-models-parts')).filter((name) => !name.endsWith('.tmp'));
    } catch {
      return [];
    }
  };
  while (parts().length === 0 && child.exitCode === null) await sleep(20);
  child.kill('SIGKILL');
  await ended;
  assert.equal(readdirSync(join(folder, 'attn-models-locks')).length, 1, 'its lock is left');
  const { stdout } = await execute(process.execPath, [script, address], { cwd: consumer.consumer, env });
  assert.equal(stdout, 'download true\n');
  const asked = await weightsAsked(run);
  assert.equal(asked.length, 2);
  assert.equal(asked[1].range, `bytes=${4 * 2 ** 20}-`);
  assert.equal((await execute(process.execPath, [script, address], { cwd: consumer.consumer, env })).stdout, 'cache true\n');
});

test('the command reads a model from its URL, and keeps it in ATTN_CACHE_DIR', limit, async () => {
  const { address, run, folder, env } = places('good', 'tiny-bert-cls');
  const embed = async () => {
    const child = execute(join(consumer.consumer, 'node_modules/.bin/attn'), ['embed', `${address}?signature=${Math.random()}`], {
      cwd: consumer.consumer,
      env,
    });
    child.child.stdin.end('It was good\n');
    return (await child).stdout;
  };
  const first = await embed();
  assert.match(first, /^\[-?\d/);
  assert.equal(await embed(), first);
  assert.equal((await weightsAsked(run)).length, 1);
  const listing = consumer.script(
    'listing.mjs',
    `import { cache } from 'attn/cache';
console.log((await cache.list()).map(({ url }) => url.replace(/.*\\//, '')).join(' '));
console.log(await cache.delete(process.argv[2]) > 2, await cache.size());
`,
  );
  const { stdout } = await execute(process.execPath, [listing, address], { cwd: consumer.consumer, env });
  assert.match(stdout, /config\.json.* model\.safetensors .*tokenizer\.json.*\ntrue 0\n$/);
  assert.deepEqual(readdirSync(join(folder, 'attn-models')), []);
});
