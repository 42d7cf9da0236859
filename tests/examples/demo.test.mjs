/** Tests the output of `make demo`, and the files that its server provides. */
import { strict as assert } from 'node:assert';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { miniLm, output } from './run.mjs';

test('make demo prints an attention map, the difference to PyTorch and a classification', limit, async () => {
  const text = await output(process.execPath, [at('tools/demo.mjs')], { env: { ...process.env, SERVE: '0' } });
  assert.match(text, /^ {6}\[CLS\] .*\[CLS\]$/m, 'a map');
  assert.match(text, /^Strongest: got → awarded 0\.58, /m);
  assert.ok(Number(/^Largest difference to PyTorch .*: (\d\.\de-\d+)$/m.exec(text)[1]) < 2e-6, 'the difference to PyTorch');
  assert.match(text, /^“It could have been a great film, but the story is dull\.” → negative, [5-9]\d % sure$/m);
  assert.match(text, existsSync(miniLm) ? /^ {3}0\.523 {2}That person is glad\.$/m : /tools\/setup models/);
});

test('make demo serves the models next to the page and nothing else of the repository', limit, async () => {
  const server = await serve({ port: 0, root: at('examples/browser') });
  try {
    const get = async (path) => {
      const response = await fetch(server.url + path);
      return { status: response.status, type: response.headers.get('content-type'), bytes: Buffer.from(await response.arrayBuffer()) };
    };
    const folders = ['testdata/models/sentiment', ...(existsSync(miniLm) ? ['models/all-MiniLM-L6-v2'] : [])];
    for (const path of folders.map((folder) => `${folder}/config.json`)) {
      const { status, type, bytes } = await get(path);
      assert.deepEqual([status, type, bytes.equals(readFileSync(at(path)))], [200, 'application/json', true], path);
    }
    for (const path of ['models/none/config.json', 'models/', 'package.json']) assert.equal((await get(path)).status, 404, path);
    for (const path of ['models/..%2fpackage.json', 'web/lib/dist/..%2fpackage.json']) assert.equal((await get(path)).status, 403, path);
    assert.equal((await get('models/%')).status, 400);
  } finally {
    await server.close();
  }
});
