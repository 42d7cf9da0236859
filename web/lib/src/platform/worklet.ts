/**
 * Replacements for classes that worklets lack. build.mjs injects them into service-worker.js. They use the host's classes if
 * there are any; globals are not changed, or read at import.
 */
class Encoder {
  encode(text: string) {
    const bytes = encodeURIComponent(text).replace(/%(..)/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
    return Uint8Array.from(bytes, (byte) => byte.charCodeAt(0));
  }
}

class Decoder {
  decode(bytes: BufferSource) {
    const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(bytes) ? bytes : new Uint8Array(bytes);
    const all = new Uint8Array(buffer, byteOffset, byteLength);
    let text = '';
    for (let at = 0, end; at < byteLength; at = end) {
      end = Math.min(at + 4096, byteLength);
      while ((all[end]! & 0xc0) === 0x80) ++end; // not inside a character
      text += decodeURIComponent(Array.from(all.subarray(at, end), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''));
    }
    return text;
  }
}

class Controller {
  readonly signal = Object.assign(new EventTarget(), { aborted: false, reason: undefined as unknown });
  abort(reason?: unknown) {
    if (this.signal.aborted) return;
    Object.assign(this.signal, { aborted: true, reason });
    this.signal.dispatchEvent(new Event('abort'));
  }
}

type Constructor = new (...args: unknown[]) => object;

const hostsOr = (name: string, Own: Constructor) =>
  function (...args: unknown[]) {
    return new ((globalThis as unknown as Record<string, Constructor | undefined>)[name] ?? Own)(...args);
  };

export const TextEncoder = hostsOr('TextEncoder', Encoder);
export const TextDecoder = hostsOr('TextDecoder', Decoder);
export const AbortController = hostsOr('AbortController', Controller);
