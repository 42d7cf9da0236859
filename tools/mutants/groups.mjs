/** Which files are mutated together, and the suites that run for them: those that are about them, so that a mutant costs seconds and not minutes. */
const lib = 'web/lib/src';

/** @type {Readonly<Record<string, { folder: string, files?: readonly string[], suites?: readonly string[] }>>} Without files: all; without suites: the page's tests. */
export const groups = {
  page: { folder: 'web/page/src/state' },
  'page-models': { folder: 'web/page/src/model', files: ['loaded.ts', 'known.ts', 'sources.ts'] },
  arguments: {
    folder: lib,
    files: ['arrays.ts', 'signature.ts', 'options.ts', 'results.ts', 'utf8.ts', 'error.ts', 'dispose.ts'],
    suites: [
      'arguments',
      'bad_input',
      'odd_input',
      'bad_files',
      'embedding',
      'safetensors',
      'loading',
      'transformer',
      'text_model',
      'model_folder_files',
    ],
  },
  files: {
    folder: lib,
    files: ['safetensors.ts', 'export_model.ts', 'sha256.ts', 'model_options.ts', 'model_files.ts', 'binary.ts'],
    suites: ['safetensors', 'int8_files', 'bad_files', 'model_folder_files', 'loading', 'load_model', 'text_model', 'arguments'],
  },
  models: {
    folder: lib,
    files: ['model_url.ts', 'model_cache.ts', 'load_model.ts', 'node.ts'],
    suites: ['load_model', 'kept_models', 'aborting', 'model_folder_files'],
  },
  text: { folder: lib, files: ['text_model.ts', 'breathe.ts'], suites: ['text_model', 'aborting', 'model_edits', 'model_folder_files', 'hostile'] },
  worker: {
    folder: lib,
    files: ['channel.ts', 'client.ts', 'host.ts', 'remote_model.ts'],
    suites: ['worker', 'text_model', 'aborting', 'model_edits', 'load_model', 'odd_input'],
  },
  loading: {
    folder: lib,
    files: ['load.ts', 'download.ts', 'abort.ts', 'engine.ts', 'heap.ts', 'instance.ts', 'features.ts'],
    suites: ['loading', 'module', 'threads', 'odd_input', 'aborting', 'hostile', 'worker', 'model_folder_files'],
  },
  starting: { folder: lib, files: ['start_worker.ts', 'thread.ts', 'web.ts', 'placed.ts'], suites: ['start_worker', 'loading'] },
  tokenizer: { folder: `${lib}/tokenizer`, suites: ['tokenizer'] },
};
