/** Why a model did not load, in the page's words: the cause and what to do; what the package said of it stands behind them. */
import { hubHost } from './address.ts';
import { codeOf, explain } from '../state/status.ts';

/** Where it was to come from. */
export interface Origin {
  /** Undefined: files of the visitor's. */
  readonly host: string | undefined;
  /** "owner/name" of a hub. */
  readonly repository?: string | undefined;
}

export interface Words {
  readonly cause: string;
  readonly fix: string;
}

interface Detail {
  readonly status?: number;
  readonly file?: string;
  readonly expected?: unknown;
  readonly got?: unknown;
}

const families =
  'BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec, MPNet, ModernBERT, DeBERTa, ERNIE, ELECTRA, ALBERT, NomicBERT, Jina 2 and GTE';
const allOf = 'Use config.json, tokenizer.json and model.safetensors of one and the same model, as they were published.';
const inPython = (what: string) => `In Python, ${what} makes one that is read here: drop the folder that it writes.`;

/** What folders have in the place of a file that is read. */
const instead: readonly (readonly [name: RegExp, cause: string, fix: string])[] = [
  [
    /\.(bin|pt|pth|ckpt|bin\.index\.json)$/,
    'Its weights are there as a pickle only (pytorch_model.bin), which can run code when it is read. It is not read here.',
    `${inPython('AutoModel.from_pretrained("owner/name").save_pretrained("folder")')} On the Hub, another revision may have model.safetensors.`,
  ],
  [
    /safetensors(\.index\.json)?$/,
    'Its weights are in several files, which are not fetched from there.',
    'Download the folder and drop it: parts on disk are put together here.',
  ],
  [
    /\.(h5|msgpack|gguf)$/,
    'Its weights are there for another framework only.',
    inPython('AutoModel.from_pretrained(…, from_tf=True).save_pretrained("folder")'),
  ],
  [/\.onnx$/, 'There is only a graph for onnxruntime, without model.safetensors.', 'Take the model that it was exported from: it has the weights.'],
  [
    /(vocab\.\w+|merges\.txt|\.model)$/,
    'Its vocabulary is there in an older form only, without tokenizer.json.',
    inPython('AutoTokenizer.from_pretrained("owner/name").save_pretrained("folder")'),
  ],
];

function network({ host, repository }: Origin, { status, file }: Detail, message: string): Words {
  const at = host ?? 'The disk';
  if (status === undefined)
    return / broke off/.test(message)
      ? { cause: `The connection to ${at} broke off.`, fix: 'Load it again: it goes on where it stopped.' }
      : host === undefined
        ? { cause: 'A file could not be read.', fix: 'Choose it again: it may have been moved or changed.' }
        : {
            cause: `${at} gave no answer that this page may read.`,
            fix: 'Check the address and the connection. A host has to allow other pages to read its files (CORS). Or drop the model’s files onto the page.',
          };
  if (repository !== undefined && (status === 401 || status === 403))
    return {
      cause: `${at} has no model ${repository}, or not for everybody (${status}).`,
      fix: 'Check the spelling: owner/name. One that asks for a licence has to be downloaded with your account; drop its folder here.',
    };
  if (file?.endsWith('config.json') && repository !== undefined)
    return {
      cause: `${at} has no config.json in ${repository} (${status}).`,
      fix: 'Check the address and the revision. If the model is in a folder of the repository, give the address of that folder, …/tree/main/folder.',
    };
  if (file?.endsWith('config.json'))
    return {
      cause: `${at} has no config.json there (${status}).`,
      fix: 'Check the address: it has to be that of the folder which holds config.json.',
    };
  if (file !== undefined && [403, 404, 410].includes(status))
    return { cause: `${at} has no ${file} beside config.json (${status}).`, fix: `Check the address; ${allOf[0]!.toLowerCase()}${allOf.slice(1)}` };
  return { cause: `${at} answered with an error (${status}).`, fix: 'Try again in a while.' };
}

/** What to do about a failure, by its code. */
function advice(code: unknown): string {
  switch (code) {
    case 'MEMORY':
      return 'Close other pages, or use a smaller model or a shorter text.';
    case 'UNSUPPORTED':
      return `The page can load encoders of the families ${families}, with their weights in model.safetensors.`;
    case 'ARGUMENT':
    case 'FORMAT':
    case 'MISMATCH':
    case 'CONFIG':
      return allOf;
    case 'ENVIRONMENT':
      return 'This page needs WebAssembly with SIMD: Chrome or Edge 95, Firefox 100, Safari 16.4, or later.';
    case 'ABORTED':
      return 'Start it again whenever you like.';
    default:
      return 'Reload the page. If it happens again, the detail says where to look.';
  }
}

const causes: Readonly<Record<string, string>> = {
  MEMORY: 'There is not enough memory for it.',
  UNSUPPORTED: 'It has something that this page does not compute.',
  ARGUMENT: 'A file is missing.',
  FORMAT: 'A file is not what it should be.',
  MISMATCH: 'Its weights do not fit its config.json.',
  CONFIG: 'Its config.json says what no model has.',
  ENVIRONMENT: 'This browser lacks something that it needs.',
  ABORTED: 'The module has stopped.',
};

export function explainLoading(error: unknown, origin: Origin): Words {
  const code = codeOf(error);
  const detail = (error as { detail?: Detail } | undefined)?.detail ?? {};
  const message = explain(error);
  if (code === 'NETWORK') return network(origin, detail, message);
  if (code === 'UNSUPPORTED' && typeof detail.got === 'string' && /there is no /.test(message)) {
    const found = instead.find(([name]) => name.test(detail.got as string));
    if (found) return { cause: found[1], fix: found[2] };
  }
  if (code === 'UNSUPPORTED' && /model_type/.test(message))
    return { cause: 'This kind of model is not one that this page computes.', fix: advice(code) };
  if (code === 'FORMAT' && detail.got === 'HTML')
    return {
      cause: `${origin.host ?? 'A file'} gave a web page instead of the file.`,
      fix: `Give the address of the folder with the files, not of a page about it; a model on ${hubHost} is named owner/name.`,
    };
  if (code === 'FORMAT' && /modules\.json names/.test(message))
    return { cause: 'modules.json names a folder that is not there.', fix: 'Put that folder (1_Pooling) beside it, or leave modules.json out.' };
  if (code === 'FORMAT' && /Git LFS/.test(message))
    return { cause: 'A file is a pointer of Git LFS, not the weights.', fix: '`git lfs pull` in its repository fetches them.' };
  return { cause: causes[String(code)] ?? 'It went wrong in an unexpected way.', fix: advice(code) };
}
