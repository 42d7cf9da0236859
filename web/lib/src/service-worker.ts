/** The package where import() is not allowed and no worker can be started: service workers, worklets. All of it comes with the first import. */
import type * as Contract from './attn.js';
import single from './engine/glue/attn.mjs';
import { complete } from './platform/complete.js';
import { loader } from './load/load.js';
import * as models from './model/load_model.js';
import * as onDemand from './model/on_demand.js';
import { web } from './load/web.js';

export { AttnError } from './args/error.js';

const loadStatic = loader({ ...web, single, models: async () => models, onDemand: async () => onDemand });

/** As much as attn needs of what worklets lack: the Encoding Standard and AbortController. */
function completeWorklet(): void {
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
  complete({ TextEncoder: Encoder, TextDecoder: Decoder, AbortController: Controller });
}

export const load: typeof Contract.load = async (options) => {
  completeWorklet();
  return loadStatic(options);
};
