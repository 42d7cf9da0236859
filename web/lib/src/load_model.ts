/** loadModel(): reads a model's files and streams its weights into the module. Loaded when it is first asked for. */
import type { TextModel as Contract } from './attn.js';
import { abortable, aborted } from './abort.js';
import { ownList } from './arrays.js';
import { refuseText } from './binary.js';
import { takingTurns } from './breathe.js';
import { AttnError, describe, isAttnError, reason } from './error.js';
import { DiskFolder, type Folder, GivenFolder, missing, type ModelFile, pieceBytes } from './model_files.js';
import {
  type CheckedModelOptions,
  type FileName,
  fileNames,
  frozen,
  readModelOptions,
  readSource,
  type Source,
  withAdvice,
} from './model_options.js';
import { UrlFolder } from './model_url.js';
import type { NativeLayer } from './native.js';
import { Sha256 } from './sha256.js';
import { internalClass, readArguments } from './signature.js';
import { type About, type Lender, signatureOf, TextModel } from './text_model.js';
import { readObject } from './tokenizer/schema.js';
import { Tokenizer } from './tokenizer/tokenizer.js';

export { handlesOf } from './text_model.js';

const op = 'loadModel';

/** Files of a model other than its weights, and the most bytes that they may have. */
const smallFiles = {
  'config.json': 2 ** 20,
  'tokenizer.json': 2 ** 26,
  'tokenizer_config.json': 2 ** 20,
  'modules.json': 2 ** 20,
  '1_Pooling/config.json': 2 ** 20,
  'sentence_bert_config.json': 2 ** 20,
} as const satisfies Partial<Record<FileName, number>>;
const needed: readonly FileName[] = ['config.json', 'tokenizer.json', 'model.safetensors'];

/** Errors that speak of what is in the files; after others, what has come of them is good. */
const badFiles: readonly unknown[] = ['FORMAT', 'MISMATCH', 'UNSUPPORTED', 'CONFIG'];

/** The small files of a model, by name. */
type Small = Map<FileName, Uint8Array<ArrayBuffer>>;

/** One loadModel(): what goes on until it has ended. */
class Loading {
  readonly #lender: Lender;
  readonly #options: CheckedModelOptions;
  /** Ends what is still on its way when loading has ended, whichever way. */
  readonly #ending = new AbortController();
  readonly #onAbort = () => this.#ending.abort(this.#options.signal!.reason);
  #lastReport = -Infinity;
  #handle: NativeLayer | undefined;

  constructor(lender: Lender, options: CheckedModelOptions) {
    this.#lender = lender;
    this.#options = options;
    options.signal?.addEventListener('abort', this.#onAbort);
    if (options.signal?.aborted) this.#onAbort();
  }

  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** What the work gives, or ABORTED as soon as the caller's signal is: whatever is done with the signal further in, or is not. */
  #wait<T>(work: () => Promise<T>): Promise<T> {
    return abortable(this.ending, work, op);
  }

