/** Content Security Policies of the page, its worker and its files, sent by tools/serve.mjs. */
import { createHash } from 'node:crypto';

/** Grants the page a minimum of rights. The built page repeats it in a meta tag, for servers without headers. */
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

/**
 * Policy of a document. Inline scripts and styles are allowed by their digests. Only a header can forbid framing;
 * embed.html may be framed.
 */
export const pagePolicy = ({ scripts = [], styles = [], images = [], framed = false } = {}) =>
  written({
    ...common,
    'script-src': [...common['script-src'], ...digests(scripts)],
    'style-src': ["'self'", ...digests(styles)],
    'font-src': ["'self'"],
    'img-src': ["'self'", ...images],
    'frame-ancestors': framed ? ['*'] : ["'none'"],
  });

/** Policy of a worker, which browsers take from the response of its script: it loads models from any address. */
export const workerPolicy = written({ ...common, 'connect-src': ["'self'", 'https:', 'http:'], 'frame-ancestors': ["'none'"] });

export const filePolicy = written({ 'default-src': ["'none'"], 'frame-ancestors': ["'none'"] });
