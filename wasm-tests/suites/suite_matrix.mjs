/**
 * Lists properties of a set-up that can affect the outcome of each suite, so that set-ups do not repeat each other:
 * - variant: simd or relaxed, with different kernels and rounding
 * - threads: one or more, with shared memory and scheduling
 * - engine: differences between JavaScript engines in compilation, garbage collection, workers, fetching, caching and
 * exceptions
 * A suite without any of them runs in one set-up of Node only.
 */
const suites = {
  goldens: ['variant'],
  gradients: ['variant'],
  training: ['threads', 'engine'],
  reference_cases: ['variant', 'engine'],
  onnx: ['variant'],
  semantics: ['variant', 'threads', 'engine'],
  places: ['variant', 'threads', 'engine'],
  edges: ['variant'],
  module: [],
  transformer: [],
  embedding: [],
  dropout: ['threads'],
  loading: ['variant', 'threads', 'engine'],
  arguments: [],
  bad_input: ['threads', 'engine'],
  bad_layers: ['engine'],
  bad_files: [],
  odd_input: ['threads', 'engine'],
  properties: ['variant', 'threads', 'engine'],
  leaks: ['threads', 'engine'],
  out_of_memory: ['threads', 'engine'],
  threads: ['threads', 'engine'],
  worker: ['variant', 'threads', 'engine'],
  safetensors: [],
  bits: ['variant', 'threads', 'engine'],
  sequences: ['threads', 'engine'],
  text_model: ['variant', 'engine'],
  batches: ['threads', 'engine'],
  model_edits: ['threads'],
  explaining: ['variant'],
  fine_tuning: ['variant'],
  int8_files: [],
  tasks: ['variant'],
  decoders: ['variant', 'threads', 'engine'],
  images: ['variant', 'engine'],
  lens: ['variant'],
  search: ['variant', 'threads', 'engine'],
  sentiment: ['variant', 'engine'],
  quantize: [],
  int8: ['variant', 'threads', 'engine'],
  load_model: ['threads', 'engine'],
  aborting: ['engine'],
  model_folder_files: [],
  kept_models: ['engine'],
  model_cache: ['engine'],
  cache_folder: [],
  shards: [],
  gguf: [],
  chat: [],
  hostile: ['engine'],
  hostile_models: ['engine'],
  sizes: [],
  tokenizer: ['engine'],
  chunks: ['engine'],
  static: ['engine'],
  start_worker: [],
};

/** Suites about what browsers bring of their own: compilers, workers, shared memory, fetching, caches. */
const ofBrowsers = ['aborting', 'bits', 'kept_models', 'load_model', 'loading', 'model_cache', 'threads', 'worker'];

/** WebKitGTK has no relaxed SIMD; Node 20 has it behind a flag. */
const bestVariant = { node: 'relaxed', chromium: 'relaxed', firefox: 'relaxed', webkit: 'simd' };

/** Returns whether this is the engine's complete set-up, which runs every suite whose outcome the engine can affect. */
export const isComplete = ({ engine, variant, threads }) => threads > 1 && variant === bestVariant[engine];

/**
 * Returns the suites of a set-up. The checked builds are one slow single-threaded binary, so suites about other
 * binaries, speed or work of JavaScript are skipped, and those whose C++ the native AddressSanitizer runs as well; so is running
 * out of memory, because the checks allocate when an exception is thrown and AddressSanitizer ignores the caller's
 * memory limit.
 */
export function suitesOf({ engine, variant, threads, build }) {
  const names = Object.keys(suites);
  if (build !== 'release') {
    const others = [
      'explaining',
      'fine_tuning',
      'gradients',
      'hostile_models',
      'int8',
      'lens',
      'load_model',
      'loading',
      'threads',
      'worker',
      'bits',
      'out_of_memory',
      'search',
      'sizes',
      'kept_models',
      'model_cache',
      'cache_folder',
      'aborting',
      'tokenizer',
      'chunks',
      'start_worker',
    ];
    return names.filter((name) => !others.includes(name));
  }
  const here = names.filter((name) => engine === 'node' || suites[name].includes('engine'));
  if (isComplete({ engine, variant, threads })) return here;
  const differs = [...(threads > 1 ? [] : ['threads']), ...(variant === bestVariant[engine] ? [] : ['variant'])];
  return here.filter((name) => suites[name].some((each) => differs.includes(each)));
}

/**
 * Returns the suites of a browser's set-up, grouped by page; `short`: only those about browsers. In WebKitGTK each suite has its own page: once a process
 * exceeds 1 GB it discards its compiled code and collects garbage constantly, so a second of work takes minutes.
 */
export function pagesOf(setup, { short = false } = {}) {
  const names = suitesOf(setup).filter((name) => !short || ofBrowsers.includes(name));
  return setup.engine === 'webkit' ? names.map((name) => [name]) : [names];
}

/** Throws if a suite is missing from the matrix, since it would never run. */
export function checkMatrix(files) {
  const found = files.map((file) => file.replace(/^.*\/|\.ts$/g, '')).filter((name) => name !== 'index');
  const lost = found.filter((name) => !(name in suites));
  if (lost.length) throw new Error(`wasm-tests/suites/suite_matrix.mjs does not have ${lost.join(', ')}`);
  return found;
}
