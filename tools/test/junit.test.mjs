import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { countJunit, readJunit } from './junit.mjs';
import { current } from './processes.mjs';

const folder = mkdtempSync(join(tmpdir(), 'attn-junit-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Counts a report with these test cases, from a program that ended with `code`. */
function counts(cases, code = 0, options = {}) {
  const file = join(folder, 'report.xml');
  const start = async () => {
    if (cases !== undefined) writeFileSync(file, `<?xml version="1.0"?><testsuites><testsuite>${cases}</testsuite></testsuites>`);
    return { code };
  };
  return current.run({ tests: [] }, () => countJunit(file, start, options));
}
const passed = '<testcase name="a" time="0.5"/>';

test('names, times and messages are read with their entities', () => {
  const [one, two] = readJunit(
    '<testcase name="1 &lt; 2" time="0.5"/><testcase time="1" name="b"><failure message="&quot;x&quot;">why&#10;so</failure></testcase>',
  );
  assert.deepEqual(one, { name: '1 < 2', seconds: 0.5, failed: undefined, skipped: undefined });
  assert.deepEqual([two.name, two.failed], ['b', '"x" why\nso']);
});

test('failures, errors and skips are counted', async () => {
  const cases = `${passed}<testcase name="b"><failure/></testcase><testcase name="c"><error>x</error></testcase><testcase name="d"><skipped/></testcase>`;
  assert.deepEqual(await counts(cases, 1), { passed: 1, failed: 2, skips: 1 });
});

test('a program that fails although its tests pass counts as a failure', async () => {
  assert.deepEqual(await counts(passed, 1), { passed: 1, failed: 1, skips: 0 });
});

test('a program without a report, or without tests, counts as a failure', async () => {
  assert.deepEqual(await counts(undefined), { passed: 0, failed: 1, skips: 0 });
  assert.deepEqual(await counts(''), { passed: 0, failed: 1, skips: 0 });
  assert.deepEqual(await counts('', 0, { maybeNone: true }), { passed: 0, failed: 0, skips: 0 });
});

test('tests excluded by a name pattern are not counted', async () => {
  const left = '<testcase name="b"><skipped type="skipped" message="test name does not match pattern"/></testcase>';
  assert.deepEqual(await counts(`${passed}${left}`), { passed: 1, failed: 0, skips: 0 });
});
