/** The page's words for a model that did not load; the package's message is shown below. */
import { AddressError, hubHost, isGguf } from './address.ts';
import { codeOf, explain } from '../state/status.ts';

export interface Origin {
  /** Undefined for the visitor's files. */
  readonly host: string | undefined;
  /** "owner/name" */
  readonly repository?: string | undefined;
}

export interface Words {
  readonly cause: string;
  readonly fix: string;
}

/** The failure, or the words for it. */
export interface Reason {
  readonly error?: unknown;
  readonly origin?: Origin | undefined;
  readonly words?: Words;
}

interface Detail {
  readonly status?: number;
  readonly file?: string;
  readonly expected?: unknown;
  readonly got?: unknown;
}

export const encoders =
  'BERT, DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec, MPNet, ModernBERT, DeBERTa, ERNIE, ELECTRA, ALBERT, NomicBERT, Jina 2 and GTE';
export const decoders = 'GPT-2, GPT-NeoX, Llama, Mistral, Qwen 2 and 3, and Gemma 2 and 3';
const allOf = 'Use config.json, tokenizer.json and model.safetensors of the same model, as published.';
const inPython = (what: string) => `Run ${what} in Python and drop the folder that it writes.`;

/** Unsupported files that folders contain instead. */
const instead: readonly (readonly [name: RegExp, cause: string, fix: string])[] = [
  [
    /\.(bin|pt|pth|ckpt|bin\.index\.json)$/,
    'The only weights are a pickle (pytorch_model.bin), which can run code when it is read. This page does not read pickles.',
    `${inPython('AutoModel.from_pretrained("owner/name").save_pretrained("folder")')} On the Hub, another revision may have model.safetensors.`,
  ],
  [
    /safetensors(\.index\.json)?$/,
    'The weights are in several files, but model.safetensors.index.json, which lists them, is missing.',
    'Download the whole folder and drop it here.',
  ],
  [
    /\.(h5|msgpack)$/,
    'The only weights are for another framework.',
    inPython('AutoModel.from_pretrained(…, from_tf=True).save_pretrained("folder")'),
  ],
  [/\.gguf$/, 'The only weights are GGUF files.', 'Enter the address of one of these files, or drop one here.'],
  [/\.onnx$/, 'The folder has an ONNX graph but no model.safetensors.', 'Use the model from which it was exported.'],
  [
    /(vocab\.\w+|merges\.txt|\.model)$/,
    'The vocabulary is in an older format; there is no tokenizer.json.',
    inPython('AutoTokenizer.from_pretrained("owner/name").save_pretrained("folder")'),
  ],
];

function network({ host, repository }: Origin, { status, file }: Detail, message: string): Words {
  const at = host ?? 'Your disk';
  if (status === undefined)
    return / broke off/.test(message)
      ? { cause: `The connection to ${at} was lost.`, fix: 'Load the model again: the download resumes.' }
      : host === undefined
        ? { cause: 'A file could not be read.', fix: 'Choose it again. It may have been moved or changed.' }
        : {
            cause: `${at} sent no response that this page may read.`,
            fix: 'Check the address and your connection. The host must allow other pages to read its files (CORS). Or download the model’s files and drop them here.',
          };
  if (repository !== undefined && (status === 401 || status === 403))
    return {
      cause: `${at} has no public model ${repository} (${status}).`,
      fix: 'Check the spelling: owner/name. If the model requires you to accept a licence, download it with your account and drop its folder here.',
    };
  if (file !== undefined && isGguf(file) && status < 500) return { cause: `${at} has no such file (${status}).`, fix: 'Check the address.' };
  if (file?.endsWith('config.json') && repository !== undefined)
    return {
      cause: `${at} has no config.json in ${repository} (${status}).`,
      fix: 'Check the address and the revision. If the model is in a folder of the repository, enter the address of that folder, …/tree/main/folder. If it is a GGUF file, enter the address of the file.',
    };
  if (file?.endsWith('config.json'))
    return {
      cause: `${at} has no config.json there (${status}).`,
      fix: 'Check the address. It must lead to the folder that contains config.json.',
    };
  if (file !== undefined && [403, 404, 410].includes(status))
    return { cause: `${at} has a config.json but no ${file} (${status}).`, fix: `Check the address. ${allOf}` };
  return { cause: `${at} returned the error ${status}.`, fix: 'Try again later.' };
}

