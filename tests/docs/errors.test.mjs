/** The form of the package's error messages: "op: argument is X, expected Y. Help." with a noun phrase Y, or a sentence. */
import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { errorsOf, listErrors } from '../../tools/list-errors.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';

/** What cannot begin a noun phrase, and what hangs a reason or a remedy on it. */
const noNounPhrase =
  /^(what|where|less|below|none|another|to|that|as|if|when|such|not|there)\b|;|: |\b(since|because|so that)\b|, for (it|the|they)\b/;

function faultOf(message) {
  if (message.startsWith('‹')) return undefined;
  if (!/^[\w./]+: /.test(message)) return 'has no op';
  const [, got, expected] = /^(.*?), expected (.*)$/s.exec(message) ?? [];
  if (got === undefined) return /;|^[^:]*: .*: /.test(message.split('. ')[0]) ? 'is more than one sentence' : undefined;
  // A subject ends with its verb.
  if (!/^[\w./]+: (.* (is|are|has|holds|names|needs|returned)|‹subject›) ./.test(got)) return 'has no verb before "expected"';
  const [phrase, ...help] = expected.split(/\. (?=[A-Z‹'])/);
  if (noNounPhrase.test(phrase.replace(/\{.*\}/, ''))) return `expects no noun phrase: ${phrase}`;
  if (help.length > 0 && !/[.?]$/.test(help.at(-1))) return 'has a help without its final period';
  return undefined;
}

test('error messages have one form', () => {
  const errors = listErrors();
  assert.ok(errors.length > 200, 'the list has the errors of the sources');
  const files = ['architecture', 'families', 'gguf', 'header', 'sentencepiece', 'tokenizer_files'].map((name) => `gguf/${name}`);
  for (const file of [...files, 'safetensors_header', 'shards'])
    assert.ok(
      errors.some(({ place }) => place.startsWith(`web/lib/src/model/${file}.ts:`)),
      `the list has the errors of ${file}.ts`,
    );
  const faults = errors.flatMap(({ place, message }) => {
    const fault = faultOf(message);
    return fault ? [`${place} ${message}: ${fault}`] : [];
  });
  assert.deepEqual(faults, []);
});

test('messages of another form are found', () => {
  const faultsOf = (call) => errorsOf('planted.ts', call).map(({ message }) => faultOf(message));
  assert.deepEqual(faultsOf("fail('CONFIG', op, 'stride', `is ${stride}`, 'a number below 4', 'Use a shorter one')"), [undefined]);
  for (const call of [
    "fail('CONFIG', op, 'stride', String(stride), 'a number below 4')",
    "fail('CONFIG', op, 'stride', `is ${stride}`, 'less than 4')",
    "fail('CONFIG', op, 'stride', `is ${stride}`, 'a number below 4: shorter ones work')",
    "fail('CONFIG', op, 'stride', `is ${stride}`, 'a number, for it is divided')",
    "fail('CONFIG', op, 'stride', `is ${stride}`, a ? 'a number' : 'a number; use 4')",
    "const got = (a) => (a ? 'is 5' : 'of 5');\nfail('CONFIG', op, 'stride', got(stride), 'a number below 4')",
    "new AttnError('CONFIG', `the stride has ${stride} bytes`)",
    "new AttnError('CONFIG', `${op}: stride is ${stride}; use a shorter one`)",
    "unsupported(path, value, 'what is known')",
  ])
    assert.ok(faultsOf(call).some(Boolean), call);
});

test('refuse() of the GGUF reader is listed without a code in front', () => {
  const messagesOf = (call) => errorsOf('web/lib/src/model/gguf/planted.ts', call).map(({ code, message }) => `${code} ${message}`);
  assert.deepEqual(messagesOf("refuse(key, 'a list', 'missing')"), ['FORMAT loadModel: gguf: ‹key› is missing, expected a list']);
  assert.deepEqual(messagesOf("refusal(key, 'none', kind, 'UNSUPPORTED', 'Use another file')"), [
    'UNSUPPORTED loadModel: gguf: ‹key› is ‹kind›, expected none. Use another file.',
  ]);
  const [planted] = errorsOf('web/lib/src/model/gguf/planted.ts', "refuse(key, 'false, because there is no id', 'true')");
  assert.match(faultOf(planted.message), /noun phrase/);
});

test('troubleshooting.md explains every error code', () => {
  const [types, guide] = ['web/lib/src/attn.d.ts', 'docs/guide/troubleshooting.md'].map((file) => readFileSync(at(file), 'utf8'));
  const [, union] = /^export type ErrorCode =\n((?: +\| '\w+';?\n)+)/m.exec(types);
  const codes = [...union.matchAll(/'(\w+)'/g)].map(([, code]) => code);
  const headings = [...guide.matchAll(/^### `([A-Z_]+)`$/gm)].map(([, code]) => code);
  assert.deepEqual(headings.sort(), codes.sort());
});
