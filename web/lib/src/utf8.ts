/** UTF-8. Nothing is made at import: not every host has these classes. */

let encoder: TextEncoder | undefined;
let decoder: TextDecoder | undefined;

export const encodeUtf8 = (text: string) => (encoder ??= new TextEncoder()).encode(text);
export const decodeUtf8 = (bytes: AllowSharedBufferSource) => (decoder ??= new TextDecoder('utf-8', { ignoreBOM: true })).decode(bytes);
