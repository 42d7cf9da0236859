import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createCssVariablesTheme } from 'shiki';
import { defineConfig } from 'vitepress';
import { placeholder } from '../tools/relocate.mjs';
import { fences } from './fences.mjs';

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** Sidebar items for the pages of a reference folder, by title; none if it has not been generated. */
const pagesOf = (folder) =>
  !existsSync(at(folder))
    ? []
    : readdirSync(at(folder))
        .filter((name) => name.endsWith('.md') && name !== 'index.md')
        .map((name) => ({
          text: /^# (?:\w+(?: alias)?: )?(.*)$/m.exec(readFileSync(at(`${folder}/${name}`), 'utf8'))[1].replace(/\\?<.*|\(\)$/, ''),
          link: `/${folder}/${name.slice(0, -3)}`,
        }));

const kinds = { functions: 'Functions', classes: 'Classes', interfaces: 'Interfaces', 'type-aliases': 'Types' };
const moduleOf = (text, name) => ({
  text,
  link: `/reference/js/${name}/`,
  collapsed: true,
  items: Object.entries(kinds).flatMap(([folder, kind]) => {
    const items = pagesOf(`reference/js/${name}/${folder}`);
    return items.length > 0 ? [{ text: kind, items }] : [];
  }),
});

const guide = [
  {
    text: 'Getting started',
    items: [
      { text: 'Attention in five minutes', link: '/guide/start' },
      { text: 'Examples', link: '/guide/examples' },
      { text: 'Coming from another library', link: '/guide/migrate' },
      { text: 'Troubleshooting', link: '/guide/troubleshooting' },
      { text: 'Glossary', link: '/guide/glossary' },
    ],
  },
  {
    text: 'Models',
    items: [
      { text: 'Embeddings and semantic search', link: '/guide/embeddings' },
      { text: 'Search your texts', link: '/guide/search' },
      { text: 'Tasks: NER, masks, answers, ranking', link: '/guide/tasks' },
      { text: 'Language models', link: '/guide/generate' },
      { text: 'Which model', link: '/guide/models' },
      { text: 'Files of a model', link: '/guide/model-files' },
      { text: 'The tokenizer alone', link: '/guide/tokenizer' },
      { text: 'int8', link: '/guide/int8' },
      { text: 'Explain an answer', link: '/guide/explain' },
      { text: 'Inside a language model', link: '/guide/lens' },
      { text: 'Train', link: '/guide/train' },
    ],
  },
  {
    text: 'Languages and hosts',
    items: [
      { text: 'Command line', link: '/guide/command' },
      { text: 'C++', link: '/guide/cpp' },
      { text: 'C, and other languages', link: '/guide/c' },
      { text: 'Python', link: '/guide/python' },
      { text: 'Bundlers and hosts', link: '/guide/bundlers' },
      { text: 'Security', link: '/guide/security' },
      { text: 'A corpus on a cluster', link: '/guide/cluster' },
    ],
  },
  {
    text: 'Benchmarks and guarantees',
    items: [
      { text: 'Sizes and speed', link: '/guide/speed' },
      { text: 'Exactness and bits', link: '/guide/exactness' },
      { text: 'Releases', link: '/guide/releases' },
    ],
  },
];

const reference = [
  { text: 'Reference', link: '/reference/' },
  {
    text: 'JavaScript',
    items: [
      moduleOf('attn', 'attn'),
      moduleOf('attn/worker', 'worker'),
      moduleOf('attn/element', 'element'),
      moduleOf('attn/lens', 'lens'),
      moduleOf('attn/search', 'search'),
      moduleOf('attn/search-element', 'search-element'),
      moduleOf('attn/tokenizer', 'tokenizer'),
      moduleOf('attn/chunk', 'chunk'),
      moduleOf('attn/static', 'static'),
      moduleOf('attn/cache', 'cache'),
    ],
  },
  { text: 'C++', link: '/reference/cpp/', items: pagesOf('reference/cpp') },
  { text: 'Python', link: '/reference/python/', items: pagesOf('reference/python') },
];

/** Indexes names of code also by their parts, so that "product" finds scaledDotProductAttention. */
function rendered(source, environment, markdown) {
  const html = markdown.render(source, environment);
  return html.replace(/<h[1-6]\b[^>]*>([^]*?)<\/h[1-6]>/g, (heading, text) => {
    const words = text.replace(/<[^>]*>/g, ' ').match(/[a-zA-Z]+(?:[A-Z_]\w*)/g) ?? [];
    return `${heading}<p>${words.map((word) => word.replace(/([a-z0-9])(?=[A-Z])/g, '$1 ').replaceAll('_', ' ')).join(' ')}</p>`;
  });
}

export default defineConfig({
  title: 'attn',
  description: 'Run and inspect Transformer models on the CPU, in the browser, Node, C++ and Python: guides and reference.',
  lang: 'en',
  base: placeholder,
  // The search index is in the order in which pages finish; one at a time makes builds reproducible.
  buildConcurrency: 1,
  srcExclude: ['decisions/**', 'dev/**', 'README.md'],
  // Disabling transitions would insert an inline style, which the policy forbids.
  appearance: { disableTransition: false },
  // Firefox applies default-src to prefetches, which is 'none'.
  router: { prefetchLinks: false },
  // One shared file instead of a script per page, because the policy names every script by its digest.
  metaChunk: true,
  head: [['link', { rel: 'icon', href: `${placeholder}favicon.svg`, type: 'image/svg+xml' }]],
  markdown: {
    // Colours by class, because the policy forbids style attributes.
    theme: createCssVariablesTheme({ name: 'attn', variablePrefix: '--code-', fontStyle: false }),
    codeTransformers: [
      {
        span(node) {
          const [, token] = /var\(--code-([\w-]+)\)/.exec(node.properties.style ?? '') ?? [];
          delete node.properties.style;
          if (token) this.addClassToHast(node, `code-${token}`);
        },
        pre(node) {
          delete node.properties.style;
        },
      },
    ],
    config: fences,
  },
  vue: { template: { compilerOptions: { isCustomElement: (tag) => tag === 'live-code' || tag === 'attention-map' } } },
  vite: {
    publicDir: at('public'),
    build: { assetsInlineLimit: 0, modulePreload: { polyfill: false }, chunkSizeWarningLimit: 2000 },
  },
  themeConfig: {
    nav: [
      { text: 'Guide', link: '/guide/start', activeMatch: '^/guide/' },
      { text: 'Reference', link: '/reference/', activeMatch: '^/reference/' },
      // The demo page, one level above this site.
      { text: 'The page', link: '/../', target: '_self' },
    ],
    sidebar: { '/guide/': guide, '/reference/': reference },
    outline: { level: [2, 3] },
    search: {
      provider: 'local',
      options: { _render: rendered },
    },
    footer: {
      message: `Everything here runs in your browser; nothing is fetched from elsewhere. Apache 2.0, <a href="${placeholder}NOTICES.txt">third-party notices</a>.`,
    },
  },
});
