import type { FileHandle } from 'node:fs/promises';
import { naming } from './system_error.js';

/** Only vectors can be npy. */
export interface Result {
  readonly json: string;
  readonly text: string;
  readonly numbers?: Float32Array;
}

export class Output {
  readonly #path: string | undefined;
  readonly #file: FileHandle | undefined;
  readonly #isFile: boolean;
  readonly #width: number | undefined;
  readonly #kept: Uint8Array[] = [];
  #rows = 0;

  /** `width`: numbers per row. A pipe is not seekable: vectors wait until their number is known. */
  constructor(path: string | undefined, file: FileHandle | undefined, isFile: boolean, width: number | undefined) {
    this.#path = path;
    this.#file = file;
    this.#isFile = isFile;
    this.#width = width;
  }

  async start(): Promise<void> {
    if (this.#isFile && this.#width !== undefined) await this.#put(this.#header());
  }

  async add(results: readonly Result[], isText: boolean): Promise<void> {
    this.#rows += results.length;
    if (this.#width === undefined) {
      await this.#put(Buffer.from(results.map(({ json, text }) => `${isText ? text : json}\n`).join('')));
      return;
    }
    const bytes = results.map(({ numbers }) => new Uint8Array(numbers!.buffer, numbers!.byteOffset, numbers!.byteLength));
    if (this.#isFile) await this.#put(Buffer.concat(bytes));
    else this.#kept.push(...bytes);
  }

  async end(): Promise<void> {
    if (this.#width === undefined) return;
    if (this.#isFile) await naming(this.#path!, this.#file!.write(this.#header(), 0, undefined, 0));
    else for (const bytes of [this.#header(), ...this.#kept]) await this.#put(bytes);
  }

  /** Has 128 bytes for any number of rows. */
  #header(): Buffer {
    const dictionary = `{'descr': '<f4', 'fortran_order': False, 'shape': (${this.#rows}, ${this.#width}), }`;
    return Buffer.from(`\x93NUMPY\x01\x00\x76\x00${dictionary.padEnd(117)}\n`, 'latin1');
  }

  async #put(bytes: Uint8Array): Promise<void> {
    if (this.#file) {
      for (let at = 0; at < bytes.length;) at += (await naming(this.#path!, this.#file.write(bytes, at))).bytesWritten;
      return;
    }
    await new Promise<void>((resolve) => process.stdout.write(bytes, (error) => void (error ?? resolve())));
  }
}
