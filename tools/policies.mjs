/** The Content Security Policies of the page, its worker and its files, as tools/serve.mjs sends them. */
import { createHash } from 'node:crypto';

/** What a page may do is what it needs; the built page says so itself in a meta tag, for servers that send no headers. */
const common = {
  'default-src': ["'none'"],
  'script-src': ["'self'", "'wasm-unsafe-eval'"],
  'worker-src': ["'self'"],
  'connect-src': ["'self'"],
  'base-uri': ["'none'"],
  'form-action': ["'none'"],
  'require-trusted-types-for': ["'script'"],
  'trusted-types': ['attn#worker', 'page#train'],
};
const written = (directives) =>
  Object.entries(directives)
    .map(([name, values]) => `${name} ${values.join(' ')}`)
    .join('; ');

const digests = (texts) => texts.map((text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);

/** Of a document. Scripts and styles inside it are named by their digests. That nobody may frame it can be said by a header only; embed.html is for that. */
export const pagePolicy = ({ scripts = [], styles = [], images = [], framed = false } = {}) =>
  written({
    ...common,
    'script-src': [...common['script-src'], ...digests(scripts)],
    'style-src': ["'self'", ...digests(styles)],
    'img-src': ["'self'", ...images],
    'frame-ancestors': framed ? ['*'] : ["'none'"],
  });

/** Of a worker, which browsers take from its own script's answer: it loads models, and their address may be anywhere. */
export const workerPolicy = written({ ...common, 'connect-src': ["'self'", 'https:', 'http:'], 'frame-ancestors': ["'none'"] });

/** Of what is neither: opened by itself it may do nothing. */
export const filePolicy = written({ 'default-src': ["'none'"], 'frame-ancestors': ["'none'"] });
