import { failed, took } from './report.mjs';

/** A list of named checks, counted; one that throws or takes too long has failed. */
export class Checks {
  passed = 0;
  failed = 0;
  #where;
  constructor(where) {
    this.#where = where;
  }
  async check(name, run, most = 120) {
    const notes = [];
    let timer;
    const started = performance.now();
    const seconds = () => (performance.now() - started) / 1000;
    const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error(`not done within ${most} s`)), most * 1000)));
    try {
      await Promise.race([Promise.resolve().then(() => run((text) => notes.push(text))), late]);
      this.passed++;
      const long = seconds() >= 2 ? ` (${seconds().toFixed(0)} s)` : '';
      console.log(`  ok ${name}${notes.length ? `: ${notes.join(', ')}` : ''}${long}`);
    } catch (error) {
      this.failed++;
      failed(name, error);
      console.log(`FAILED ${this.#where}: ${name}\n  ${String(error?.stack ?? error).replaceAll('\n', '\n  ')}`);
    } finally {
      clearTimeout(timer);
      took(name, seconds());
    }
  }
  get counts() {
    return { passed: this.passed, failed: this.failed };
  }
}
