import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { rightOf100 } from '../src/state/bundled.ts';
import { inTestdata } from './models.ts';

it.each(Object.entries(rightOf100))('%s: the page says as many right of 100 as there are', (name, said) => {
  const { accuracy } = JSON.parse(readFileSync(inTestdata(`sentiment/${name}.json`), 'utf8')) as { readonly accuracy: number };
  expect(said).toBe(Math.round(100 * accuracy));
});
