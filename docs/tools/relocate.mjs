/**
 * Makes the site independent of its path. VitePress needs a path at build time, so it gets a placeholder, which is
 * replaced here: pages use relative addresses, scripts use addresses relative to themselves.
 */
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { parseAst } from 'rollup/parseAst';

export const placeholder = '/attn-docs-base/';

/** The way from a file to the site's folder: './', '../', '../../' … */
const up = (root, file) => '../'.repeat(relative(root, file).split(sep).length - 1) || './';

/** Nodes of a syntax tree, parents first. */
function* nodesOf(node) {
  if (typeof node?.type === 'string') yield node;
  for (const child of Object.values(node ?? {})) if (child !== null && typeof child === 'object') yield* nodesOf(child);
}

/**
 * Replaces placeholders in strings and templates of a script by the address of the folder at `way`, relative to the
 * script.
 */
export function relocateScript(code, way) {
  const base = `new URL(${JSON.stringify(way)},import.meta.url).pathname`;
  const edits = [];
  for (const { type, value, start, end } of nodesOf(parseAst(code))) {
    if (type === 'Literal' && typeof value === 'string' && value.includes(placeholder))
      edits.push([
        start,
        end,
        `(${value
          .split(placeholder)
          .map((part) => JSON.stringify(part))
          .join(`+${base}+`)})`,
      ]);
    else if (type === 'TemplateElement' && value.raw.includes(placeholder))
      edits.push([start, end, value.raw.replaceAll(placeholder, `\${${base}}`)]);
  }
  for (const [start, end, text] of edits.sort((a, b) => b[0] - a[0])) code = code.slice(0, start) + text + code.slice(end);
  return code;
}

const digest = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/** The policy of a page: its own scripts and files, inline scripts by digest, and readers' programs in run.html. */
const policy = (scripts) =>
  [
    "default-src 'none'",
    `script-src 'self' ${scripts}`,
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "frame-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');

/**
 * Inline styles of VitePress, which the policy forbids: theme/style.css has the first, scripts set the others if
 * necessary.
 */
const styles = ['position:relative;', '--vp-vh:0px;', ''];

/** Makes the page's addresses relative and adds its policy. */
export function relocatePage(html, way) {
  const relocated = html.replaceAll(placeholder, way).replace(/ style="([^"]*)"/g, (_, style) => {
    if (!styles.includes(style)) throw new Error(`an element has style="${style}", which the policy forbids`);
    return '';
  });
  const scripts = [...relocated.matchAll(/<script\b(?![^>]*\bsrc=)[^>]*>([^]*?)<\/script>/g)].map(([, text]) => digest(text)).join(' ');
  // run.html has its own policy.
  if (relocated.includes('SCRIPT_DIGESTS')) return relocated.replace('SCRIPT_DIGESTS', scripts);
  return relocated.replace('<meta charset="utf-8">', `$&\n    <meta http-equiv="Content-Security-Policy" content="${policy(scripts)}">`);
}

/** Relocates all pages and scripts of a built site. */
export function relocate(root) {
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    const change = { html: relocatePage, js: relocateScript, css: (text, way) => text.replaceAll(placeholder, way) }[entry.name.split('.').at(-1)];
    if (!entry.isFile() || change === undefined) continue;
    const text = readFileSync(file, 'utf8');
    if (text.includes(placeholder) || entry.name.endsWith('.html')) writeFileSync(file, change(text, up(root, file)));
  }
}
