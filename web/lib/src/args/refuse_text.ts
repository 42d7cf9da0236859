import { errorWithHelp } from './error.js';

/** Refuses HTML, Git LFS pointers and gzip data. `subject` ends with a verb: "URL x returned". */
export function refuseText(op: string, argument: string, bytes: Uint8Array, expected: string, subject = `${argument} is`): void {
  const start = String.fromCharCode(...bytes.subarray(0, 64)).replace(/^(\u00ef\u00bb\u00bf)?\s*/, '');
  // Whole words: the length field of safetensors can look like their first letters.
  const [got, help] = /^<(!doctype|!--|html|head|body|\?xml)/i.test(start)
    ? ['HTML']
    : start.startsWith('version https://git-lfs')
      ? ['a Git LFS pointer', 'Check out the file with git lfs pull']
      : start.startsWith('\u001f\u008b\u0008')
        ? ['gzip data', 'The server has to send the header Content-Encoding: gzip']
        : [];
  if (got) throw errorWithHelp('FORMAT', `${op}: ${subject} ${got}, expected ${expected}`, help, { op, argument, expected, got });
}
