/**
 * What the outcome of each suite may depend on besides its own source, so that no set-up repeats what another has shown:
 *   variant  simd or relaxed: other kernels, other roundings
 *   threads  one or more: shared memory, other schedules
 *   engine   what JavaScript engines do differently: compiling WebAssembly, collecting, workers, fetching, caching, exceptions
 * A suite without any of them runs in one set-up of Node alone.
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
  sentiment: ['variant', 'engine'],
  quantize: [],
  int8: ['variant', 'threads', 'engine'],
  load_model: ['threads', 'engine'],
  aborting: ['engine'],
  model_folder_files: [],
  kept_models: ['engine'],
  hostile: ['engine'],
  sizes: [],
  tokenizer: ['engine'],
  start_worker: [],
};

/** WebKitGTK has no relaxed SIMD, Node 20 has it behind a flag. */
const bestVariant = { node: 'relaxed', chromium: 'relaxed', firefox: 'relaxed', webkit: 'simd' };

/** One set-up of each engine runs all that can differ there: the one with most of attn in it. */
export const isComplete = ({ engine, variant, threads }) => threads > 1 && variant === bestVariant[engine];

/**
 * The suites of a set-up. The checked builds are one single-threaded binary, and slow: what is about other binaries, about speed or JavaScript alone
 * stays out. So does running out of memory: the checks themselves allocate when something is thrown, and AddressSanitizer takes no limit from the caller.
 */
export function suitesOf({ engine, variant, threads, build }) {
  const names = Object.keys(suites);
  if (build !== 'release') {
    const others = [
      'explaining',
      'fine_tuning',
      'loading',
      'threads',
      'worker',
      'bits',
      'out_of_memory',
      'sizes',
      'kept_models',
      'aborting',
      'tokenizer',
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
 * The suites of a browser's set-up, by the page that runs them. In WebKitGTK each has a page of its own: a process of its that has come to more than a GB
 * throws its compiled code away and collects over and over, so that a second of work takes minutes.
 */
export function pagesOf(setup) {
  const names = suitesOf(setup);
  return setup.engine === 'webkit' ? names.map((name) => [name]) : [names];
}

/** A suite that is not in the table would run nowhere. */
export function checkTable(files) {
  const found = files.map((file) => file.replace(/^.*\/|\.ts$/g, '')).filter((name) => name !== 'index');
  const lost = found.filter((name) => !(name in suites));
  if (lost.length) throw new Error(`wasm-tests/suites/table.mjs does not have ${lost.join(', ')}`);
  return found;
}
