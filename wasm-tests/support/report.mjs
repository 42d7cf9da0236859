/** What tools/test.mjs says of single tests at its end, one JSON line each in the file that ATTN_TEST_REPORT names. */
import { appendFileSync } from 'node:fs';

function report(entry) {
  const file = process.env.ATTN_TEST_REPORT;
  if (file) appendFileSync(file, `${JSON.stringify(entry)}\n`);
}

/** How long a test took. */
export function took(name, seconds) {
  if (seconds >= 1) report({ name, seconds });
}

/** That a test failed, with the beginning of its message. */
export function failed(name, error) {
  report({ name, why: String(error?.message ?? error).slice(0, 400) });
}
