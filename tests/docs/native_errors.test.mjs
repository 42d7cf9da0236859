import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorsOf, messageOf, nativeErrors } from '../../tools/list-native-errors.mjs';

// Signs of a reason or a remedy, which belongs into help, and starts of phrases that are no nouns.
const reason = /[;:.] |, for (it|the|they)\b|\b(since|because|which|instead|there)\b/;
const noNoun = /^(after|as|before|below|above|left|none|not|there|where|without|with|of|in)\b|\bat the (most|least)\b|\b1 or (more|above)\b/;

const hasVerb = / (is|are|has|appears|ends|goes) ./;

function faultOf({ sentence, expected, got, help }) {
  if (help?.endsWith('.')) return '"help" ends with a period, which the message adds';
  if (sentence !== undefined) {
    const [facts, phrase] = sentence.split(', expected ');
    if (/[;:] /.test(facts.replace(/‹[^›]*›/g, ''))) return 'is more than one sentence';
    if (!hasVerb.test(facts)) return 'has no verb';
    return phrase === undefined ? undefined : faultOf({ expected: phrase, got: facts });
  }
  const words = expected.replace(/‹[^›]*›|\d+/g, '1');
  if (reason.test(words)) return 'the reason in "expected" belongs into "help"';
  if (words === '' || noNoun.test(words)) return '"expected" is no noun phrase';
  if (/^not\b/.test(got)) return '"got" does not describe the given value';
  return undefined;
}

describe('error messages of the C++ and Python sources', () => {
  it('expect a noun phrase and have reasons and remedies as help', () => {
    const errors = nativeErrors();
    const count = (folder) => errors.filter(({ file }) => file.startsWith(folder)).length;
    for (const [folder, least] of [
      ['src/', 200],
      ['python/src/', 20],
      ['python/attn/', 30],
    ])
      assert.ok(count(folder) >= least, `${count(folder)} errors in ${folder}`);
    // Files whose functions have their own parameters.
    for (const [name, least] of [
      ['files', 4],
      ['gguf/architecture', 20],
      ['gguf/header', 25],
      ['gguf/reader', 2],
      ['gguf/sentencepiece', 3],
      ['gguf/tokenizer_files', 8],
      ['json', 5],
      ['safetensors_file', 1],
      ['safetensors_header', 25],
      ['safetensors_shards', 7],
      ['safetensors_stream', 4],
    ])
      assert.ok(count(`src/attn/io/${name}.cpp`) >= least, `${count(`src/attn/io/${name}.cpp`)} errors in ${name}.cpp`);
    const faults = errors.flatMap((error) => {
      const fault = faultOf(error);
      return fault === undefined ? [] : [`${error.file}:${error.line}: ${fault}: ${messageOf(error)}`];
    });
    assert.deepEqual(faults, []);
  });

  it('are read from C++ and Python', () => {
    const expected = (file, text) => errorsOf(file, text).map((error) => messageOf(error));
    assert.deepEqual(expected('a.cpp', 'detail::fail(ErrorCode::shape, op, "x", {"rank ", n}, {"rank 2"}, "Use squeeze()");'), [
      '‹op›: x is rank 2, expected rank ‹n›. Use squeeze().',
    ]);
    assert.deepEqual(expected('a.py', 'raise error_of(ShapeError, op, "x", f"rank {n}" if n else "a number", 2, number=n) from None'), [
      '‹op›: x is ‹2›, expected rank ‹n›',
      '‹op›: x is ‹2›, expected a number',
    ]);
    const gguf = 'refuse(key, {"a list"}, {"missing"});\nrefuse(key, {"none"}, {kind}, ErrorCode::unsupported, "Use another file");';
    assert.deepEqual(expected('src/attn/io/gguf/planted.cpp', gguf), [
      'gguf: ‹key› is missing, expected a list',
      'gguf: ‹key› is ‹kind›, expected none. Use another file.',
    ]);
    const [first, second] = errorsOf('src/attn/io/gguf/planted.cpp', gguf);
    assert.deepEqual([first.code, second.code], ['FORMAT', 'UNSUPPORTED']);
    const json = 'refuse(name, "has ", {count, " names, expected at most ", most}, ErrorCode::unsupported);';
    assert.deepEqual(expected('src/attn/io/json.cpp', json), ['‹name›: the file has ‹count› names, expected at most ‹most›']);
    assert.deepEqual(expected('src/attn/io/files.cpp', 'refuse("missing", ENOENT)'), ['‹op›: ‹path› is missing, expected a regular file']);
    assert.deepEqual(expected('src/attn/io/safetensors_header.cpp', 'refuse_tensor(entry.name, {"a hole before its data"});'), [
      'safetensors: ‹entry.name› has a hole before its data',
    ]);
    assert.deepEqual(expected('a.cpp', 'fail(ErrorCode::shape, op, "x", {"one"}, {"has no ", n});'), ['‹op›: x has no ‹n›, expected one']);
    assert.deepEqual(expected('a.py', 'def error_of(kind: type[AttnError], op: str, argument: str) -> AttnError:'), []);
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
      { sentence: 'the file: not valid JSON' },
      { sentence: 'not valid JSON near byte 3' },
      { sentence: 'the file is a zip; in Python another function converts it' },
      { sentence: 'the file has 3 names, expected less than 2, because they take memory' },
    ])
      assert.notEqual(faultOf({ ...error, ...wrong }), undefined, JSON.stringify(wrong));
  });
});
