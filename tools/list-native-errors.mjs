// Prints every error message of the C++ and Python sources, with its expressions in place of values:
// node tools/list-native-errors.mjs [WORD]
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const calls = /(?<![\w~])(fail|refuse|refuse_file|refuse_safetensors|refuse_tensor|error_of)\(/g;
const names = {
  fail: ['code', 'op', 'argument', 'expected', 'got', 'help'],
  error_of: ['code', 'op', 'argument', 'expected', 'got', 'help'], // Python; `code` is the class of the error
  refuse_file: ['code', 'argument', 'expected', 'got', 'help'],
  // A section of a configuration file, whose key is given; or a value that knows its path.
  refuse: ['code', 'argument', 'expected', 'got', 'help'],
  refuseValue: ['code', 'expected', 'got', 'help'],
};

/**
 * Files whose function has its own parameters, with facts that all its errors share. A `sentence` is a message without
 * op, from the verb on if its `subject` is known.
 */
const ownForms = [
  { files: /\/io\/gguf\//, name: 'refuse', parameters: ['argument', 'expected', 'got', 'code', 'help'], shared: { op: 'gguf' } },
  { files: /\/io\/safetensors_shards\.cpp$/, name: 'refuse', parameters: ['argument', 'expected', 'got'], shared: { op: '‹op›' } },
  { files: /\/io\/files\.cpp$/, name: 'refuse', parameters: ['got'], shared: { op: '‹op›', argument: '‹path›', expected: 'a regular file' } },
  { files: /\/io\/json\.cpp$/, name: 'refuse', parameters: ['op', 'verb', 'sentence', 'code'], shared: { subject: 'the file' } },
  { files: /\/io\/safetensors\w*\.cpp$/, name: 'refuse_safetensors', parameters: ['sentence', 'code', 'help'], shared: { op: 'safetensors' } },
  { files: /\/io\/safetensors\w*\.cpp$/, name: 'refuse_tensor', parameters: ['subject', 'sentence'], shared: { op: 'safetensors', verb: 'has ' } },
];

/** The arguments of a call, whose opening bracket is before `at`. */
function argumentsAt(text, at) {
  const found = [''];
  let depth = 0;
  for (let i = at; i < text.length; ++i) {
    const char = text[i];
    if (char === '"') {
      const end = i + /^"(?:[^"\\]|\\.)*"/s.exec(text.slice(i))[0].length;
      found[found.length - 1] += text.slice(i, end);
      i = end - 1;
    } else if ('([{'.includes(char)) {
      ++depth;
      found[found.length - 1] += char;
    } else if (')]}'.includes(char)) {
      if (depth-- === 0) return found.map((each) => each.replace(/\s+/g, ' ').trim());
      found[found.length - 1] += char;
    } else if (char === ',' && depth === 0) {
      found.push('');
    } else {
      found[found.length - 1] += char;
    }
  }
  return undefined;
}

/** The text that an expression or a list of them writes into a message: literals as they are, expressions in ‹ ›. */
function written(expression) {
  const list = /^(?:detail::)?(?:text\(\s*)?\{(.*)\}\s*\)?$/s.exec(expression)?.[1];
  const parts = list === undefined ? [expression] : (argumentsAt(`${list})`, 0) ?? []);
  return parts.map((part) => (/^("(?:[^"\\]|\\.)*"\s*)+$/.test(part) ? eval(part.replace(/"\s+"/g, '')) : `‹${part}›`)).join('');
}

/** The same for an expression of Python: a literal, an f-string, or a choice between two of them. */
function writtenInPython(expression) {
  const [, first, second] = /^(.*) if .* else (.*)$/.exec(expression) ?? [];
  if (first) return [first, second].flatMap(writtenInPython);
  const [, prefix, text] = /^(f?)"((?:[^"\\]|\\.)*)"$/.exec(expression) ?? [];
  return [text === undefined ? `‹${expression}›` : prefix ? text.replace(/\{([^}]*)\}/g, '‹$1›') : text];
}

/** Lists the errors of the sources that have the facts expected and got. */
export function nativeErrors() {
  const files = execFileSync('git', ['ls-files', 'src/*.cpp', 'src/*.hpp', 'python/src', 'python/attn/*.py'], { cwd: root, encoding: 'utf8' });
  return files
    .trim()
    .split('\n')
    .flatMap((file) => errorsOf(file, readFileSync(resolve(root, file), 'utf8')));
}

/** The error of a call whose function has its own parameters. */
function errorOf({ parameters, shared }, given) {
  const facts = { code: 'ErrorCode::format', ...shared };
  parameters.forEach((fact, i) => (facts[fact] = given[i] === undefined ? facts[fact] : written(given[i])));
  const { code, verb = '', sentence, subject, ...error } = facts;
  const message = sentence === undefined ? undefined : `${subject === undefined ? '' : `${subject} `}${verb}${sentence}`;
  return { ...error, code: code.replace(/.*ErrorCode::|›$/g, '').toUpperCase(), sentence: message };
}

/** Lists the errors of a source. An error of Python has a row for each text that it may expect. */
export function errorsOf(file, text) {
  const isPython = file.endsWith('.py');
  const errors = [];
  for (const { 1: name, index, 0: start } of text.matchAll(calls)) {
    const given = argumentsAt(text, index + start.length)?.filter((each) => !/^(\w+=.*)?$/.test(each));
    const line = text.slice(0, index).split('\n').length;
    const form = ownForms.find((each) => each.name === name && each.files.test(file));
    if (form) {
      const isDeclared = /^(const )?\w+::\w+.* \w+$/.test(given[0]);
      if (!isDeclared) errors.push({ file, line, ...errorOf(form, given) });
      continue;
    }
    if (!(isPython ? /^\w+Error$/ : /ErrorCode::/).test(given?.[0])) continue;
    const isValue = name === 'refuse' && given[1]?.startsWith('{');
    const facts = Object.fromEntries(given.map((each, i) => [names[isValue ? 'refuseValue' : name][i] ?? each, each]));
    const read = isPython ? writtenInPython : (expression) => [written(expression)];
    const [expected, [got], [op], [argument]] = ['expected', 'got', 'op', 'argument'].map((fact) => read(facts[fact] ?? fact));
    const help = facts.help !== undefined && !/move\(|^\{\{/.test(facts.help) ? read(facts.help)[0] : undefined;
    const code = isPython ? given[0] : facts.code.replace(/.*ErrorCode::/, '').toUpperCase();
    for (const each of expected) errors.push({ file, line, code, op, argument, expected: each, got, help });
  }
  return errors;
}

/** As in fail(). */
const verbOf = (got) => (/^(has|needs) /.test(got) ? '' : 'is ');

export const messageOf = ({ op, argument, expected, got, sentence = `${argument} ${verbOf(got)}${got}, expected ${expected}`, help }) =>
  `${op}: ${sentence}${help === undefined ? '' : `. ${help}.`}`;

if (argv[1] === fileURLToPath(import.meta.url))
  for (const error of nativeErrors()) {
    const line = `${error.file}:${error.line} ${error.code} ${messageOf(error)}`;
    if (argv[2] === undefined || line.includes(argv[2])) console.log(line);
  }
