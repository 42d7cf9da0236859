import { execFileSync } from 'node:child_process';
import { existsSync, renameSync, statSync } from 'node:fs';
import { at } from './paths.mjs';

const program = at('build/native/native-tests/digest/attn_digest');

export const hasNativeDigest = () => existsSync(program);

/**
 * Writes the hashes of the native 4-lane build if its program is newer; writes nothing if they differ between numbers
 * of threads.
 */
export function nativeDigest() {
  const file = at('build/native/digest.txt');
  if (!existsSync(program))
    throw new Error('build/native has no attn_digest: cmake --preset native && cmake --build --preset native --target attn_digest');
  if (!existsSync(file) || statSync(file).mtimeMs < statSync(program).mtimeMs) {
    const written = `${file}.${process.pid}`; // a concurrent step may read or write the file
    execFileSync(program, [written], { stdio: 'inherit', env: { ...process.env, ATTN_MAX_ARCH: 'emulated' } });
    renameSync(written, file);
  }
}
