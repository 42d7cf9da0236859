import { AttnError, type ErrorCode } from 'attn';
import { assert } from 'chai';

type ErrorClass = typeof AttnError;

/** Checks that the value is an AttnError with this code, whose message contains every word. */
export function assertIsError(
  error: unknown,
  code: ErrorCode | readonly ErrorCode[],
  words: readonly (string | RegExp)[] = [],
  kind: ErrorClass = AttnError,
): void {
  const codes = Array.isArray(code) ? code : [code];
  if (!(error instanceof kind)) assert.fail(`expected an AttnError ${codes.join(' or ')}, got ${String(error)}${(error as Error)?.stack ?? ''}`);
  const { code: actual, message, detail, name } = error as AttnError;
  assert.include(codes, actual, `code of "${message}"`);
  assert.instanceOf(error, Error);
  // Aborted calls have the error name of an aborted fetch.
  assert.equal(name, actual === 'ABORTED' && !message.includes('worker is gone') ? 'AbortError' : 'AttnError');
  for (const word of words)
    if (word instanceof RegExp) assert.match(message, word);
    else assert.include(message.toLowerCase(), word.toLowerCase());
  assert.isAbove(message.length, 8, 'a message in words');
  assert.isObject(detail, `detail of "${message}"`);
}

export function assertThrows(
  call: () => unknown,
  code: ErrorCode | readonly ErrorCode[],
  words: readonly (string | RegExp)[] = [],
  kind?: ErrorClass,
): AttnError {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    assertIsError(error, code, words, kind);
    return error as AttnError;
  }
  return assert.fail(`expected ${String(code)}, but the call returned ${typeof result}`);
}

export async function assertRejects(
  call: Promise<unknown> | (() => Promise<unknown>),
  code: ErrorCode | readonly ErrorCode[],
  words: readonly (string | RegExp)[] = [],
  kind?: ErrorClass,
): Promise<AttnError> {
  try {
    await (typeof call === 'function' ? call() : call);
  } catch (error) {
    assertIsError(error, code, words, kind);
    return error as AttnError;
  }
  return assert.fail(`expected ${String(code)}, but the promise was fulfilled`);
}
