/** The package where import() is not allowed and no worker can be started: service workers, worklets. All of it comes with the first import. */
import type * as Contract from './attn.js';
import single from './attn.mjs';
import { loader } from './load.js';
import * as models from './load_model.js';
import { web } from './web.js';

export { AttnError } from './error.js';

const loadStatic = loader({ ...web, single, models: async () => models });

/** As much of the Encoding Standard as attn needs, for worklets, which have nothing of it. */
function completeWorklet(): void {
  if (typeof TextDecoder !== 'undefined') return;
  class Encoder {
    encode(text: string) {
      const bytes = encodeURIComponent(text).replace(/%(..)/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
      return Uint8Array.from(bytes, (byte) => byte.charCodeAt(0));
    }
  }
  class Decoder {
    decode(bytes: BufferSource) {
      const { buffer, byteOffset, byteLength } = ArrayBuffer.isView(bytes) ? bytes : new Uint8Array(bytes);
      return decodeURIComponent(
        Array.from(new Uint8Array(buffer, byteOffset, byteLength), (byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
      );
    }
  }
  Object.assign(globalThis, { TextEncoder: Encoder, TextDecoder: Decoder });
}

export const load: typeof Contract.load = async (options) => {
  completeWorklet();
  return loadStatic(options);
};
