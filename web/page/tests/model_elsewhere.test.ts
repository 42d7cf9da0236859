/** Simulates `make page MODELS=0`. */
import { AttnError } from 'attn';
import type { Attn } from 'attn/worker';
import { expect, it, vi } from 'vitest';

vi.stubEnv('ATTN_INT8_BYTES', '0');
const { wordsOf } = await import('../src/model/errors.ts');
const { expectedBytes, otherHostOf } = await import('../src/model/known.ts');
const { chooseModel } = await import('../src/state/load_model.ts');
const { engine, failure } = await import('../src/state/model.ts');

it('a page without all-MiniLM-L6-v2 names the Hub as its source and loads it from there', async () => {
  const id = 'all-MiniLM-L6-v2';
  expect([otherHostOf(id), expectedBytes(id, 'int8')]).toEqual(['huggingface.co', 91_000_000]);
  const asked: unknown[] = [];
  engine.value = {
    info: Promise.resolve({ heap: { used: 0 } }),
    loadModel: async (source: unknown) => {
      asked.push(source);
      throw new AttnError('NETWORK', 'no such folder', { status: 404 });
    },
  } as unknown as Attn;
  await chooseModel(id);
  expect(asked).toEqual(['https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main/']);
  expect(failure.value!.onHub, 'the Hub was already requested').toBeUndefined();
  expect(wordsOf(failure.value!).cause).toMatch(/^huggingface\.co returned the error 404/);
});
