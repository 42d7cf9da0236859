/** Files next to the built page: social card, licences and, if they were built, the package and the documentation. */
import { cpSync, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HtmlTagDescriptor, Plugin } from 'vite';
import { cardHeight, cardWidth, drawCard, firstMap } from './social_card.ts';

const at = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** Size of build/attn.tgz (`make package`), unless it is older than the library. */
export function packedBytes(): number {
  const [packed, library] = [at('build/attn.tgz'), at('web/lib/dist/index.js')];
  if (!existsSync(packed) || statSync(packed).mtimeMs < statSync(library).mtimeMs) return 0;
  return statSync(packed).size;
}

/** build/docs (`make docs`) exists; DOCS=0 leaves it out. */
export const hasDocs = (): boolean => process.env['DOCS'] !== '0' && existsSync(at('build/docs/index.html'));

/** "git+https://host/owner/name.git" -> "https://host/owner/name"; '' without a repository on the web. */
export function sourceAddress(manifest: { readonly repository?: string | { readonly url?: string } }): string {
  const { repository } = manifest;
  const written = (typeof repository === 'string' ? repository : repository?.url) ?? '';
  const address = written.replace(/^git\+/, '').replace(/\.git$/, '');
  return /^https:\/\/\S+$/.test(address) ? address : '';
}

export const readSourceAddress = (): string =>
  sourceAddress(JSON.parse(readFileSync(at('web/lib/package.json'), 'utf8')) as Parameters<typeof sourceAddress>[0]);

/**
 * Tags for link previews. Most programs need the picture's absolute address, which `make page URL=https://example.org/attn/` provides; otherwise it
 * is relative.
 */
export function cardTags(pageUrl: string | undefined): readonly HtmlTagDescriptor[] {
  const folder = pageUrl?.replace(/[^/]*$/, '') ?? './';
  const property = (name: string, content: string): HtmlTagDescriptor => ({ tag: 'meta', attrs: { property: name, content }, injectTo: 'head' });
  return [
    property('og:image', `${folder}social-card.png`),
    property('og:image:type', 'image/png'),
    property('og:image:width', String(cardWidth)),
    property('og:image:height', String(cardHeight)),
    ...(pageUrl ? [property('og:url', pageUrl), { tag: 'link', attrs: { rel: 'canonical', href: pageUrl }, injectTo: 'head' } as const] : []),
  ];
}

export const besideThePage = (pageUrl: string | undefined): Plugin => ({
  name: 'beside-the-page',
  apply: 'build',
  // An embedded page needs no card.
  transformIndexHtml: (_, { path }) => (path.endsWith('/index.html') ? [...cardTags(pageUrl)] : []),
  async generateBundle() {
    const emit = (fileName: string, source: Uint8Array | string) => this.emitFile({ type: 'asset', fileName, source });
    emit('social-card.png', drawCard(await firstMap()).png());
    // With .txt, because hosts offer other extensions as downloads.
    emit('LICENSE.txt', readFileSync(at('LICENSE')));
    emit('NOTICES.txt', readFileSync(at('THIRD_PARTY_NOTICES.md')));
    emit('OFL.txt', readFileSync(at('web/page/fonts/OFL.txt')));
    if (packedBytes() > 0) emit('attn.tgz', readFileSync(at('build/attn.tgz')));
  },
  writeBundle({ dir }) {
    if (hasDocs() && dir) cpSync(at('build/docs'), join(dir, 'docs'), { recursive: true });
  },
});