  #check(): void {
    if (this.ending.aborted) throw aborted(this.ending, op);
  }

  end(): void {
    this.#options.signal?.removeEventListener('abort', this.#onAbort);
    this.#ending.abort();
  }

  #report(file: FileName, { phase, total }: ModelFile, loaded: number, always: boolean): void {
    const { onProgress } = this.#options;
    const now = Date.now();
    // Some ten a second are enough to look at, and in a worker each is a message. None comes after the end.
    if (!onProgress || this.ending.aborted || (!always && now - this.#lastReport < 50)) return;
    this.#lastReport = now;
    try {
      onProgress(total === undefined || loaded > total ? { phase, file, loaded } : { phase, file, loaded, total });
    } catch (cause) {
      throw new AttnError('ARGUMENT', `${op}: onProgress threw (${reason(cause)})`, { op, argument: 'onProgress' }, { cause });
    }
    this.#check();
  }

  /** Reads a file to its end, and checks its digest. */
  async #read(name: FileName, file: ModelFile, use: (piece: Uint8Array) => void): Promise<void> {
    const wanted = this.#options.sha256.get(name);
    const digest = wanted === undefined ? undefined : new Sha256();
    const pieces = file.pieces();
    const turn = takingTurns();
    let loaded = 0;
    this.#report(name, file, 0, true);
    try {
      for (;;) {
        const next = await this.#wait(() => pieces.next());
        if (next.done) break;
        await turn();
        this.#check();
        const { value } = next;
        for (let at = 0; at < value.length; at += pieceBytes) {
          const piece = value.subarray(at, at + pieceBytes);
          digest?.update(piece);
          use(piece);
          loaded += piece.length;
          this.#report(name, file, loaded, false);
        }
      }
    } finally {
      pieces.return(undefined).catch(() => {});
    }
    const got = digest?.hex();
    if (got !== wanted)
      throw new AttnError('FORMAT', `${op}: ${file.name} has the SHA-256 ${got}, expected ${wanted}`, { op, file: name, expected: wanted, got });
    this.#report(name, file, loaded, true);
  }

  /** A file other than the weights; undefined where there is none and none is needed. */
  async #small(folder: Folder, name: keyof typeof smallFiles): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const file = await this.#wait(() => folder.open(name));
    const isNeeded = needed.includes(name);
    if (!file) return this.#absent(folder, name, isNeeded);
    const most = smallFiles[name];
    const pieces: Uint8Array[] = [];
    let size = 0;
    let html = false;
    try {
      await this.#read(name, file, (piece) => {
        size += piece.length;
        if (size > most)
          throw new AttnError('FORMAT', `${op}: ${file.name} has more than ${most} bytes`, { op, file: name, expected: `${most} bytes` });
        if (pieces.length === 0) html = /^\s*</.test(String.fromCharCode(...piece.subarray(0, 64)));
        pieces.push(piece.slice());
      });
    } catch (error) {
      // Servers of one page give it for every name that they do not know.
      if (html && !isNeeded && file.phase === 'download' && (error as AttnError).code === 'FORMAT') return this.#absent(folder, name, false);
      throw error;
    }
    if (html && !isNeeded && file.phase === 'download') return this.#absent(folder, name, false);
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    refuseText(op, name, bytes, 'JSON', file.phase === 'download' ? `${file.name} returned` : `${file.name} holds`);
    return bytes;
  }

  async #absent(folder: Folder, name: FileName, isNeeded: boolean): Promise<undefined> {
    if (isNeeded) throw await this.#wait(() => missing(folder, name));
    if (this.#options.sha256.has(name))
      throw new AttnError('FORMAT', `${op}: ${folder.nameOf(name)} is not there, expected the file of its sha256`, { op, file: name });
    return undefined;
  }

  /** Streams the weights into the module. */
  async #weights(folder: Folder, files: Small): Promise<NativeLayer> {
    const { engine } = this.#lender;
    const constructor = signatureOf(engine, 'constructor');
    const members: Readonly<Record<string, Uint8Array | undefined>> = {
      config: files.get('config.json'),
      modules: files.get('modules.json'),
      pooling: files.get('1_Pooling/config.json'),
      sentenceBertConfig: files.get('sentence_bert_config.json'),
      tokenizerConfig: files.get('tokenizer_config.json'),
    };
    engine.assertUsable(op);
    this.#handle = engine.create(internalClass, readArguments(op, constructor, [members]), op);
    const name: FileName = 'model.safetensors';
    const file = await this.#wait(() => folder.open(name));
    if (!file) throw await this.#wait(() => missing(folder, name));
    const [write, finish] = [signatureOf(engine, 'write'), signatureOf(engine, 'finish')];
    const head = new Uint8Array(64);
    let seen = 0;
    await this.#read(name, file, (piece) => {
      if (seen < head.length) {
        const start = piece.subarray(0, head.length - seen);
        head.set(start, seen);
        seen += start.length;
        refuseWeights(head.subarray(0, seen), file);
      }
      engine.call(op, write, [ownList(op, 'bytes', piece, 'Uint8Array')], this.#handle);
    });
    engine.call(op, finish, [], this.#handle);
    return this.#handle;
  }

  async #model(folder: Folder, files: Small): Promise<TextModel> {
    const lender = this.#lender;
    const { engine } = lender;
    const names = fileNames.filter((name) => name !== 'model.safetensors');
    const read = await Promise.all(names.map((name) => this.#small(folder, name)));
    read.forEach((bytes, i) => bytes && files.set(names[i]!, bytes));
    const config = frozen(readObject(files.get('config.json')!, 'config.json') as Record<string, unknown>);
    const tokenizer = new Tokenizer({ tokenizer: files.get('tokenizer.json')!, tokenizerConfig: files.get('tokenizer_config.json') });
    const handle = await this.#weights(folder, files);
    const about = engine.call(op, signatureOf(engine, 'about'), [], handle) as About;
    const file: FileName = 'sentence_bert_config.json';
    // It may ask for texts in small letters: a tokenizer that makes them so by itself does it.
    if (about.lowerCase && !tokenizer.lowerCases)
      throw new AttnError('UNSUPPORTED', `${op}: ${file}: do_lower_case is true, expected false, for this tokenizer keeps capitals`, {
        op,
        file,
        expected: 'false',
        got: 'true',
      });
    await folder.settle?.('complete', files);
    this.#check();
    this.#handle = undefined;
    if (about.labels) Object.freeze(about.labels);
    return new TextModel({ lender, handle, config, about, tokenizer });
  }

  /** The model; read once more where a cache held what was bad, and has been emptied. */
  async model(folder: Folder): Promise<TextModel> {
    for (;;) {
      const files: Small = new Map();
      try {
        return await this.#model(folder, files);
      } catch (thrown) {
        const handle = this.#handle;
        this.#handle = undefined;
        if (handle) this.#lender.engine.free(handle);
        const error = failure(thrown);
        if (!(await folder.settle?.(badFiles.includes(error.code) ? 'bad' : 'broken', files))) throw error;
      }
    }
  }
}

