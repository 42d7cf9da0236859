import { execFileSync } from 'node:child_process';
import { existsSync, renameSync, statSync } from 'node:fs';
import { at } from './paths.mjs';

const program = at('build/native/native-tests/digest/attn_digest');

export const hasNativeDigest = () => existsSync(program);

/** Writes the hashes of the native build on four lanes, if its program is newer. They are the same for every number of threads, or there is no file. */
export function nativeDigest() {
  const file = at('build/native/digest.txt');
  if (!existsSync(program))
    throw new Error('build/native has no attn_digest: cmake --preset native && cmake --build --preset native --target attn_digest');
  if (!existsSync(file) || statSync(file).mtimeMs < statSync(program).mtimeMs) {
    const written = `${file}.${process.pid}`; // another step may read or write it at the same time
    execFileSync(program, [written], { stdio: 'inherit', env: { ...process.env, ATTN_MAX_ARCH: 'emulated' } });
    renameSync(written, file);
  }
}
