/** How long tests take, one JSON line [name, seconds] each in the file that ATTN_TEST_TIMINGS names; tools/test.mjs prints the slowest. */
import { appendFileSync } from 'node:fs';

export function took(name, seconds) {
  const file = process.env.ATTN_TEST_TIMINGS;
  if (file && seconds >= 1) appendFileSync(file, `${JSON.stringify([name, seconds])}\n`);
}