function refuseWeights(head: Uint8Array, { name, phase }: ModelFile): void {
  const subject = phase === 'download' ? `${name} returned` : `${name} holds`;
  refuseText(op, 'model.safetensors', head, 'safetensors', subject);
  // A zip is what torch.save() writes.
  if (head[0] === 0x50 && head[1] === 0x4b && head[2] === 3 && head[3] === 4)
    throw new AttnError('UNSUPPORTED', `${op}: ${subject} a zip, as PyTorch's own pickles are, not safetensors; save_pretrained() writes those`, {
      op,
      expected: 'safetensors',
      got: 'a zip',
    });
}

/** Running out of memory is the engine's RangeError. */
function failure(error: unknown): AttnError {
  if (isAttnError(error)) return error;
  return new AttnError(error instanceof RangeError ? 'MEMORY' : 'INTERNAL', `${op}: ${reason(error)}`, { op }, { cause: error });
}

/** `work` with the folder that the source is. */
async function withFolder<T>(
  { disk }: Lender,
  source: Source,
  options: CheckedModelOptions,
  ending: AbortSignal,
  work: (folder: Folder) => Promise<T>,
): Promise<T> {
  if ('files' in source) return work(new GivenFolder(source.files));
  let path: string | undefined;
  try {
    path = disk?.pathOf(source.location);
  } catch (cause) {
    throw new AttnError(
      'ARGUMENT',
      `${op}: source ${describe(source.location)}, not a URL (${reason(cause)})`,
      { op, argument: 'source' },
      { cause },
    );
  }
  return path === undefined ? UrlFolder.use(source.location, options, ending, work) : work(new DiskFolder(disk!, path));
}

export async function loadModel(lender: Lender, given: unknown, givenOptions: unknown): Promise<Contract> {
  const { engine } = lender;
  engine.assertUsable(op);
  const options = readModelOptions(givenOptions);
  const source = readSource(given);
  engine.assertUsable(op); // once more: a getter may have disposed of it
  const loading = new Loading(lender, options);
  try {
    return await withFolder(lender, source, options, loading.ending, (folder) => loading.model(folder));
  } catch (error) {
    throw withAdvice(failure(error), source);
  } finally {
    loading.end();
  }
}
