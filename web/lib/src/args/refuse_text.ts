import { AttnError } from './error.js';

/** Refuses what servers and version control give in place of a binary file. `subject` is "wasm is" or "URL x returned". */
export function refuseText(op: string, argument: string, bytes: Uint8Array, expected: string, subject = `${argument} is`): void {
  const start = String.fromCharCode(...bytes.subarray(0, 64)).replace(/^(\u00ef\u00bb\u00bf)?\s*/, '');
  // Whole words, since safetensors begin with a number that may look like the first letters.
  const got = /^<(!doctype|!--|html|head|body|\?xml)/i.test(start)
    ? 'HTML'
    : start.startsWith('version https://git-lfs')
      ? 'a Git LFS pointer (the file itself was not checked out)'
      : start.startsWith('\u001f\u008b\u0008')
        ? 'gzip data (the server does not say Content-Encoding: gzip)'
        : undefined;
  if (got) throw new AttnError('FORMAT', `${op}: ${subject} ${got}, not ${expected}`, { op, argument, expected, got });
}
