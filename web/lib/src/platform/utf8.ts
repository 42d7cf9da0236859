/** Created on first use, because worklets have no TextEncoder. */
import { errorWithHelp, reason } from '../args/error.js';

let encoder: TextEncoder | undefined;
let decoder: TextDecoder | undefined;
let strictDecoder: TextDecoder | undefined;

function made<T>(make: () => T): T {
  try {
    return make();
  } catch (cause) {
    const help = "In a worklet import attn from 'attn/service-worker'";
    throw errorWithHelp('ENVIRONMENT', `attn: this host has no Encoding API (${reason(cause)})`, help, {}, { cause });
  }
}

export const encodeUtf8 = (text: string) => (encoder ??= made(() => new TextEncoder())).encode(text);
export const decodeUtf8 = (bytes: AllowSharedBufferSource) => (decoder ??= made(() => new TextDecoder('utf-8', { ignoreBOM: true }))).decode(bytes);
/** Throws a TypeError if the bytes are not UTF-8. */
export const decodeStrictUtf8 = (bytes: AllowSharedBufferSource) =>
  (strictDecoder ??= made(() => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }))).decode(bytes);
