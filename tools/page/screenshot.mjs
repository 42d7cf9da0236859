/**
 * node tools/page/screenshot.mjs [FOLDER]: writes docs/public/page.webp, the picture in the README, from the built
 * page in FOLDER (default build/page).
 */
import { statSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { programs } from '../../wasm-tests/browser/drivers.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { serve } from '../serve.mjs';

const file = at('docs/public/page.webp');

const server = await serve({ port: 0, root: resolve(process.argv[2] ?? at('build/page')) });
const browser = await chromium.launch({ executablePath: programs('chromium').chromium, args: ['--no-sandbox', '--disable-gpu'] });
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, deviceScaleFactor: 1.5, colorScheme: 'light' });
  await page.goto(server.url);
  await page.locator(':root[data-ready=true]').waitFor();
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
  writeFileSync(file, Buffer.from(data, 'base64'));
  console.log(`${file}: ${statSync(file).size} bytes`);
} finally {
  await browser.close();
  await server.close();
}
