import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('../../web/page', import.meta.url)),
  test: { env: { ATTN_TEST_WAIT: '4000' } },
});