function advice(code: unknown): string {
  switch (code) {
    case 'MEMORY':
      return 'Close other pages, or use a smaller model or a shorter text.';
    case 'UNSUPPORTED':
      return `The page can load encoders of the families ${encoders}, and decoders of the families ${decoders}, with their weights in model.safetensors or, for decoders, in a GGUF file.`;
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
      return 'Reload the page. If it happens again, the message below helps to find the cause.';
  }
}

const causes: Readonly<Record<string, string>> = {
  MEMORY: 'There is not enough memory for it.',
  UNSUPPORTED: 'It has something that this page does not compute.',
  ARGUMENT: 'A file is missing.',
  FORMAT: 'A file is invalid.',
  MISMATCH: 'Its weights do not fit its config.json.',
  CONFIG: 'Its config.json has an invalid value.',
  ENVIRONMENT: 'This browser lacks something that it needs.',
  ABORTED: 'The module has stopped.',
};

/** Bytes of a message, "4505778176 bytes", in gigabytes. */
const gigabytesIn = (text: unknown): string | undefined => {
  const bytes = /^(?:at most )?(\d+) bytes$/.exec(String(text))?.[1];
  return bytes && `${(Number(bytes) / 1e9).toFixed(1)} GB`;
};

/** More than this page can address, whatever the browser has left. */
function tooLarge({ expected, got }: Detail): Words | undefined {
  const most = gigabytesIn(expected);
  if (most === undefined) return undefined;
  return {
    cause: `It is too large: it needs ${gigabytesIn(got) ?? 'more'} of memory, and a page can use at most ${most}.`,
    fix: 'Use a smaller model, or int8 weights, which take a quarter of float32.',
  };
}

export function wordsOf({ error, origin = { host: undefined }, words }: Reason): Words & { readonly detail?: string } {
  if (words) return words;
  return { ...(error instanceof AddressError ? { cause: error.message, fix: '' } : explainLoading(error, origin)), detail: explain(error) };
}

export function explainLoading(error: unknown, origin: Origin): Words {
  const code = codeOf(error);
  const detail = (error as { detail?: Detail } | undefined)?.detail ?? {};
  const message = explain(error);
  if (code === 'NETWORK') return network(origin, detail, message);
  const large = code === 'MEMORY' ? tooLarge(detail) : undefined;
  if (large) return large;
  if (code === 'UNSUPPORTED' && typeof detail.got === 'string' && /there is no /.test(message)) {
    const found = instead.find(([name]) => name.test(detail.got as string));
    if (found) return { cause: found[1], fix: found[2] };
  }
  if (code === 'UNSUPPORTED' && /model_type|general\.architecture/.test(message))
    return {
      cause: `This kind of model${/^(?!missing$)[\w.-]{1,40}$/.test(String(detail.got)) ? `, ${String(detail.got)},` : ''} is not one that this page computes.`,
      fix: advice(code),
    };
  if (code === 'FORMAT' && detail.got === 'HTML')
    return {
      cause: `${origin.host ?? 'A file'} gave a web page instead of the file.`,
      fix: `Give the address of the folder with the files, not of a page about it; a model on ${hubHost} is named owner/name.`,
    };
  if (code === 'FORMAT' && detail.file === 'gguf') return { cause: 'The GGUF file is invalid.', fix: 'Load it again from its publisher.' };
  if (code === 'FORMAT' && /modules\.json names/.test(message))
    return { cause: 'modules.json names a folder that is not there.', fix: 'Add that folder (1_Pooling) or leave out modules.json.' };
  if (code === 'FORMAT' && /Git LFS/.test(message))
    return { cause: 'A file is a pointer of Git LFS, not the weights.', fix: '`git lfs pull` in its repository fetches them.' };
  return { cause: causes[String(code)] ?? 'It went wrong in an unexpected way.', fix: advice(code) };
}
