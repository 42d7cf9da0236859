/** loadModel(): reads a model's files and streams its weights into the module. Loaded when it is first asked for. */
import type { TextModel as Contract } from '../attn.js';
import { abortable, aborted } from '../platform/abort.js';
import { isPlainObject, ownList } from '../args/arrays.js';
import { tell } from '../args/options.js';
import { refuseText } from '../args/refuse_text.js';
import { takingTurns } from '../platform/breathe.js';
import { AttnError, describe, isAttnError, reason } from '../args/error.js';
import { DiskFolder, type Folder, GivenFolder, type ModelFile, pieceBytes } from './model_files.js';
import { type CheckedModelOptions, type FileName, frozen, readModelOptions, readSource, type Source, withAdvice } from '../args/model_options.js';
import { isModuleFolder, moduleFolder } from '../args/module_path.js';
import { UrlFolder } from './model_url.js';
import type { NativeLayer } from '../engine/native.js';
import { decodeUtf8 } from '../platform/utf8.js';
import { internalClass, readArguments } from '../args/signature.js';
import type { Lender } from './lender.js';
import { type About, signatureOf } from './model_parts.js';
import { TextModel } from './text_model.js';
import { lacksLazyParts, useLazyParts } from '../tokenizer/lazy_slot.js';
import { listOf, readJson, readObject, Section, unsupported } from '../tokenizer/schema.js';
import { Tokenizer } from '../tokenizer/tokenizer.js';

export { handlesOf } from './text_model.js';

const op = 'loadModel';

