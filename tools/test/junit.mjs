/** Reads JUnit reports of Catch2, CTest, Vitest, node:test and pytest. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { current } from './processes.mjs';

const entities = { quot: '"', apos: "'", lt: '<', gt: '>', amp: '&' };
const unescaped = (text) =>
  text.replace(/&(?:(quot|apos|lt|gt|amp)|#(\d+)|#x([\da-f]+));/gi, (_, name, decimal, hex) =>
    name ? entities[name] : String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16)),
  );

/** Parses the tests of a report: { name, seconds, failed: message | undefined, skipped: message | undefined }. */
export function readJunit(xml) {
  return [...xml.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)].map(([, attributes, inside = '']) => {
    const attribute = (name) => unescaped(new RegExp(`\\b${name}="([^"]*)"`).exec(attributes)?.[1] ?? '');
    const part = (kinds) => {
      const [, given, text = ''] = new RegExp(`<(?:${kinds})\\b([^>]*?)(?:/>|>([\\s\\S]*?)</(?:${kinds})>)`).exec(inside) ?? [];
      return given === undefined ? undefined : unescaped(`${/\bmessage="([^"]*)"/.exec(given)?.[1] ?? ''} ${text}`).trim() || 'no message';
    };
    return { name: attribute('name'), seconds: Number(attribute('time')), failed: part('failure|error'), skipped: part('skipped') };
  });
}

/** node:test's message for tests that --test-name-pattern excludes. */
const isLeftOut = ({ skipped }) => skipped?.includes('test name does not match pattern');

/**
 * Runs `start`, which writes a report to the file, and counts its tests. An exit code other than 0 without a failed
 * test counts as one failure (sanitizers report by exit code), and so does a report without tests unless `maybeNone`,
 * for name filters.
 */
export async function countJunit(file, start, { maybeNone = false } = {}) {
  mkdirSync(dirname(file), { recursive: true });
  rmSync(file, { force: true });
  const { code } = await start();
  const tests = existsSync(file) ? readJunit(readFileSync(file, 'utf8')).filter((test) => !isLeftOut(test)) : [];
  current.getStore().tests.push(...tests);
  const failed = tests.filter(({ failed }) => failed !== undefined).length;
  const skips = tests.filter(({ skipped }) => skipped !== undefined).length;
  const passed = tests.length - failed - skips;
  const broken = (code !== 0 && failed === 0) || (passed + failed + skips === 0 && !maybeNone);
  return { passed, failed: failed + Number(broken), skips };
}
