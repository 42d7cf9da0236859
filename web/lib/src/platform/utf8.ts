/** UTF-8. Created on first use, because worklets have no TextEncoder. */
import { AttnError, reason } from '../args/error.js';

let encoder: TextEncoder | undefined;
let decoder: TextDecoder | undefined;

function made<T>(make: () => T): T {
  try {
    return make();
  } catch (cause) {
    throw new AttnError(
      'ENVIRONMENT',
      `attn: this host lacks what attn needs (${reason(cause)}); worklets import from 'attn/service-worker'`,
      {},
      { cause },
    );
  }
}

export const encodeUtf8 = (text: string) => (encoder ??= made(() => new TextEncoder())).encode(text);
export const decodeUtf8 = (bytes: AllowSharedBufferSource) => (decoder ??= made(() => new TextDecoder('utf-8', { ignoreBOM: true }))).decode(bytes);
