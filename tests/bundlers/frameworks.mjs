/** Frameworks that render on a server and in the browser, built and started for production. */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { inBrowser, model, nodeProgram, page, run, says, serving, write } from './apps.mjs';

const imports = (check) => `import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check } from '${check}';`;
const inPage = "globalThis.matrix = check(load, loadInWorker, '/tiny-bert');";
const onServer = `await check(load, loadInWorker, ${JSON.stringify(model)})`;

const isolating = [
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-embedder-policy', 'require-corp'],
];

/** Builds and starts an app with one page, and passes its URL to `use`. */
async function next(folder, text, setting, use) {
  const headers = `async () => [{ source: '/:path*', headers: ${JSON.stringify(isolating.map(([key, value]) => ({ key, value })))} }]`;
  write(folder, 'next.config.mjs', `export default { headers: ${headers}, ${setting} };`);
  write(folder, 'app/layout.js', 'export default ({ children }) => <html lang="en"><body>{children}</body></html>;');
  write(folder, 'app/page.js', text);
  cpSync(model, join(folder, 'public/tiny-bert'), { recursive: true });
  const program = 'node_modules/next/dist/bin/next';
  await run(folder, process.execPath, program, 'build');
  return serving(folder, process.execPath, [program, 'start', '-p', '5197', '-H', '127.0.0.1'], 'http://127.0.0.1:5197/', use);
}

const nextClient = (folder, browser) =>
  next(
    folder,
    `'use client';
import { useEffect } from 'react';
${imports('../check.js')}
export default function Page() {
  useEffect(() => void (${inPage.slice(0, -1)}), []);
  return <p>attn</p>;
}
`,
    '',
    (url) => inBrowser(browser, url),
  );

const nextServer = (setting) => (folder) =>
  next(
    folder,
    `${imports('../check.js')}
export const dynamic = 'force-dynamic';
export default async function Page() {
  const said = JSON.stringify(${onServer});
  return <script id="said" type="application/json" dangerouslySetInnerHTML={{ __html: said }} />;
}
`,
    setting,
    async (url) => JSON.parse(/<script id="said"[^>]*>(.*?)<\/script>/.exec(await (await fetch(url)).text())[1]),
  );

/** Runs a program that needs a newer Node than this test. */
const newer = async (folder, name, ...args) => run(folder, await nodeProgram('24.0.0'), join(folder, 'node_modules', name), ...args);

const astro = page(async (folder) => {
  write(folder, 'src/pages/index.astro', `<html lang="en"><body><script>${imports('../../check.js')}\n${inPage}</script></body></html>`);
  await newer(folder, 'astro/bin/astro.mjs', 'build');
  return join(folder, 'dist');
});

async function sveltekit(folder, adapter) {
  write(folder, 'src/app.html', '<!doctype html><html lang="en"><head>%sveltekit.head%</head><body>%sveltekit.body%</body></html>');
  const from = `import { sveltekit } from '@sveltejs/kit/vite';\nimport adapter from '@sveltejs/${adapter}';`;
  write(folder, 'vite.config.js', `${from}\nexport default { plugins: [sveltekit({ adapter: adapter() })] };`);
  await newer(folder, 'vite/bin/vite.js', 'build');
  return join(folder, 'build');
}

const svelteClient = page((folder) => {
  write(folder, 'src/routes/+page.js', 'export const prerender = true;');
  write(
    folder,
    'src/routes/+page.svelte',
    `<script>import { onMount } from 'svelte';\n${imports('../../check.js')}\nonMount(() => { ${inPage} });</script>`,
  );
  return sveltekit(folder, 'adapter-static');
});

async function svelteServer(folder) {
  write(folder, 'src/routes/said/+server.js', `${imports('../../../check.js')}\nexport const GET = async () => Response.json(${onServer});`);
  const server = await sveltekit(folder, 'adapter-node');
  return serving(folder, await nodeProgram('24.0.0'), [server], 'http://127.0.0.1:5196/said', async (url) => (await fetch(url)).json(), {
    PORT: '5196',
  });
}

const external = "serverExternalPackages: ['attn']";

export const frameworks = [
  { name: 'Next 15, client components', line: 'Next 15 and 16 (client components)', tool: 'next15', says: says.page, run: nextClient },
  { name: 'Next 16, client components', line: 'Next 15 and 16 (client components)', tool: 'next16', says: says.page, run: nextClient },
  {
    name: 'Next 15, server components',
    line: 'Next 15 and 16 (server components)',
    tool: 'next15',
    says: says.program,
    setting: external,
    run: nextServer(external),
  },
  {
    name: 'Next 16, server components',
    line: 'Next 15 and 16 (server components)',
    tool: 'next16',
    says: says.program,
    setting: external,
    run: nextServer(external),
  },
  { name: 'Astro', tool: 'astro', says: says.page, run: astro },
  { name: 'SvelteKit', tool: 'sveltekit', says: says.page, run: svelteClient },
  { name: 'SvelteKit (server)', tool: 'sveltekit', says: says.program, run: svelteServer },
];
