/**
 * Each probe is a minimal module with one instruction. wasm-feature-detect is asynchronous, tests features that attn
 * does not use, and tests relaxed SIMD with another instruction.
 */
import { errorWithHelp } from '../args/error.js';

function returnsVector(...body: number[]): Uint8Array<ArrayBuffer> {
  const code = [0 /* no locals */, ...body, 0x0b /* end */];
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00], // "\0asm", version 1
    ...[0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b], // types: () -> v128
    ...[0x03, 0x02, 0x01, 0x00], // functions: one, of type 0
    ...[0x0a, code.length + 2, 0x01, code.length, ...code],
  ]);
}

const zeros = [0x41, 0x00, 0xfd, 0x0f]; // i32.const 0, i8x16.splat
const simdProbe = () => returnsVector(...zeros);
const relaxedProbe = () => returnsVector(...zeros, ...zeros, ...zeros, 0xfd, 0x85, 0x02); // f32x4.relaxed_madd
// try .. catch_all .. end: the kind of exceptions that the builds use.
const exceptionsProbe = () => returnsVector(0x06, 0x7b, ...zeros, 0x19, ...zeros, 0x0b);

const accepts = (probe: Uint8Array<ArrayBuffer>) => WebAssembly.validate(probe);

/** Throws the host's own error. WebAssembly.compile() may never settle in WebKitGTK 2.50. */
export const assertCompiles = () => void new WebAssembly.Module(simdProbe());

export const acceptsRelaxed = () => accepts(relaxedProbe());

export function assertEngine(): void {
  const refuse = (what: string) => {
    throw errorWithHelp(
      'ENVIRONMENT',
      `load: this engine ${what}`,
      'attn needs WebAssembly with SIMD and exceptions (Chrome 95, Firefox 100, Safari 16.4, Node 20 or later)',
      { op: 'load', expected: 'WebAssembly with SIMD and exceptions', got: what },
    );
  };
  if (typeof WebAssembly !== 'object' || typeof WebAssembly.validate !== 'function') refuse('has no WebAssembly');
  if (!accepts(simdProbe())) refuse('has no WebAssembly SIMD');
  if (!accepts(exceptionsProbe())) refuse('has no WebAssembly exceptions');
}
