/** Streams a model's weights into the module. Imported with the first model. */
import type { ImageModel, TextModel as Contract } from '../attn.js';
import { abortable, aborted } from '../platform/abort.js';
import { isPlainObject, ownList } from '../args/arrays.js';
import { tell } from '../args/options.js';
import { refuseText } from '../args/refuse_text.js';
import { yieldEvery30ms } from '../platform/event_loop.js';
import { AttnError, describe, errorWithHelp, isAttnError, reason } from '../args/error.js';
import { DiskFolder, type Folder, GivenFolder, type ModelFile, pieceBytes } from './model_files.js';
import { type CheckedModelOptions, type FileName, frozen, readModelOptions, readSource, type Source, withAdvice } from '../args/model_options.js';
import { isModuleFolder, moduleFolder } from '../args/module_path.js';
import { UrlFolder } from './model_url.js';
import type { NativeLayer } from '../engine/native.js';
import { decodeUtf8 } from '../platform/utf8.js';
import { internalClass, readArguments } from '../args/signature.js';
import type { ModelContext } from './model_context.js';
import { type ModelFacts, signatureOf } from './model_state.js';
import { TextModel } from './text_model.js';
import { lacksLazyParts, useLazyParts } from '../tokenizer/lazy_slot.js';
import { listOf, readJson, readObject, Section, unsupported } from '../tokenizer/schema.js';
import { Tokenizer } from '../tokenizer/tokenizer.js';

export { chatFilesOf, handlesOf } from './text_model.js';

const op = 'loadModel';
const index = 'model.safetensors.index.json';

/** Byte limits for files other than the weights. */
const most = (name: FileName) => (/(^|\/)(tokenizer\.json|model\.safetensors)$/.test(name) ? 2 ** 26 : name.endsWith(index) ? 2 ** 24 : 2 ** 20);

/** Share of the progress, because the weights' size is known only after all other files. */
const shareOfSmallFiles = 0.05;

/** Approaches 1 if the size is unknown, with 1/2 at `half` bytes. */
const partOf = (loaded: number, size: number | undefined, half: number) =>
  size === undefined || loaded > size ? loaded / (loaded + half) : size && loaded / size;

/** Errors in the contents of files. After others the downloaded bytes are still good. */
const badFiles: readonly unknown[] = ['FORMAT', 'MISMATCH', 'UNSUPPORTED', 'CONFIG'];

/** A promise if another file decides it. */
type Needed = boolean | Promise<boolean>;

type Small = Map<FileName, Uint8Array<ArrayBuffer>>;

class Loading {
  readonly #context: ModelContext;
  readonly #options: CheckedModelOptions;
  readonly #ending = new AbortController();
  readonly #onAbort = () => this.#ending.abort(this.#options.signal!.reason);
  readonly #opened = new Set<FileName>();
  #lastReport = -Infinity;
  #progress = 0;
  #smallBytes = 0;
  #handle: NativeLayer | undefined;

