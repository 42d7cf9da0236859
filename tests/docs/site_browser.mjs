/** Opens the documentation in a browser. */
import { strict as assert } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLeaving, within } from '../../wasm-tests/browser/drivers.mjs';
import { absentFile } from '../../wasm-tests/support/model_folders.mjs';
import { prints } from './blocks.mjs';

export class Browser {
  constructor(driver, url) {
    this.driver = driver;
    this.url = url;
  }

  async open(path, { dark = false, width = 1280 } = {}) {
    await this.driver.dark(dark);
    await this.driver.resize(width, 900);
    await within(this.driver.open(this.url + path), 60000, `${path} did not open`);
    // The page is hydrated once its scripts have added elements.
    await this.until(`${path} is ready`, () => document.documentElement.dataset.ready !== undefined || location.pathname.endsWith('run.html'));
  }

  async until(what, run, ...args) {
    for (let i = 0; i < 1200; ++i) {
      const value = await this.driver.evaluate(run, ...args).catch((error) => {
        if (!isLeaving(error)) throw error;
      });
      if (value) return value;
      await sleep(50);
    }
    throw new Error(`not within 60 s: ${what}`);
  }

  assertQuiet() {
    // Programs may print, and model folders may lack optional files.
    const messages = (this.driver.messages() ?? []).filter((text) => !text.startsWith('log: ') && !absentFile.test(text));
    assert.deepEqual(messages, [], 'messages in the console');
    // Prefetches of the previous page may arrive late, from the other server.
    const elsewhere = (this.driver.requests() ?? []).filter((url) => !/^(blob:)?http:\/\/(localhost|127\.0\.0\.1):\d+\/|^(data|about):/.test(url));
    assert.deepEqual(elsewhere, [], 'requests to other hosts');
  }

  /** Runs a page's programs one after the other and compares documented output. */
  async runPrograms(path, blocks) {
    const { driver } = this;
    await this.open(path);
    const buttons = await driver.evaluate(() => document.querySelectorAll('live-code').length);
    assert.equal(buttons, blocks.length, 'every program has its buttons');
    for (const [i, { output, text }] of blocks.entries()) {
      const shown = await driver.evaluate((place) => document.querySelectorAll('live-code')[place].dataset.code, i);
      assert.equal(shown, text, 'what runs is what is shown');
      await driver.evaluate((place) => document.querySelectorAll('live-code')[place].querySelector('.live-bar button').click(), i);
      const ended = (place) => ['done', 'failed'].includes(document.querySelectorAll('live-code')[place].dataset.state);
      await this.until(`program ${i + 1} ends`, ended, i);
      const { state, printed } = await driver.evaluate((place) => {
        const element = document.querySelectorAll('live-code')[place];
        return { state: element.dataset.state, printed: element.querySelector('iframe').contentDocument.body.innerText };
      }, i);
      assert.equal(state, 'done', printed);
      assert.ok(printed.trim() !== '' || /attention-map/.test(text), 'it shows something');
      if (output !== undefined) assert.ok(prints(printed, output), `it printed ${printed} instead of ${output}`);
      const isSeen = (place) => {
        const frame = document.querySelectorAll('live-code')[place].querySelector('iframe');
        return frame.offsetHeight >= frame.contentDocument.body.offsetHeight && frame.offsetHeight > 20;
      };
      await this.until('the frame is as high as its content', isSeen, i);
    }
    this.assertQuiet();
  }
}
