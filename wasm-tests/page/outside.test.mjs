/** Code injected into the page must not be able to send data out, while models still load by address. */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { serve } from '../../tools/serve.mjs';
import { startServer } from '../support/server.mjs';
import { loadFrom, shows } from './models.mjs';
import { Page } from './page.mjs';
import { pageTest, root } from './fixture.mjs';

/** Starts a host that allows all origins and records requests. Chromium connects in advance, without a request. */
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

/**
 * Runs in the page: tries each way to reach an address below `host`, and reports the outcome by name. A refusal may
 * throw or reject.
 */
async function tryWaysOut(host) {
  const put = (name, properties) => document.body.appendChild(Object.assign(document.createElement(name), properties));
  const policy = (name) => () => trustedTypes.createPolicy(name, { createScriptURL: (url) => url });
  const ways = {
    fetch: (to) => fetch(to),
    'fetch without CORS': (to) => fetch(to, { mode: 'no-cors', method: 'POST', body: 'text' }),
    XMLHttpRequest: (to) =>
      new Promise((done) => {
        const request = new XMLHttpRequest();
        request.onloadend = done;
        request.open('GET', to);
        request.send();
      }),
    sendBeacon: (to) => navigator.sendBeacon(to, 'text'),
    WebSocket: (to) => new WebSocket(to.replace('http', 'ws')),
    EventSource: (to) => new EventSource(to),
    image: (to) => (new Image().src = to),
    video: (to) => (document.createElement('video').src = to),
    stylesheet: (to) => put('link', { rel: 'stylesheet', href: to }),
    prefetch: (to) => put('link', { rel: 'prefetch', href: to }),
    preload: (to) => put('link', { rel: 'preload', as: 'fetch', crossOrigin: '', href: to }),
    icon: (to) => put('link', { rel: 'icon', href: to }),
    manifest: (to) => put('link', { rel: 'manifest', href: to }),
    script: (to) => put('script', { src: to }),
    'inline script': (to) => put('script', { textContent: `fetch('${to}')` }),
    'script in an attribute': (to) => {
      const element = put('b', {});
      element.setAttribute('onclick', `fetch('${to}')`);
      element.click();
    },
    HTML: (to) => (put('div', {}).innerHTML = `<img src="${to}">`),
    'inline style': (to) => put('style', { textContent: `body { background: url(${to}) }` }),
    'style attribute': (to) => put('b', {}).setAttribute('style', `background: url(${to})`),
    'style by script': (to) => (document.body.style.backgroundImage = `url(${to})`),
    font: (to) => new FontFace('other', `url(${to})`).load(),
    frame: (to) => put('iframe', { src: to }),
    object: (to) => put('object', { data: to }),
    embed: (to) => put('embed', { src: to }),
    form: (to) => put('form', { action: to, method: 'post' }).submit(),
    worker: (to) => new Worker(to, { type: 'module' }),
    'worker of its own making': (to) => new Worker(URL.createObjectURL(new Blob([`fetch('${to}')`]))),
    'data: worker': (to) => new Worker(`data:text/javascript,fetch('${to}')`),
    module: (to) => import(to),
    eval: (to) => globalThis.eval(`fetch('${to}')`),
    Function: (to) => new Function(`fetch('${to}')`)(),
    'a policy of its own': policy('own'),
    "the package's policy once more": policy('attn#worker'),
    "the page's policy once more": policy('page#train'),
  };
  const answers = {};
  for (const [name, way] of Object.entries(ways)) {
    const tried = Promise.resolve(host + encodeURIComponent(name)).then(way);
    const ended = tried.then(
      () => 'done',
      (error) => `refused: ${error.name}`,
    );
    answers[name] = await Promise.race([ended, new Promise((done) => setTimeout(done, 300, 'waits'))]);
  }
  return answers;
}

async function assertClosed(page, host) {
  const answers = await page.evaluate(tryWaysOut, host.url);
  await sleep(1000);
  assert.deepEqual(host.seen, [], 'what came out');
  assert.match(await page.evaluate(() => location.href), new RegExp(`^${page.origin}`), 'the page is where it was');
  const refused = ['fetch', 'fetch without CORS', 'module', 'eval', 'Function'];
  // With Trusted Types.
  if (await page.evaluate(() => typeof trustedTypes === 'object'))
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

/** A page without the probe of the tests. */
async function bare(driver, server, host, other) {
  const page = new Page(driver, server.url.replace('//localhost', '//127.0.0.1'));
  await page.open();
  await assertClosed(page, host);
  await page.open();
  // A different origin, whose files anyone may read.
  await loadFrom(page, `${other.url}model/plain/tiny-bert`);
  await shows(page, 'tiny-bert');
}

pageTest('injected code sends nothing out, and models still load from another host', { isolated: 'chromium' }, async ({ page }) => {
  const [host, other] = [await otherHost(), await startServer()];
  // Served with only the page's own policy, as by a static host, and as by `make demo`.
  const plain = await startServer({ root, policy: null });
  const demo = await serve({ port: 0, root });
  try {
    for (const server of [plain, demo]) await bare(page.driver, server, host, other);
  } finally {
    await Promise.all([host, other, plain, demo].map((each) => each.close()));
  }
  await page.open();
});