  constructor(context: ModelContext, options: CheckedModelOptions) {
    this.#context = context;
    this.#options = options;
    options.signal?.addEventListener('abort', this.#onAbort);
    if (options.signal?.aborted) this.#onAbort();
  }

  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** Rejects with ABORTED even if `work` ignores the signal. */
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
    // At most 20 a second (each is a message in a worker), none after the end.
    if (!onProgress || this.ending.aborted || (!always && now - this.#lastReport < 50)) return;
    this.#lastReport = now;
    const progress = this.#progress;
    tell(op, onProgress, total === undefined || loaded > total ? { phase, file, loaded, progress } : { phase, file, loaded, total, progress });
    this.#check();
  }

  async #open(folder: Folder, name: FileName, from = 0): Promise<ModelFile | undefined> {
    const wanted = this.#options.sha256.get(name);
    const file = await this.#wait(() => folder.open(name, wanted === undefined ? from : 0)); // a digest needs the whole file
    if (!file || wanted === undefined) return file;
    this.#opened.add(name);
    const { verified } = await this.#wait(() => this.#context.lazyTasks());
    return { ...file, pieces: () => verified(op, file, name, wanted) };
  }

  async #read(name: FileName, file: ModelFile, use: (piece: Uint8Array) => void, isWeights = false): Promise<void> {
    const pieces = file.pieces();
    const turn = yieldEvery30ms();
    let loaded = 0;
    const shown = file.source?.file ?? name;
    this.#report(shown, file, 0, true);
    try {
      for (;;) {
        const next = await this.#wait(() => pieces.next());
        if (next.done) break;
        await turn();
        this.#check();
        const { value } = next;
        for (let at = 0; at < value.length; at += pieceBytes) {
          const piece = value.subarray(at, at + pieceBytes);
          use(piece);
          loaded = file.source?.loaded() ?? loaded + piece.length;
          this.#advance(file, piece.length, loaded, isWeights);
          // The end is reported once, below.
          if (this.#progress < 1) this.#report(shown, file, loaded, false);
        }
      }
    } finally {
      pieces.return(undefined).catch(() => {});
    }
    if (isWeights) this.#progress = 1;
    this.#report(shown, file, file.source?.loaded() ?? loaded, true);
  }

  #advance({ total }: ModelFile, bytes: number, loaded: number, isWeights: boolean): void {
    if (!isWeights) this.#smallBytes += bytes;
    const now = isWeights
      ? shareOfSmallFiles + (1 - shareOfSmallFiles) * partOf(loaded, total, 2 ** 26)
      : shareOfSmallFiles * partOf(this.#smallBytes, undefined, 2 ** 20);
    this.#progress = Math.max(this.#progress, now);
  }

  /** An empty file is an error, a missing optional file is not. */
  async #small(folder: Folder, files: Small, name: FileName, isNeeded: Needed): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const bytes = await this.#bytes(folder, name, isNeeded);
    if (bytes) files.set(name, bytes);
    return bytes;
  }

