import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messageOf, nativeErrors } from '../../tools/list-native-errors.mjs';

// Signs of a reason or a remedy, which belongs into help, and starts of phrases that are no nouns.
const reason = /[;:.] |, for (it|the|they)\b|\b(since|because|which|instead|there)\b/;
const noNoun = /^(after|as|before|below|above|left|none|not|there|where|without|with|of|in)\b|\bat the (most|least)\b|\b1 or (more|above)\b/;

function faultOf({ expected, got, help }) {
  const words = expected.replace(/‹[^›]*›|\d+/g, '1');
  if (reason.test(words)) return 'the reason in "expected" belongs into "help"';
  if (words === '' || noNoun.test(words)) return '"expected" is no noun phrase';
  if (/^not\b/.test(got)) return '"got" does not describe the given value';
  if (help?.endsWith('.')) return '"help" ends with a period, which the message adds';
  return undefined;
}

describe('error messages of the C++ sources', () => {
  it('expect a noun phrase and have reasons and remedies as help', () => {
    const errors = nativeErrors();
    assert.ok(errors.length > 200);
    const faults = errors.flatMap((error) => {
      const fault = faultOf(error);
      return fault === undefined ? [] : [`${error.file}:${error.line}: ${fault}: ${messageOf(error)}`];
    });
    assert.deepEqual(faults, []);
  });

  it('are refused in any other form', () => {
    const error = { expected: 'a folder', got: 'a file', help: 'Give its folder' };
    assert.equal(faultOf(error), undefined);
    for (const wrong of [
      { expected: 'a folder: give the one of the file' },
      { expected: 'a folder, which has config.json' },
      { expected: 'there, since it is needed' },
      { expected: 'below 3' },
      { expected: '1 or more' },
      { expected: 'rank 8 at the most' },
      { got: 'not a folder' },
      { help: 'Give its folder.' },
    ])
      assert.notEqual(faultOf({ ...error, ...wrong }), undefined, JSON.stringify(wrong));
  });
});
