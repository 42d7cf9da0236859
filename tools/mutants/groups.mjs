/** Files that are mutated together, and the relevant suites: running only these takes seconds per mutant. */
const lib = 'web/lib/src';

/** @type {Readonly<Record<string, { folder: string, files?: readonly string[], suites?: readonly string[] }>>} Without files: all; without suites: the page's tests. */
export const groups = {
  page: { folder: 'web/page/src/state' },
  'page-models': { folder: 'web/page/src/model', files: ['loaded.ts', 'known.ts', 'sources.ts'] },
  arguments: {
    folder: lib,
    files: [
      'args/arrays.ts',
      'args/signature.ts',
      'args/options.ts',
      'args/error.ts',
      'engine/results.ts',
      'platform/utf8.ts',
      'platform/dispose.ts',
    ],
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
    files: [
      'model/safetensors.ts',
      'model/export_model.ts',
      'model/sha256.ts',
      'model/model_files.ts',
      'args/model_options.ts',
      'args/refuse_text.ts',
      'load/wasm_build.ts',
    ],
    suites: ['safetensors', 'int8_files', 'bad_files', 'model_folder_files', 'loading', 'load_model', 'text_model', 'arguments'],
  },
  models: {
    folder: lib,
    files: ['model/model_url.ts', 'model/model_cache.ts', 'model/load_model.ts', 'node.ts'],
    suites: ['load_model', 'kept_models', 'aborting', 'model_folder_files'],
  },
  text: {
    folder: lib,
    files: ['model/text_model.ts', 'platform/event_loop.ts'],
    suites: ['text_model', 'aborting', 'model_edits', 'model_folder_files', 'hostile'],
  },
  images: {
    folder: lib,
    files: ['args/images.ts', 'model/image_model.ts', 'model/image_processor.ts'],
    suites: ['images'],
  },
  worker: {
    folder: lib,
    files: [
      'worker_protocol.ts',
      'worker_client.ts',
      'worker_server.ts',
      'transfer_list.ts',
      'remote_base.ts',
      'remote_images.ts',
      'remote_model.ts',
    ].map((name) => `worker/${name}`),
    suites: ['worker', 'text_model', 'aborting', 'model_edits', 'load_model', 'odd_input', 'images'],
  },
  loading: {
    folder: lib,
    files: [
      'load/load.ts',
      'load/instance.ts',
      'engine/engine.ts',
      'engine/heap.ts',
      'platform/download.ts',
      'platform/abort.ts',
      'platform/features.ts',
    ],
    suites: ['loading', 'module', 'threads', 'odd_input', 'aborting', 'hostile', 'worker', 'model_folder_files'],
  },
  starting: {
    folder: lib,
    files: ['platform/start_worker.ts', 'platform/asset_urls.ts', 'load/thread.ts', 'load/web.ts'],
    suites: ['start_worker', 'loading'],
  },
  tokenizer: { folder: `${lib}/tokenizer`, suites: ['tokenizer'] },
};