  async #named(folder: Folder, files: Small, name: FileName): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = await this.#small(folder, files, name, false);
    if (bytes) return bytes;
    const error = await this.#missing(folder, name);
    if (error.code === 'UNSUPPORTED') throw error;
    throw new AttnError('FORMAT', `${op}: there is no ${folder.nameOf(name)}, which modules.json names`, { op, file: name }, { cause: error });
  }

  async #bytes(folder: Folder, name: FileName, isNeeded: Needed): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const file = await this.#open(folder, name);
    if (!file) return this.#absent(folder, name, isNeeded);
    const limit = most(name);
    const pieces: Uint8Array[] = [];
    let size = 0;
    let html = false;
    try {
      await this.#read(name, file, (piece) => {
        size += piece.length;
        if (size > limit)
          throw new AttnError('FORMAT', `${op}: ${file.name} is larger, expected at most ${limit} bytes`, {
            op,
            file: name,
            expected: `${limit} bytes`,
          });
        if (pieces.length === 0) html = /^\s*</.test(String.fromCharCode(...piece.subarray(0, 64)));
        pieces.push(piece.slice());
      });
    } catch (error) {
      // Single-page servers answer every unknown name with their page.
      if (html && file.phase === 'download' && (error as AttnError).code === 'FORMAT' && !(await isNeeded)) return this.#absent(folder, name, false);
      throw error;
    }
    if (html && file.phase === 'download' && !(await isNeeded)) return this.#absent(folder, name, false);
    if (size === 0)
      throw new AttnError(
        'FORMAT',
        `${op}: ${file.name} is empty, expected ${(await isNeeded) ? 'a file with contents' : 'a file with contents, or no file'}`,
        {
          op,
          file: name,
        },
      );
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

  #missing(folder: Folder, name: FileName): Promise<AttnError> {
    return this.#wait(async () => (await this.#context.lazyTasks()).missing(folder, name));
  }

  async #absent(folder: Folder, name: FileName, isNeeded: Needed): Promise<undefined> {
    if (await isNeeded) throw await this.#missing(folder, name);
    if (this.#options.sha256.has(name))
      throw new AttnError('FORMAT', `${op}: ${folder.nameOf(name)} is missing, expected a file with the given sha256`, { op, file: name });
    return undefined;
  }

  async #joined(folder: Folder, name: FileName): Promise<ModelFile | undefined> {
    const bytes = await this.#bytes(folder, name, false);
    if (!bytes) return undefined;
    const { joinShards } = await this.#wait(() => this.#context.shards());
    return this.#wait(() => joinShards(folder, (file, from) => this.#open(folder, file, from), name, bytes, readObject));
  }

  async #weights(folder: Folder, name: FileName, members: Readonly<Record<string, unknown>>): Promise<NativeLayer> {
    const { engine } = this.#context;
    const constructor = signatureOf(engine, 'constructor');
    const { weights } = this.#options;
    engine.assertUsable(op);
    this.#handle = engine.create(
      internalClass,
      readArguments(op, constructor, [members, { quantized: weights === 'auto' ? undefined : weights === 'int8' }]),
      op,
    );
    const file = (await this.#open(folder, name)) ?? (await this.#joined(folder, name.replace('model.safetensors', index)));
    if (!file) throw await this.#missing(folder, name);
    const [write, finish] = [signatureOf(engine, 'write'), signatureOf(engine, 'finish')];
    const head = new Uint8Array(64);
    let seen = 0;
    const take = (piece: Uint8Array) => {
      if (seen < head.length) {
        const start = piece.subarray(0, head.length - seen);
        head.set(start, seen);
        seen += start.length;
        refuseWeights(head.subarray(0, seen), file);
      }
      engine.call(op, write, [ownList(op, 'bytes', piece, 'Uint8Array')], this.#handle);
    };
    await this.#read(name, file, take, true);
    engine.call(op, finish, [], this.#handle);
    return this.#handle;
  }

  async #model(folder: Folder, files: Small): Promise<TextModel | ImageModel> {
    const context = this.#context;
    const modules = await this.#small(folder, files, 'modules.json', false);
    const folders = readModules(modules);
    const base = folders.get('Transformer')?.[0] ?? '';
    const of = (own: string, name: string) => this.#named(folder, files, own + name);
    const pooling = folders.get('Pooling')?.at(-1);
    const first = this.#small(folder, files, `${base}config.json`, true);
    const hasTokenizer = first.then((config) => !isImageModel(config!));
    // It is awaited only if tokenizer.json is missing.
    hasTokenizer.catch(() => {});
    const second = this.#small(folder, files, `${base}tokenizer.json`, hasTokenizer);
    const tokenizerConfigFile = this.#small(folder, files, `${base}tokenizer_config.json`, false);
    // transformers ignores these files if there is an added_tokens_decoder.
    const isNew = tokenizerConfigFile.then((config) => config !== undefined && decodeUtf8(config).includes('"added_tokens_decoder"'));
    const old = async (name: string) => ((await isNew) || !(await hasTokenizer) ? undefined : this.#small(folder, files, base + name, false));
    // Other models do not generate.
    const ofLanguageModel = async (name: string) =>
      /ForCausalLM"|LMHeadModel"/.test(decodeUtf8((await first)!)) ? this.#small(folder, files, base + name, false) : undefined;
    const hasTemplate = tokenizerConfigFile.then((config) => config !== undefined && decodeUtf8(config).includes('"chat_template"'));
    const [
      configFile,
      tokenizerFile,
      tokenizerConfig,
      specialTokensMap,
      addedTokens,
      sentenceBertConfig,
      prompts,
      poolingConfig,
      denses,
      generation,
    ] = await Promise.all([
      first,
      second,
      tokenizerConfigFile,
      old('special_tokens_map.json'),
      old('added_tokens.json'),
      modules && this.#small(folder, files, `${base}sentence_bert_config.json`, false),
      modules && this.#small(folder, files, 'config_sentence_transformers.json', false),
      pooling === undefined ? undefined : of(pooling, 'config.json'),
      Promise.all(
        (folders.get('Dense') ?? []).map(async (own) => {
          const [config, weights] = await Promise.all([of(own, 'config.json'), of(own, 'model.safetensors')]);
          return { config, weights };
        }),
      ),
      ofLanguageModel('generation_config.json'),
      hasTemplate.then((has) => (has ? undefined : ofLanguageModel('chat_template.jinja'))),
    ]);
    if (isImageModel(configFile!)) return this.#imageModel(folder, files, base, configFile!);
    const weights = `${base}model.safetensors`;
    for (const name of this.#options.sha256.keys())
      if (!/\.(safetensors|gguf)$/.test(name) && !files.has(name)) await this.#absent(folder, name, false);
    const config = frozen(readObject(configFile!, 'config.json') as Record<string, unknown>);
    const read = () => new Tokenizer({ tokenizer: tokenizerFile!, tokenizerConfig, specialTokensMap, addedTokens, modelType: config['model_type'] });
    let tokenizer = read();
    if (lacksLazyParts()) {
      useLazyParts((await context.lazyTasks()).rare);
      tokenizer = read();
    }
    const small = { config: configFile, modules, pooling: poolingConfig, sentenceBertConfig, tokenizerConfig, prompts, generation, denses };
    const handle = await this.#weights(folder, weights, small);
    const about = await this.#facts(folder, handle);
    const file: FileName = 'sentence_bert_config.json';
    if (about.lowerCase && !tokenizer.lowerCases)
      throw errorWithHelp(
        'UNSUPPORTED',
        `${op}: do_lower_case of ${file} is true, expected false`,
        'The tokenizer of this model does not lowercase',
        { op, file, expected: 'false', got: 'true' },
      );
    if (tokenizer.paddingSide === 'left' && !about.causal) unsupported('tokenizer_config.json.padding_side', 'left', 'right');
    await this.#complete(folder, files);
    return new TextModel({ context, handle, config, about, tokenizer, files, base });
  }

  async #facts(folder: Folder, handle: NativeLayer): Promise<ModelFacts> {
    const { engine } = this.#context;
    for (const name of this.#options.sha256.keys()) if (!this.#opened.has(name)) await this.#absent(folder, name, false);
    const about = engine.call(op, signatureOf(engine, 'about'), [], handle) as ModelFacts;
    if (about.labels) Object.freeze(about.labels);
    return about;
  }

  async #complete(folder: Folder, files: Small): Promise<void> {
    await folder.settle?.('complete', files);
    this.#check();
    this.#handle = undefined;
  }

  async #imageModel(folder: Folder, files: Small, base: string, configFile: Uint8Array<ArrayBuffer>): Promise<ImageModel> {
    const context = this.#context;
    const config = frozen(readObject(configFile, 'config.json') as Record<string, unknown>);
    const name = 'preprocessor_config.json';
    const preprocessor = await this.#small(folder, files, base + name, false);
    const { images } = context;
    if (!images) unsupported('config.json.model_type', config['model_type'], 'the type of a text model');
    const { ImageModel, readImageProcessor } = await this.#wait(images);
    const isRgb = (config['num_channels'] ?? 3) === 3;
    const processor = preprocessor && isRgb ? readImageProcessor(readObject(preprocessor, name), config['model_type']) : undefined;
    const handle = await this.#weights(folder, `${base}model.safetensors`, { config: configFile });
    const about = await this.#facts(folder, handle);
    await this.#complete(folder, files);
    return new ImageModel({ context, handle, config, about, processor });
  }

  async #gguf(folder: Folder, file: FileName): Promise<Folder> {
    const { GgufFolder } = await this.#wait(() => this.#context.gguf());
    return new GgufFolder(folder, file, (name) => this.#open(folder, name), this.#context.ggufParts);
  }

  /** Loads the model; once again if the cached files were bad. */
  async model(given: Folder): Promise<TextModel | ImageModel> {
    for (;;) {
      const folder = given.gguf === undefined ? given : await this.#gguf(given, given.gguf);
      const files: Small = new Map();
      try {
        return await this.#model(folder, files);
      } catch (thrown) {
        const handle = this.#handle;
        this.#handle = undefined;
        if (handle) this.#context.engine.free(handle);
        const error = failure(thrown);
        if (!(await folder.settle?.(badFiles.includes(error.code) ? 'bad' : 'broken', files))) throw error;
        this.#progress = this.#smallBytes = 0;
      }
    }
  }
}

