import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { rightOf100 } from '../src/state/bundled.ts';
import { inTestdata } from './models.ts';

it.each(Object.entries(rightOf100))('the accuracy that the page shows for %s matches the test data', (name, said) => {
  const { accuracy } = JSON.parse(readFileSync(inTestdata(`sentiment/${name}.json`), 'utf8')) as { readonly accuracy: number };
  expect(said).toBe(Math.round(100 * accuracy));
});