/** The most bytes that a file other than the weights may have: a vocabulary, or the weights of one map after the pooling. */
const most = (name: FileName) => (/(^|\/)(tokenizer\.json|model\.safetensors)$/.test(name) ? 2 ** 26 : 2 ** 20);

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
    tell(op, onProgress, total === undefined || loaded > total ? { phase, file, loaded } : { phase, file, loaded, total });
    this.#check();
  }

  /** Reads a file to its end, and checks its digest. */
  async #read(name: FileName, file: ModelFile, use: (piece: Uint8Array) => void): Promise<void> {
    const wanted = this.#options.sha256.get(name);
    const digest = wanted === undefined ? undefined : new (await this.#wait(() => this.#lender.onDemand())).Sha256();
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

  /** A file other than the weights; undefined where there is none and none is needed. One that is empty says nothing, which is not the same. */
  async #small(folder: Folder, files: Small, name: FileName, isNeeded: boolean): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const bytes = await this.#bytes(folder, name, isNeeded);
    if (bytes) files.set(name, bytes);
    return bytes;
  }

  /** A file that modules.json names. */
  async #named(folder: Folder, files: Small, name: FileName): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = await this.#small(folder, files, name, false);
    if (bytes) return bytes;
    const error = await this.#missing(folder, name);
    if (error.code === 'UNSUPPORTED') throw error;
    throw new AttnError('FORMAT', `${op}: there is no ${folder.nameOf(name)}, which modules.json names`, { op, file: name }, { cause: error });
  }

  async #bytes(folder: Folder, name: FileName, isNeeded: boolean): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const file = await this.#wait(() => folder.open(name));
    if (!file) return this.#absent(folder, name, isNeeded);
    const limit = most(name);
    const pieces: Uint8Array[] = [];
    let size = 0;
    let html = false;
    try {
      await this.#read(name, file, (piece) => {
        size += piece.length;
        if (size > limit)
          throw new AttnError('FORMAT', `${op}: ${file.name} has more than ${limit} bytes`, { op, file: name, expected: `${limit} bytes` });
        if (pieces.length === 0) html = /^\s*</.test(String.fromCharCode(...piece.subarray(0, 64)));
        pieces.push(piece.slice());
      });
    } catch (error) {
      // Servers of one page give it for every name that they do not know.
      if (html && !isNeeded && file.phase === 'download' && (error as AttnError).code === 'FORMAT') return this.#absent(folder, name, false);
      throw error;
    }
    if (html && !isNeeded && file.phase === 'download') return this.#absent(folder, name, false);
    if (size === 0)
      throw new AttnError('FORMAT', `${op}: ${file.name} is empty, expected ${isNeeded ? 'the file' : 'the file, or none at all'}`, {
        op,
        file: name,
      });
    const bytes = new Uint8Array(size);
    let at = 0;
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.length;
    }
    refuseText(
      op,
      name,
      bytes,
      name.endsWith('.json') ? 'JSON' : 'safetensors',
      file.phase === 'download' ? `${file.name} returned` : `${file.name} holds`,
    );
    return bytes;
  }

  /** The error of a file that must be there, and is not. */
  #missing(folder: Folder, name: FileName): Promise<AttnError> {
    return this.#wait(async () => (await this.#lender.onDemand()).missing(folder, name));
  }

  async #absent(folder: Folder, name: FileName, isNeeded: boolean): Promise<undefined> {
    if (isNeeded) throw await this.#missing(folder, name);
    if (this.#options.sha256.has(name))
      throw new AttnError('FORMAT', `${op}: ${folder.nameOf(name)} is not there, expected the file of its sha256`, { op, file: name });
    return undefined;
  }

  /** Streams the weights into the module that these files describe. */
  async #weights(folder: Folder, name: FileName, members: Readonly<Record<string, Uint8Array | undefined>>): Promise<NativeLayer> {
    const { engine } = this.#lender;
    const constructor = signatureOf(engine, 'constructor');
    const { weights } = this.#options;
    engine.assertUsable(op);
    this.#handle = engine.create(
      internalClass,
      readArguments(op, constructor, [members, { quantized: weights === 'auto' ? undefined : weights === 'int8' }]),
      op,
    );
    const file = await this.#wait(() => folder.open(name));
    if (!file) throw await this.#missing(folder, name);
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
    // It says where the others are, and whether they are needed.
    const modules = await this.#small(folder, files, 'modules.json', false);
    const folders = readModules(modules);
    const base = folders.get('Transformer') ?? '';
    const of = (kind: string, name: string) => {
      const own = folders.get(kind);
      return own === undefined ? undefined : this.#named(folder, files, own + name);
    };
    const first = this.#small(folder, files, `${base}config.json`, true);
    const second = this.#small(folder, files, `${base}tokenizer.json`, true).catch(async (error: unknown) => {
      await first; // of a folder that is not there it is what is missed, whichever answer comes first
      throw error;
    });
    const tokenizerConfigFile = this.#small(folder, files, `${base}tokenizer_config.json`, false);
    // With added_tokens_decoder transformers does not read these.
    const isNew = tokenizerConfigFile.then((config) => config !== undefined && decodeUtf8(config).includes('"added_tokens_decoder"'));
    const old = async (name: string) => ((await isNew) ? undefined : this.#small(folder, files, base + name, false));
    const [configFile, tokenizerFile, tokenizerConfig, specialTokensMap, addedTokens, sentenceBertConfig, prompts, pooling, dense, denseWeights] =
      await Promise.all([
        first,
        second,
        tokenizerConfigFile,
        old('special_tokens_map.json'),
        old('added_tokens.json'),
        modules && this.#small(folder, files, `${base}sentence_bert_config.json`, false),
        modules && this.#small(folder, files, 'config_sentence_transformers.json', false),
        of('Pooling', 'config.json'),
        of('Dense', 'config.json'),
        of('Dense', 'model.safetensors'),
      ]);
    const weights = `${base}model.safetensors`;
    for (const name of this.#options.sha256.keys()) if (name !== weights && !files.has(name)) await this.#absent(folder, name, false);
    const config = frozen(readObject(configFile!, 'config.json') as Record<string, unknown>);
    const read = () => new Tokenizer({ tokenizer: tokenizerFile!, tokenizerConfig, specialTokensMap, addedTokens, modelType: config['model_type'] });
    let tokenizer = read();
    if (lacksLazyParts()) {
      useLazyParts((await lender.onDemand()).rare);
      tokenizer = read();
    }
    const small = { config: configFile, modules, pooling, sentenceBertConfig, tokenizerConfig, prompts, dense, denseWeights };
    const handle = await this.#weights(folder, weights, small);
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
    if (tokenizer.paddingSide === 'left') unsupported('tokenizer_config.json.padding_side', 'left', 'right');
    await folder.settle?.('complete', files);
    this.#check();
    this.#handle = undefined;
    if (about.labels) Object.freeze(about.labels);
    return new TextModel({ lender, handle, config, about, tokenizer, files, base });
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

/** The folder of each kind of module that modules.json names, with a slash. Whether attn has them is the module's to say. */
function readModules(file: Uint8Array | undefined): Map<string, string> {
  const folders = new Map<string, string>();
  if (!file) return folders;
  for (const [i, each] of listOf(readJson(file, 'modules.json'), 'modules.json').entries()) {
    if (!isPlainObject(each)) continue;
    const module = new Section(each, `modules.json[${i}]`);
    const path = moduleFolder(module.string('path', ''));
    if (!isModuleFolder(path)) unsupported(module.at('path'), path, 'the name of a folder');
    const kind = String(module.get('type')).replace(/^.*\./, '');
    // Where the first is something else there may be no config.json to say so.
    if (i === 0 && kind !== 'Transformer') unsupported(module.at('type'), kind, 'Transformer');
    folders.set(kind, path && `${path}/`);
  }
  return folders;
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