/** The files of these families have no tokenizer. */
const isImageModel = (config: Uint8Array) => /"model_type"\s*:\s*"(vit|deit|dinov2\w*)"/.test(decodeUtf8(config));

/** As in C++: all files are read before the memory limit is checked. */
const mostModules = 8;

/** Folders by kind of module. C++ checks whether the kinds are supported. */
function readModules(file: Uint8Array | undefined): Map<string, string[]> {
  const folders = new Map<string, string[]>();
  if (!file) return folders;
  const list = listOf(readJson(file, 'modules.json'), 'modules.json');
  if (list.length > mostModules) unsupported('the number of modules in modules.json', list.length, `at most ${mostModules}`);
  for (const [i, each] of list.entries()) {
    if (!isPlainObject(each)) continue;
    const module = new Section(each, `modules.json[${i}]`);
    const path = moduleFolder(module.string('path', ''));
    if (!isModuleFolder(path)) unsupported(module.at('path'), path, 'the name of a folder');
    const kind = String(module.get('type')).replace(/^.*\./, '');
    // Otherwise there may be no config.json that would explain the error.
    if (i === 0 && kind !== 'Transformer') unsupported(module.at('type'), kind, 'Transformer');
    folders.set(kind, [...(folders.get(kind) ?? []), path && `${path}/`]);
  }
  return folders;
}

