#!/usr/bin/env node
/**
 * make page-figures: measures the built page (build/page, or another folder) in Chromium: bytes before the first
 * picture, layout shifts, milliseconds per pointer move and key with 256 tokens without the forward, memory, time to the
 * first map. Needs
 * models/all-MiniLM-L6-v2-int8 (make page MODELS=1).
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { launch, version } from '../../wasm-tests/browser/drivers.mjs';
import { loadMini, shows } from '../../wasm-tests/page/models.mjs';
import { Page, settled, shifts } from '../../wasm-tests/page/page.mjs';
import { startServer } from '../../wasm-tests/support/server.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';

const root = resolve(process.argv[2] ?? join(repository, 'build/page'));
const tokens = 256;
const [moves, keys, starts] = [40, 9, 7];

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const worst = (values) => Math.max(...values);
const ms = (value) => `${value.toFixed(1)} ms`;

const text = JSON.parse(readFileSync(join(repository, 'testdata/sentiment/films.json'), 'utf8'))
  .texts.slice(0, 24)
  .map((each) => each.text)
  .join(' ');

async function shiftOf(page, width) {
  await page.driver.resize(width, 800);
  await page.openFresh();
  await page.until(() => !!document.getElementById('proof'), 'the story');
  await page.says(/^Ready/, 'status');
  await sleep(1500); // for whatever else arrives; scrolling by a script would move things
  return (await shifts(page)).reduce((sum, [value]) => sum + value, 0);
}

/** Uncompressed bytes of the files that were requested until the first picture was complete: [all, by kind]. */
async function firstBytes(page) {
  sent.length = 0;
  await page.openFresh();
  const ready = await page.evaluate(() => performance.timeOrigin + attnProbe.ready);
  const kinds = { model: /\.(safetensors|json)$/, module: /\.wasm$/, worker: /\bworker-host\b/, 'scripts and styles': /\.(js|css)$/ };
  const sums = Object.fromEntries([...Object.keys(kinds), 'other'].map((kind) => [kind, 0]));
  for (const { path, bytes, time } of sent) {
    if (time > ready) continue;
    const [kind] = Object.entries(kinds).find(([, pattern]) => pattern.test(path)) ?? ['other'];
    sums[kind] += bytes;
  }
  const kB = (bytes) => `${Math.round(bytes / 1000)} kB`;
  const parts = Object.entries(sums).map(([kind, bytes]) => `${kind} ${kB(bytes)}`);
  return `${kB(Object.values(sums).reduce((sum, bytes) => sum + bytes))}: ${parts.join(', ')}`;
}

async function bootTimes(page) {
  const times = [];
  for (let i = 0; i < starts; ++i) {
    await page.openFresh();
    times.push(await page.evaluate(() => attnProbe.ready));
  }
  return times;
}

/**
 * Moves the pointer over many cells per frame. Measures processor time of the page's main thread, which other
 * processes do not affect.
 */
async function hover(page) {
  const before = await page.driver.cpu();
  await page.tool(async ({ find }, count) => {
    const grid = find('grid');
    const { left, top, width, height } = grid.getBoundingClientRect();
    for (let i = 0; i < count; ++i) {
      const at = { clientX: left + width * ((i * 0.037) % 1), clientY: top + height * ((0.3 + i * 0.053) % 1) };
      grid.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, pointerType: 'mouse', ...at }));
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    }
  }, moves);
  return ((await page.driver.cpu()) - before) / moves;
}

const type = (page) =>
  page.tool(async ({ choose, find, text }, count) => {
    const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
    const field = find('textbox', 'Sentence');
    const status = find('status');
    const changed = () =>
      new Promise((done) => {
        const observer = new MutationObserver(() => {
          observer.disconnect();
          done();
        });
        observer.observe(status, { childList: true, characterData: true, subtree: true });
      });
    const drawn = () =>
      new Promise((done) =>
        requestAnimationFrame(() => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = done;
          port2.postMessage(0);
        }),
      );
    const results = [];
    for (let i = 0; i < count; ++i) {
      await sleep(1500);
      const blocks = [];
      const observer = new PerformanceObserver((list) => blocks.push(...list.getEntries().map(({ duration }) => duration)));
      observer.observe({ type: 'longtask' });
      const before = text(status);
      const start = performance.now();
      choose(field, (i % 2 ? 'good ' : 'bad ') + field.value.replace(/^(good|bad) /, ''));
      while (text(status) === before || !/^Ready/.test(text(status))) await changed();
      await drawn();
      const whole = performance.now() - start;
      const forward = Number(/in (\d+\.\d) ms/.exec(text(status))[1]);
      await sleep(1500);
      observer.disconnect();
      results.push({ beyond: whole - forward, forward, block: Math.max(0, ...blocks) });
    }
    return results;
  }, keys);

const driver = await launch('chromium');
const sent = [];
const server = await startServer({ root, withProbe: true, onFile: (path, bytes) => sent.push({ path, bytes, time: Date.now() }) });
const rows = [];
try {
  const page = new Page(driver, server.url);
  rows.push(['bytes before the first picture', await firstBytes(page)]);
  for (const width of [1280, 375]) rows.push([`layout shift at ${width}`, (await shiftOf(page, width)).toFixed(4)]);
  await driver.resize(1280, 800);
  const boot = await bootTimes(page);
  rows.push(['first map, median of a warm cache', `${Math.round(median(boot))} ms, least ${Math.round(Math.min(...boot))}`]);
  await page.open();
  await settled(page);
  await loadMini(page);
  await shows(page, 'all-MiniLM-L6-v2');
  await sleep(2000);
  const before = await driver.memory();
  await page.choose('textbox', 'Sentence', text);
  await page.says(new RegExp(`over ${tokens} tokens`), 'status');
  await sleep(4000);
  const after = await driver.memory();
  await hover(page);
  rows.push([`a move over ${tokens} tokens, processor time of the page`, ms(await hover(page))]);
  const typed = await type(page);
  rows.push([
    `a key in ${tokens} tokens, beyond the forward of ${ms(median(typed.map(({ forward }) => forward)))}`,
    `${ms(median(typed.map(({ beyond }) => beyond)))}, most ${ms(worst(typed.map(({ beyond }) => beyond)))}`,
  ]);
  rows.push(['longest block of the page after a key', ms(median(typed.map(({ block }) => block)))]);
  const shown = 6 * 12 * tokens ** 2 * 4;
  rows.push([
    'memory of the page for it, beside that of the weights shown',
    `${((after.bytes - before.bytes) / 1e6).toFixed(1)} MB, ${(shown / 1e6).toFixed(1)} MB`,
  ]);
} finally {
  await driver.close();
  await server.close();
}
console.log(version('chromium'));
const wide = Math.max(...rows.map(([what]) => what.length));
for (const [what, value] of rows) console.log(`${what.padEnd(wide)}  ${value}`);
