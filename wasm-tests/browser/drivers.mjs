/**
 * Three installed browsers behind one interface:
 * open(url), evaluate(function, ...arguments) -> JSON of the result, click(selector), fill(selector, text), press(key),
 * resize(width, height), dark(on), forced(on) and print(on) -> whether dark mode, forced colours or print media are
 * supported, memory() -> memory of the page or undefined, drop(paths, x, y) -> whether files can be dropped, requests()
 * and messages() -> URLs and console lines seen by the browser or undefined, close().
 */
import { spawn, execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

function onPath(...names) {
  for (const name of names)
    for (const folder of (process.env.PATH ?? '').split(delimiter)) if (folder && existsSync(join(folder, name))) return join(folder, name);
  return undefined;
}

/** Debian keeps MiniBrowser in the library's folder, outside of the PATH. */
function findMiniBrowser() {
  const found = onPath('MiniBrowser');
  if (found) return found;
  for (const lib of ['/usr/lib', '/usr/libexec', '/usr/lib64'])
    for (const a of existsSync(lib) ? readdirSync(lib) : [])
      for (const b of ['', 'webkit2gtk-4.1', 'webkit2gtk-4.0', 'webkitgtk-6.0']) {
        const path = join(lib, a, b, 'MiniBrowser');
        if (existsSync(path)) return path;
      }
  return undefined;
}

const parts = {
  chromium: () => ({ chromium: onPath('chromium', 'chromium-browser', 'google-chrome') }),
  firefox: () => ({ 'firefox-esr': onPath('firefox-esr', 'firefox') }),
  webkit: () => ({ WebKitWebDriver: onPath('WebKitWebDriver'), MiniBrowser: findMiniBrowser(), Xvfb: onPath('Xvfb') }),
};

export const programs = (engine) => parts[engine]();

export function missing(engine) {
  return Object.entries(parts[engine]())
    .filter(([, path]) => !path)
    .map(([name]) => name);
}

export const engines = Object.keys(parts);

function freePort() {
  return new Promise((done, fail) => {
    const server = createServer().on('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

function ended(child) {
  return child.exitCode !== null || child.signalCode !== null;
}

async function stop(child) {
  if (!child || ended(child)) return;
  child.kill('SIGTERM');
  for (let i = 0; i < 20 && !ended(child); i++) await sleep(50);
  if (!ended(child)) child.kill('SIGKILL');
}

/** Ends every process with this folder as its HOME: remains of a browser whose page is in an endless loop. */
function endAllOf(home) {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`HOME=${home}`)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has just ended, or belongs to another user.
    }
}

function consoleLine(message) {
  const { url } = message.location();
  return `${message.type()}: ${message.text()}${url ? ` (${url})` : ''}`;
}

async function chromium() {
  const { chromium: launcher } = await import('playwright-core');
  const browser = await launcher.launch({
    executablePath: parts.chromium().chromium,
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  const context = await browser.newContext();
  const page = await context.newPage();
  const messages = [];
  const requests = [];
  page.on('console', (m) => messages.push(consoleLine(m)));
  page.on('pageerror', (e) => messages.push(`uncaught: ${e.message}`));
  context.on('request', (r) => requests.push(r.url()));
  // Over the protocol, because playwright's evaluate uses eval in the page, which the CSP forbids.
  const session = await context.newCDPSession(page);
  const evaluate = async (expression) => {
    const r = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
    return r.result.value;
  };
  return {
    open: (url) => page.goto(url, { waitUntil: 'domcontentloaded' }),
    evaluate,
    press: (key) => page.keyboard.press(key),
    type: (text) => page.keyboard.insertText(text),
    resize: (width, height) => page.setViewportSize({ width, height }),
    async dark(on) {
      await page.emulateMedia({ colorScheme: on ? 'dark' : 'light' });
      return true;
    },
    async forced(on) {
      await page.emulateMedia({ forcedColors: on ? 'active' : null });
      return true;
    },
    async print(on) {
      await page.emulateMedia({ media: on ? 'print' : null });
      return true;
    },
    async memory() {
      await session.send('HeapProfiler.collectGarbage');
      const { usedSize, embedderHeapUsedSize = 0, backingStorageSize = 0 } = await session.send('Runtime.getHeapUsage');
      const { nodes, jsEventListeners } = await session.send('Memory.getDOMCounters');
      return { bytes: usedSize + embedderHeapUsedSize + backingStorageSize, nodes, listeners: jsEventListeners };
    },
    async cpu() {
      await session.send('Performance.enable', { timeDomain: 'threadTicks' });
      const { metrics } = await session.send('Performance.getMetrics');
      return 1000 * metrics.find(({ name }) => name === 'TaskDuration').value;
    },
    async drop(files, x, y) {
      const dispatch = (type) => session.send('Input.dispatchDragEvent', { type, x, y, data: { items: [], files, dragOperationsMask: 1 } });
      await dispatch('dragEnter');
      // A drop is ignored until the page has accepted the drag, which a busy page does late.
      await evaluate(`void (globalThis.attnDragged = new Promise((done) => addEventListener('dragover', () => setTimeout(done), { once: true })))`);
      await dispatch('dragOver');
      await evaluate('attnDragged');
      await dispatch('drop');
      return true;
    },
    messages: () => messages,
    requests: () => requests,
    close: () => browser.close(),
  };
}

const firefoxPreferences = {
  'app.normandy.enabled': false,
  'browser.aboutwelcome.enabled': false,
  'browser.safebrowsing.downloads.remote.enabled': false,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  'datareporting.policy.dataSubmissionEnabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'toolkit.telemetry.server': '',
};

async function firefox() {
  const { default: puppeteer } = await import('puppeteer-core');
  const browser = await puppeteer.launch({
    browser: 'firefox',
    executablePath: parts.firefox()['firefox-esr'],
    headless: true,
    extraPrefsFirefox: firefoxPreferences,
  });
  const page = await browser.newPage();
  const messages = [];
  const requests = [];
  page.on('console', (m) => messages.push(consoleLine(m)));
  page.on('pageerror', (e) => messages.push(`uncaught: ${e.message}`));
  page.on('request', (r) => requests.push(r.url()));
  return {
    open: (url) => page.goto(url, { waitUntil: 'domcontentloaded' }),
    evaluate: (expression) => page.evaluate(expression),
    press: (key) => page.keyboard.press(key),
    type: (text) => page.keyboard.type(text),
    resize: (width, height) => page.setViewport({ width, height }),
    async dark(on) {
      try {
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: on ? 'dark' : 'light' }]);
        return true;
      } catch {
        return false;
      }
    },
    forced: async () => false,
    print: async () => false,
    memory: async () => undefined,
    drop: async () => false,
    messages: () => messages,
    requests: () => requests,
    async close() {
      await within(browser.close(), 5000, 'Firefox did not close').catch(() => browser.process()?.kill('SIGKILL'));
    },
  };
}

async function webkit() {
  const { Builder, Capabilities, Key } = await import('selenium-webdriver');
  const { WebKitWebDriver, MiniBrowser, Xvfb } = parts.webkit();
  const home = mkdtempSync(join(tmpdir(), 'attn-webkit-'));
  // Xvfb picks a free display and writes its number to the pipe.
  const xvfb = spawn(Xvfb, ['-displayfd', '3', '-screen', '0', '1600x1200x24', '-nolisten', 'tcp'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  });
  const display = await new Promise((done, fail) => {
    xvfb.stdio[3].once('data', (d) => done(String(d).trim()));
    xvfb.once('exit', (code) => fail(new Error(`Xvfb ended with ${code}`)));
    xvfb.once('error', fail);
  });
  const port = await freePort();
  const service = spawn(WebKitWebDriver, [`--port=${port}`, '--host=127.0.0.1'], {
    stdio: 'ignore',
    env: {
      ...process.env,
      // WebKitGTK has shared memory, and thus threads, only with this switch.
      JSC_useSharedArrayBuffer: '1',
      DISPLAY: `:${display}`,
      GDK_BACKEND: 'x11',
      LIBGL_ALWAYS_SOFTWARE: '1',
      WEBKIT_DISABLE_COMPOSITING_MODE: '1',
      WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1',
      HOME: home,
      XDG_CACHE_HOME: home,
      XDG_DATA_HOME: home,
      XDG_CONFIG_HOME: home,
    },
  });
  const closeAll = async () => {
    await stop(service);
    endAllOf(home);
    await stop(xvfb);
    rmSync(home, { recursive: true, force: true });
  };
  try {
    const capabilities = new Capabilities();
    capabilities.set('browserName', 'MiniBrowser');
    capabilities.set('webkitgtk:browserOptions', { binary: MiniBrowser, args: ['--automation'] });
    let driver;
    for (let i = 0; ; i++)
      try {
        driver = await new Builder().usingServer(`http://127.0.0.1:${port}/`).withCapabilities(capabilities).build();
        break;
      } catch (error) {
        if (i >= 50 || !/ECONNREFUSED/.test(String(error))) throw error;
        await sleep(100);
      }
    await driver.manage().setTimeouts({ script: 120000, pageLoad: 60000 });
    const keys = { ' ': ' ', Enter: Key.ENTER, Tab: Key.TAB, Escape: Key.ESCAPE, Home: Key.HOME, End: Key.END };
    for (const d of ['Up', 'Down', 'Left', 'Right']) keys[`Arrow${d}`] = Key[`ARROW_${d.toUpperCase()}`];
    return {
      open: (url) => driver.get(url),
      async evaluate(expression) {
        const r = await driver.executeAsyncScript(
          `const done = arguments[arguments.length - 1];
           (async () => (${expression}))().then((value) => done({ value }), (error) => done({ error: String(error) }));`,
        );
        if (r.error) throw new Error(r.error);
        return r.value ?? undefined;
      },
      press: (key) =>
        driver
          .actions()
          .sendKeys(keys[key] ?? key)
          .perform(),
      // Inserts all text at once, as in Chromium: by keys each letter would take two messages and an answer of the
      // page, 0.1 s if a forward follows.
      type: (text) => driver.executeScript('document.execCommand("insertText", false, arguments[0])', text),
      async resize(width, height) {
        const [tools, bar] = await driver.executeScript('return [outerWidth - innerWidth, outerHeight - innerHeight]');
        await driver
          .manage()
          .window()
          .setRect({ width: width + tools, height: height + bar, x: 0, y: 0 });
      },
      dark: async () => false,
      forced: async () => false,
      print: async () => false,
      memory: async () => undefined,
      drop: async () => false,
      version: `WebKitGTK ${(await driver.getCapabilities()).get('browserVersion')}`,
      messages: () => undefined,
      requests: () => undefined,
      // A hanging page does not answer; its browser ends with the service.
      async close() {
        await within(driver.quit(), 5000, 'MiniBrowser did not close').catch(() => {});
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

const launchers = { chromium, firefox, webkit };

/** Converts a value to source text for the page: functions and regular expressions verbatim, the rest as JSON. */
const sourceOf = (value) => (typeof value === 'function' || value instanceof RegExp ? `(${value})` : (JSON.stringify(value) ?? 'undefined'));

export async function launch(engine, timeout = 60000) {
  const driver = await within(launchers[engine](), timeout, `${engine} did not start`);
  const { open, evaluate } = driver;
  driver.open = (url) => {
    driver.messages()?.splice(0);
    driver.requests()?.splice(0);
    return open(url);
  };
  /** Calls a function in the page. It sees its arguments and the page's globals, but not its module. */
  driver.evaluate = (run, ...given) => evaluate(`${sourceOf(run)}(${given.map(sourceOf).join(', ')})`);
  driver.fill = async (selector, text) => {
    await driver.evaluate((own) => {
      const field = document.querySelector(own);
      field.focus();
      field.select();
    }, selector);
    // Typing nothing keeps what is selected, except in Chromium.
    await (text === '' ? driver.evaluate(() => document.execCommand('delete')) : driver.type(text));
  };
  driver.click = (selector) => driver.evaluate((own) => document.querySelector(own).click(), selector);
  return driver;
}

/**
 * Opens a page that needs no driver and reports results itself; resolves to { close }. Firefox has no driver here,
 * because with WebDriver BiDi attached a worker that starts a worker may wait for ever.
 */
export async function show(engine, url) {
  if (engine !== 'firefox') {
    const driver = await launch(engine);
    try {
      await within(driver.open(url), 60000, 'the page did not open');
    } catch (error) {
      await driver.close();
      throw error;
    }
    return driver;
  }
  const home = mkdtempSync(join(tmpdir(), 'attn-firefox-'));
  const lines = Object.entries(firefoxPreferences).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`);
  writeFileSync(join(home, 'user.js'), lines.join(''));
  const child = spawn(parts.firefox()['firefox-esr'], ['--headless', '--no-remote', '--profile', home, url], {
    stdio: 'ignore',
    env: { ...process.env, HOME: home },
  });
  return {
    async close() {
      await stop(child);
      endAllOf(home);
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Recognises WebKit's and Chromium's errors of evaluate() on a page that is being left. */
export const isLeaving = ({ message }) => /before the unload event|navigated or closed|Could not parse script result/.test(message);

export async function within(promise, milliseconds, message) {
  let timer;
  const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error(`${message} within ${milliseconds / 1000} s`)), milliseconds)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function version(engine) {
  if (engine === 'webkit') return 'WebKitGTK';
  const [program] = Object.values(parts[engine]());
  return execFileSync(program, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    .trim()
    .split('\n')[0];
}
