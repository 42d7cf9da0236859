import { type AttnError, errorWithHelp } from '../args/error.js';
import type { FileName } from '../args/model_options.js';
import type { Folder } from './model_files.js';

const op = 'loadModel';

/** Files in place of the ones that attn reads, and how to convert them. */
const conversions: readonly {
  readonly missing: FileName;
  readonly files: readonly string[];
  readonly pattern: RegExp;
  readonly what: string;
  readonly help: string;
}[] = [
  {
    missing: 'model.safetensors',
    files: [],
    pattern: /(^|\/)model-\d+-of-\d+\.safetensors$/,
    what: 'one of several files with the weights',
    help: 'Add the others and model.safetensors.index.json, which names them',
  },
  {
    missing: 'model.safetensors',
    files: ['pytorch_model.bin', 'pytorch_model.bin.index.json'],
    pattern: /\.(bin|bin\.index\.json|pt|pth|ckpt)$/,
    what: 'a pickle, which runs code when it is read',
    help: 'In Python AutoModel.from_pretrained(folder).save_pretrained(folder) writes model.safetensors; use the class with the head',
  },
  {
    missing: 'model.safetensors',
    files: ['tf_model.h5', 'flax_model.msgpack'],
    pattern: /\.(h5|msgpack)$/,
    what: 'weights of another framework',
    help: 'In Python AutoModel.from_pretrained(folder, from_tf=True or from_flax=True).save_pretrained(folder) writes model.safetensors',
  },
  {
    missing: 'model.safetensors',
    files: [],
    pattern: /\.gguf$/,
    what: 'a GGUF file',
    help: 'Pass this file alone: it has its own configuration and tokenizer',
  },
  {
    missing: 'model.safetensors',
    files: ['onnx/model.onnx', 'model.onnx'],
    pattern: /\.onnx$/,
    what: 'a graph for onnxruntime',
    help: 'Use the checkpoint that it was exported from',
  },
  {
    missing: 'tokenizer.json',
    files: ['vocab.txt', 'vocab.json', 'sentencepiece.bpe.model', 'spiece.model'],
    pattern: /(^|\/)(vocab\.txt|vocab\.json|merges\.txt|[\w.-]+\.model)$/,
    what: 'a vocabulary in an older form',
    help: 'In Python AutoTokenizer.from_pretrained(folder).save_pretrained(folder) writes tokenizer.json',
  },
];

/** Makes UNSUPPORTED if the folder has a known replacement. */
export async function missing(folder: Folder, file: FileName): Promise<AttnError> {
  const [, path, name] = /^(.*\/)?(.*)$/.exec(file)!;
  const known = conversions.filter((each) => each.missing === name);
  const there = await folder.existing(known.flatMap(({ files }) => files.map((each) => (path ?? '') + each)));
  const again = path && 'In Python SentenceTransformer(folder).save_pretrained(other) writes it';
  for (const { pattern, what, help } of known) {
    const got = there.find((each) => each.startsWith(path ?? '') && pattern.test(each));
    if (got !== undefined)
      return errorWithHelp('UNSUPPORTED', `${op}: there is no ${file}, but ${folder.nameOf(got)} (${what})`, again || help, {
        op,
        expected: file,
        got,
      });
  }
  return folder.absent(file);
}
