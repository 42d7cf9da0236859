/** What somebody writes who means a model: its name on the Hub, an address of the Hub in any of its forms, or the address of a folder. */
import { cut, longestName } from '../formats/cut.ts';

/** The message says what is wrong and what to write instead. */
export class AddressError extends Error {}

export interface ModelAddress {
  /** As links have it; read once more it means the same. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  /** Absolute, with a slash at its end: the names of files come behind it. */
  readonly folder: string;
  readonly host: string;
  /** Where the address is one of a hub, on whichever host. */
  readonly hub: { readonly repository: string; readonly revision: string; readonly path: string } | undefined;
}

export const hubHost = 'huggingface.co';
const hubHosts = [hubHost, 'www.huggingface.co', 'hf.co', 'www.hf.co'];

const part = '[\\w-][\\w.-]*';
/** "owner/name" or, as a few old models are called, "name"; perhaps with a revision. */
const repositoryName = new RegExp(`^(${part}(?:/${part})?)(?:@([\\w./-]+))?$`);
const hostName = /^(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?\/|^(?:localhost|\d+\.\d+\.\d+\.\d+)(?::\d+)?\//i;
const verbs = ['tree', 'blob', 'resolve', 'raw'];
/** What else the Hub has addresses for. */
const others: Readonly<Record<string, string>> = { datasets: 'a data set', spaces: 'a Space', collections: 'a collection', papers: 'a paper' };
/** Folders beside a model's files that hold other forms of it, or parts. */
const beside = /^(\d+_\w+|onnx|openvino|coreml)$/i;
const isFile = /\.(json|safetensors|txt|bin|model|onnx|h5|msgpack|md|gguf)$/i;

const example =
  'Write owner/name as on the Hub, such as BAAI/bge-small-en-v1.5, or the address of a folder, such as https://example.org/models/my-bert/.';

/** As people paste it: in quotes, with a program in front, or the address of a repository. */
const bare = (text: string) =>
  text
    .trim()
    .replace(/^git clone\s+/, '')
    .replace(/^(['"`])(.*)\1$/, '$2')
    .replace(/^(hf:\/\/(models\/)?|git@hf\.co:)/, `https://${hubHost}/`)
    .replace(/\.git$/, '');

function ofHub(origin: string, repository: string, revision = 'main', path = ''): ModelAddress {
  const url = new URL(origin);
  const isOurs = hubHosts.includes(url.host);
  const base = isOurs ? `https://${hubHost}` : url.origin;
  const folder = `${base}/${repository}/resolve/${encodeURIComponent(revision)}/${path && `${encodeURI(path)}/`}`;
  const at = revision === 'main' ? '' : `@${revision}`;
  return {
    id: isOurs && !path ? repository + at : folder,
    name: cut(repository + (path && `/${path}`) + at.replace(/^(@[0-9a-f]{8})[0-9a-f]{32}$/, '$1'), longestName),
    folder,
    host: new URL(base).host,
    hub: { repository, revision, path },
  };
}

const noAddress = () => new AddressError(`This is no address. ${example}`);

/** Without percent signs; their bytes may be no text. */
function decoded(path: string, decode = decodeURIComponent): string {
  try {
    return decode(path);
  } catch {
    throw noAddress();
  }
}

/** Of an address of a hub: undefined where it has not that form. */
function readHub(url: URL): ModelAddress | undefined {
  const parts = url.pathname
    .split('/')
    .filter(Boolean)
    .map((each) => decoded(each));
  const isOurs = hubHosts.includes(url.host);
  if (isOurs && parts[0] === 'api' && parts[1] === 'models') parts.splice(0, 2);
  const other = isOurs ? others[parts[0] ?? ''] : undefined;
  if (other) throw new AddressError(`This is the address of ${other}, not of a model. ${example}`);
  const verb = parts.findIndex((each, i) => (i === 1 || i === 2) && verbs.includes(each));
  if (verb < 0) {
    if (!isOurs) return undefined;
    const repository = parts.slice(0, 2).join('/');
    if (!repositoryName.test(repository)) throw new AddressError(`There is no model's name in this address. ${example}`);
    return ofHub(url.origin, repository);
  }
  // A branch of a proposal has slashes in its name.
  const [first = 'main', ...rest] = parts.slice(verb + 1);
  const revision = first === 'refs' ? [first, ...rest.splice(0, 2)].join('/') : first;
  if (rest.length > 0 && isFile.test(rest.at(-1)!)) rest.pop();
  if (rest.length > 0 && beside.test(rest.at(-1)!)) rest.pop();
  return ofHub(url.origin, parts.slice(0, verb).join('/'), revision, rest.join('/'));
}

/** Names that say nothing: the folder around them does. */
const saysNothing = /^(main|master|model|snapshots|resolve|\d+_\w+|[0-9a-f]{40})$/;
/** A model's name from a path to its folder; `otherwise` where nothing in it is one. The Hub's cache has the owner in its folders' names. */
export function nameInPath(path: string, otherwise: string): string {
  const parts = path.split('/').filter(Boolean);
  const cached = parts.findLast((each) => each.startsWith('models--'));
  return cut(cached?.slice('models--'.length).replaceAll('--', '/') ?? parts.findLast((each) => !saysNothing.test(each)) ?? otherwise, longestName);
}

/** Throws an AddressError. Relative addresses are relative to `page`. */
export function readAddress(text: string, page: string): ModelAddress {
  const written = bare(text);
  if (written === '') throw new AddressError(`Which model? ${example}`);
  if (/^([a-z]:[\\/]|~|\\\\|file:)/i.test(written))
    throw new AddressError(
      'This is a path on a disk, which a page cannot open by its name. Choose the folder below, or drop it anywhere on the page.',
    );
  if (/\s/.test(written) || /%(?![0-9a-f]{2})/i.test(written)) throw noAddress();
  const named = repositoryName.exec(written);
  if (named) return ofHub(`https://${hubHost}`, named[1]!, named[2]);
  const known = hubHosts.find((host) => written.startsWith(`${host}/`));
  const scheme = /^(localhost|\d)/.test(written) ? 'http' : 'https';
  let url: URL;
  try {
    url = new URL(known !== undefined || hostName.test(written) ? `${scheme}://${written}` : written, page.replace(/#.*/, ''));
  } catch {
    throw noAddress();
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new AddressError(`This is no address that a page can ask. ${example}`);
  const hub = readHub(url);
  if (hub) return hub;
  url.hash = '';
  url.pathname = url.pathname.replace(/\/[^/]*$/, (last) => (isFile.test(last) ? '/' : last)).replace(/\/*$/, '/');
  return { id: url.href, name: nameInPath(decoded(url.pathname, decodeURI), url.host), folder: url.href, host: url.host, hub: undefined };
}