function refuseWeights(head: Uint8Array, { name, phase }: ModelFile): void {
  const subject = phase === 'download' ? `${name} returned` : `${name} holds`;
  refuseText(op, 'model.safetensors', head, 'safetensors', subject);
  const [a, b, c, d] = head;
  // Safetensors may begin with the same two bytes as a pickle, but then the header is short: d is 0.
  const got = a === 0x50 && b === 0x4b && c === 3 && d === 4 ? 'a zip' : a === 0x80 && b === 2 && d! > 0 && 'a pickle';
  if (got)
    throw errorWithHelp(
      'UNSUPPORTED',
      `${op}: ${subject} ${got}, as written by torch.save(), expected safetensors`,
      'In Python save_pretrained() writes safetensors',
      { op, expected: 'safetensors', got },
    );
}

/** Engines throw a RangeError if memory runs out. */
function failure(error: unknown): AttnError {
  if (isAttnError(error)) return error;
  return new AttnError(error instanceof RangeError ? 'MEMORY' : 'INTERNAL', `${op}: ${reason(error)}`, { op }, { cause: error });
}

async function withFolder<T>(
  { disk }: ModelContext,
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
      `${op}: source ${describe(source.location)}, expected a URL or path (${reason(cause)})`,
      { op, argument: 'source' },
      { cause },
    );
  }
  return path === undefined ? UrlFolder.use(disk, source.location, options, ending, work) : work(await DiskFolder.at(disk!, path));
}

export async function loadModel(context: ModelContext, given: unknown, givenOptions: unknown): Promise<Contract | ImageModel> {
  const { engine } = context;
  engine.assertUsable(op);
  const options = readModelOptions(givenOptions);
  const source = readSource(given);
  engine.assertUsable(op); // a getter may have disposed of it
  const loading = new Loading(context, options);
  try {
    return await withFolder(context, source, options, loading.ending, (folder) => loading.model(folder));
  } catch (error) {
    throw withAdvice(failure(error), source);
  } finally {
    loading.end();
  }
}
