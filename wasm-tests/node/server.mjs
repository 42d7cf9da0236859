/**
 * Vitest's global set-up: starts the test server, writes the native digest if the suite `bits` runs and that build
 * exists, and prints collected notes at the end.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { hasNativeDigest, nativeDigest } from '../support/native_digest.mjs';
import { startServer } from '../support/server.mjs';

export default async function setup(project) {
  // After a native build the digest takes minutes, and only this suite reads it.
  const { testFiles } = await project.globTestFiles(project.vitest.filenamePattern);
  if (testFiles.some((file) => basename(file) === 'bits.ts') && hasNativeDigest()) nativeDigest();
  const server = await startServer();
  const temporary = mkdtempSync(join(tmpdir(), 'attn-node-'));
  const notes = join(temporary, 'notes.txt');
  Object.assign(process.env, { ATTN_TEST_SERVER: server.url, ATTN_TEST_NOTES: notes });
  return async () => {
    if (existsSync(notes)) console.log(readFileSync(notes, 'utf8').trim());
    rmSync(temporary, { recursive: true, force: true });
    await server.close();
  };
}
