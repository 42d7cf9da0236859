/** Identifies a build by its bytes, before compiling. */
import { AttnError } from '../args/error.js';
import { refuseText } from '../args/refuse_text.js';
import { decodeUtf8 } from '../platform/utf8.js';

/** The builds, as named in the custom section "attn". */
export type Build = `${'simd' | 'relaxed'}${'' | '-threads'}`;

const isBuild = (name: string): name is Build => /^(simd|relaxed)(-threads)?$/.test(name);

export const variantOf = (build: Build): 'simd' | 'relaxed' => (build.startsWith('simd') ? 'simd' : 'relaxed');
export const isThreaded = (build: Build): boolean => build.endsWith('-threads');
export const buildOf = (variant: 'simd' | 'relaxed', threaded: boolean): Build => `${variant}${threaded ? '-threads' : ''}`;

interface Sections {
  attn?: string;
  /** Offset of a section that exceeds the bytes. */
  truncatedAt?: number;
}

function sections(bytes: Uint8Array): Sections {
  const found: Sections = {};
  let at = 8;
  const number = (): number | undefined => {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = bytes[at++];
      if (byte === undefined) return undefined;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    return undefined;
  };
  while (at < bytes.length) {
    const start = at;
    const id = bytes[at++];
    const size = number();
    const end = at + (size ?? 0);
    if (size === undefined || end > bytes.length) return { ...found, truncatedAt: start };
    if (id === 0) {
      const length = number() ?? 0;
      const text = (from: number, to: number) => decodeUtf8(bytes.slice(from, to));
      if (at + length <= end && text(at, at + length) === 'attn') found.attn = text(at + length, end);
    }
    at = end;
  }
  return found;
}

/** Throws FORMAT with a description of other contents. */
export function identifyBytes(bytes: Uint8Array, subject: string): Build {
  const refuse = (got: string): never => {
    throw new AttnError('FORMAT', `load: ${subject} ${got}, expected attn's WebAssembly`, {
      op: 'load',
      argument: 'wasm',
      expected: "attn's WebAssembly",
      got,
    });
  };
  refuseText('load', 'wasm', bytes, 'WebAssembly', subject);
  if (bytes.length < 8) refuse(`${bytes.length} bytes`);
  const [a, b, c, d, version] = bytes;
  if (a !== 0 || b !== 0x61 || c !== 0x73 || d !== 0x6d || version !== 1)
    refuse(`bytes that start with ${Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, '0')).join(' ')}`);
  const { attn, truncatedAt } = sections(bytes);
  if (truncatedAt !== undefined) refuse(`a truncated module (${bytes.length} bytes, the section at ${truncatedAt} is longer)`);
  if (attn === undefined) return refuse('another or a truncated module (without a section "attn")');
  if (!isBuild(attn)) return refuse(`the build ${JSON.stringify(attn)} of another version of attn`);
  return attn;
}

export function identifyModule(module: WebAssembly.Module): Build {
  let section: ArrayBuffer | undefined;
  try {
    [section] = WebAssembly.Module.customSections(module, 'attn');
  } catch (cause) {
    // The object only has the tag of a module.
    throw new AttnError('ARGUMENT', 'load: wasm is another object, expected a WebAssembly.Module', { op: 'load', argument: 'wasm' }, { cause });
  }
  const name = section && decodeUtf8(section);
  if (name === undefined || !isBuild(name))
    throw new AttnError('FORMAT', 'load: wasm is another module (without a section "attn")', { op: 'load', argument: 'wasm' });
  return name;
}
