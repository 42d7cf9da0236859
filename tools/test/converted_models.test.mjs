import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

test('a converted sentence model has the file of prompts that its loader asks for', () => {
  const root = mkdtempSync(join(tmpdir(), 'converted-'));
  try {
    const at = (...path) => join(root, ...path);
    for (const folder of ['tools', 'web/lib', 'models/all-MiniLM-L6-v2-int8', 'models/all-MiniLM-L6-v2-float16'])
      mkdirSync(at(folder), { recursive: true });
    cpSync(fileURLToPath(new URL('../converted_models.mjs', import.meta.url)), at('tools/converted_models.mjs'));
    writeFileSync(at('web/lib/package.json'), '{}');
    writeFileSync(at('models/all-MiniLM-L6-v2-int8/modules.json'), '[]');
    const run = () => execFileSync(process.execPath, [at('tools/converted_models.mjs'), 'int8', 'float16']);
    run();
    const prompts = at('models/all-MiniLM-L6-v2-int8/config_sentence_transformers.json');
    assert.deepEqual(JSON.parse(readFileSync(prompts, 'utf8')), {});
    assert.deepEqual(readdirSync(at('models/all-MiniLM-L6-v2-float16')), [], 'not a sentence model');
    writeFileSync(prompts, '{"prompts":{}}');
    run();
    assert.equal(readFileSync(prompts, 'utf8'), '{"prompts":{}}', 'published prompts stay');
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
