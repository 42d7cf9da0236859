import { failed, took } from './report.mjs';

/** A list of named checks, counted; one that throws or takes too long has failed. */
export class Checks {
  passed = 0;
  failed = 0;
  #where;
  constructor(where) {
    this.#where = where;
  }
  async check(name, run, seconds = 120) {
    const notes = [];
    let timer;
    const started = performance.now();
    const late = new Promise((_, fail) => (timer = setTimeout(() => fail(new Error(`not done within ${seconds} s`)), seconds * 1000)));
    try {
      await Promise.race([Promise.resolve().then(() => run((text) => notes.push(text))), late]);
      this.passed++;
      console.log(`  ok ${name}${notes.length ? `: ${notes.join(', ')}` : ''}`);
    } catch (error) {
      this.failed++;
      failed(name, error);
      console.log(`FAILED ${this.#where}: ${name}\n  ${String(error?.stack ?? error).replaceAll('\n', '\n  ')}`);
    } finally {
      clearTimeout(timer);
      took(name, (performance.now() - started) / 1000);
    }
  }
  get counts() {
    return { passed: this.passed, failed: this.failed };
  }
}
