/** Parses names on the Hub, any form of a Hub address, and addresses of folders and GGUF files. */
import { truncate, longestName } from '../formats/truncate.ts';

export class AddressError extends Error {}

export interface ModelAddress {
  /** Canonical form for links. */
  readonly id: string;
  readonly name: string;
  /** Absolute: a folder, with a trailing slash, or a .gguf file. */
  readonly location: string;
  readonly host: string;
  /** Set for addresses of a hub on any host. */
  readonly hub: { readonly repository: string; readonly revision: string; readonly path: string } | undefined;
}

export const hubHost = 'huggingface.co';
const hubHosts = [hubHost, 'www.huggingface.co', 'hf.co', 'www.hf.co'];

const part = '[\\w-][\\w.-]*';
/** "owner/name" or, for a few old models, "name"; optionally with a revision. */
const repositoryName = new RegExp(`^(${part}(?:/${part})?)(?:@([\\w./-]+))?$`);
const hostName = /^(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?\/|^(?:localhost|\d+\.\d+\.\d+\.\d+)(?::\d+)?\//i;
const verbs = ['tree', 'blob', 'resolve', 'raw'];
/** Other kinds of pages on the Hub. */
const others: Readonly<Record<string, string>> = { datasets: 'a data set', spaces: 'a Space', collections: 'a collection', papers: 'a paper' };
/** Folders next to a model's files with other formats or parts of it. */
const beside = /^(\d+_\w+|onnx|openvino|coreml)$/i;
const isFile = /\.(json|safetensors|txt|bin|model|onnx|h5|msgpack|md)$/i;
/** A whole model in one file. */
export const isGguf = (path: string): boolean => path.endsWith('.gguf');

const example =
  'Enter owner/name as on the Hub, for example BAAI/bge-small-en-v1.5, or the URL of a folder or of a .gguf file, for example https://example.org/models/my-bert/.';

/** Removes quotes, "git clone" and other prefixes that people paste. */
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
  const location = `${base}/${repository}/resolve/${encodeURIComponent(revision)}/${encodeURI(path)}${path && !isGguf(path) ? '/' : ''}`;
  const at = revision === 'main' ? '' : `@${revision}`;
  return {
    id: isOurs && !path ? repository + at : location,
    name: truncate(repository + (path && `/${path}`) + at.replace(/^(@[0-9a-f]{8})[0-9a-f]{32}$/, '$1'), longestName),
    location,
    host: new URL(base).host,
    hub: { repository, revision, path },
  };
}

const noAddress = () => new AddressError(`This is not a valid address. ${example}`);

function decoded(path: string, decode = decodeURIComponent): string {
  try {
    return decode(path);
  } catch {
    throw noAddress();
  }
}

/** Undefined if the address has not the form of a hub's. */
function readHub(url: URL): ModelAddress | undefined {
  const parts = url.pathname
    .split('/')
    .filter(Boolean)
    .map((each) => decoded(each));
  const isOurs = hubHosts.includes(url.host);
  if (isOurs && parts[0] === 'api' && parts[1] === 'models') parts.splice(0, 2);
  const other = isOurs ? others[parts[0] ?? ''] : undefined;
  if (other) throw new AddressError(`This address leads to ${other}, not to a model. ${example}`);
  const verb = parts.findIndex((each, i) => (i === 1 || i === 2) && verbs.includes(each));
  if (verb < 0) {
    if (!isOurs) return undefined;
    const repository = parts.slice(0, 2).join('/');
    if (!repositoryName.test(repository)) throw new AddressError(`This address contains no model name. ${example}`);
    return ofHub(url.origin, repository);
  }
  // Pull request branches contain slashes (refs/pr/1).
  const [first = 'main', ...rest] = parts.slice(verb + 1);
  const revision = first === 'refs' ? [first, ...rest.splice(0, 2)].join('/') : first;
  if (rest.length > 0 && isFile.test(rest.at(-1)!)) rest.pop();
  if (rest.length > 0 && beside.test(rest.at(-1)!)) rest.pop();
  return ofHub(url.origin, parts.slice(0, verb).join('/'), revision, rest.join('/'));
}

/** Generic names: the parent folder names the model. */
const saysNothing = /^(main|master|model|snapshots|resolve|\d+_\w+|[0-9a-f]{40})$/;
/** The Hub's cache encodes the owner in folder names. */
export function nameInPath(path: string, otherwise: string): string {
  const parts = path.split('/').filter(Boolean);
  const cached = parts.findLast((each) => each.startsWith('models--'));
  return truncate(
    cached?.slice('models--'.length).replaceAll('--', '/') ?? parts.findLast((each) => !saysNothing.test(each)) ?? otherwise,
    longestName,
  );
}

export function readAddress(text: string, page: string): ModelAddress {
  const written = bare(text);
  if (written === '') throw new AddressError(`There is no model name. ${example}`);
  if (/^([a-z]:[\\/]|~|\\\\|file:)/i.test(written))
    throw new AddressError('This is a path on your disk, which a page cannot open. Choose the folder below, or drop it anywhere on the page.');
  if (/\s/.test(written) || /%(?![0-9a-f]{2})/i.test(written)) throw noAddress();
  const named = isGguf(written) ? null : repositoryName.exec(written);
  if (named) return ofHub(`https://${hubHost}`, named[1]!, named[2]);
  const known = hubHosts.find((host) => written.startsWith(`${host}/`));
  const scheme = /^(localhost|\d)/.test(written) ? 'http' : 'https';
  let url: URL;
  try {
    url = new URL(known !== undefined || hostName.test(written) ? `${scheme}://${written}` : written, page.replace(/#.*/, ''));
  } catch {
    throw noAddress();
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new AddressError(`This page can load only http and https addresses. ${example}`);
  const hub = readHub(url);
  if (hub) return hub;
  url.hash = '';
  if (!isGguf(url.pathname)) url.pathname = url.pathname.replace(/\/[^/]*$/, (last) => (isFile.test(last) ? '/' : last)).replace(/\/*$/, '/');
  return { id: url.href, name: nameInPath(decoded(url.pathname, decodeURI), url.host), location: url.href, host: url.host, hub: undefined };
}
