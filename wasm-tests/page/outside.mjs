/** What code that got into the page could send out: nothing. Loading a model by its address goes on. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { serve } from '../../tools/serve.mjs';
import { repository } from '../support/paths.mjs';
import { startServer } from '../support/server.mjs';
import { loadFrom, shows } from './models.mjs';
import { json, Page } from './page.mjs';

/** A host that would take anything: it allows all origins, and keeps what it was asked for. Chromium connects in advance, without asking. */
async function otherHost() {
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response
      .writeHead(200, { 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin', 'content-type': 'text/javascript' })
      .end();
  });
  server.on('upgrade', (request, socket) => (seen.push(`upgrade ${request.url}`), socket.destroy()));
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    seen,
    close: () => new Promise((closed) => (server.close(closed), server.closeAllConnections())),
  };
}

/** Ways out by name, each an expression with `to`, where it should not come; what throws or rejects has failed as it should. */
const ways = {
  fetch: 'fetch(to)',
  'fetch without CORS': "fetch(to, { mode: 'no-cors', method: 'POST', body: 'text' })",
  XMLHttpRequest: "new Promise((done) => { const r = new XMLHttpRequest(); r.onloadend = done; r.open('GET', to); r.send(); })",
  sendBeacon: "navigator.sendBeacon(to, 'text')",
  WebSocket: "new WebSocket(to.replace('http', 'ws'))",
  EventSource: 'new EventSource(to)',
  image: 'new Image().src = to',
  video: "document.createElement('video').src = to",
  stylesheet: "put('link', { rel: 'stylesheet', href: to })",
  prefetch: "put('link', { rel: 'prefetch', href: to })",
  preload: "put('link', { rel: 'preload', as: 'fetch', crossOrigin: '', href: to })",
  icon: "put('link', { rel: 'icon', href: to })",
  manifest: "put('link', { rel: 'manifest', href: to })",
  script: "put('script', { src: to })",
  'inline script': 'put(\'script\', { textContent: "fetch(\'" + to + "\')" })',
  'script in an attribute': "put('b', {}).setAttribute('onclick', \"fetch('\" + to + \"')\"), document.body.lastChild.click()",
  HTML: "put('div', {}).innerHTML = '<img src=\"' + to + '\">'",
  'inline style': "put('style', { textContent: 'body { background: url(' + to + ') }' })",
  'style attribute': "put('b', {}).setAttribute('style', 'background: url(' + to + ')')",
  'style by script': "document.body.style.backgroundImage = 'url(' + to + ')'",
  font: "new FontFace('other', 'url(' + to + ')').load()",
  frame: "put('iframe', { src: to })",
  object: "put('object', { data: to })",
  embed: "put('embed', { src: to })",
  form: "(() => { const form = put('form', { action: to, method: 'post' }); form.submit(); })()",
  worker: "new Worker(to, { type: 'module' })",
  'worker of its own making': 'new Worker(URL.createObjectURL(new Blob(["fetch(\'" + to + "\')"])))',
  'data: worker': 'new Worker("data:text/javascript,fetch(\'" + to + "\')")',
  module: 'import(to)',
  eval: 'eval("fetch(\'" + to + "\')")',
  Function: 'new Function("fetch(\'" + to + "\')")()',
  'a policy of its own': "trustedTypes.createPolicy('own', { createScriptURL: (url) => url })",
  "the package's policy once more": "trustedTypes.createPolicy('attn#worker', { createScriptURL: (url) => url })",
  "the page's policy once more": "trustedTypes.createPolicy('page#train', { createScriptURL: (url) => url })",
};

async function assertClosed(page, host) {
  const answers = await page.driver.evaluate(`(async () => {
    const put = (name, properties) => document.body.appendChild(Object.assign(document.createElement(name), properties));
    const answers = {};
    for (const [name, way] of Object.entries({ ${Object.entries(ways)
      .map(([name, way]) => `${json(name)}: async (to) => (${way})`)
      .join(', ')} }))
      answers[name] = await Promise.race([
        way(${json(host.url)} + encodeURIComponent(name)).then(() => 'done', (error) => 'refused: ' + error.name),
        new Promise((done) => setTimeout(done, 300, 'waits')),
      ]);
    return answers;
  })()`);
  await sleep(1000);
  assert.deepEqual(host.seen, [], 'what came out');
  assert.match(await page.driver.evaluate('location.href'), new RegExp(`^${page.origin}`), 'the page is where it was');
  const refused = ['fetch', 'fetch without CORS', 'module', 'eval', 'Function'];
  // Where the browser has Trusted Types.
  if (await page.driver.evaluate("typeof trustedTypes === 'object'"))
    refused.push(
      'HTML',
      'script',
      'worker',
      'worker of its own making',
      'data: worker',
      'a policy of its own',
      "the package's policy once more",
      "the page's policy once more",
    );
  for (const name of refused) assert.match(answers[name], /^refused/, name);
}

/** A page that has no probe: nothing of a test is in it. */
async function bare(driver, server, host, other) {
  const page = new Page(driver, server.url.replace('//localhost', '//127.0.0.1'));
  await page.open();
  await assertClosed(page, host);
  await page.open();
  // Another origin than the page's, whose files anybody may read.
  await loadFrom(page, `${other.url}model/plain/tiny-bert`);
  await shows(page, 'tiny-bert');
}

export const tests = {
  async 'what gets into the page sends nothing out, and a model comes from another host all the same'({ page }) {
    const root = join(repository, 'build/page');
    const [host, other] = [await otherHost(), await startServer()];
    // As any host of files serves it, where the page's own policy is all there is, and as make demo does.
    const plain = await startServer({ root, policy: null });
    const demo = await serve({ port: 0, root });
    try {
      for (const server of [plain, demo]) await bare(page.driver, server, host, other);
    } finally {
      await Promise.all([host, other, plain, demo].map((each) => each.close()));
    }
    await page.open();
  },
};
