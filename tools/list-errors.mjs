// Prints every error message of the package's TypeScript sources, with sample values in place of expressions:
// node tools/list-errors.mjs [WORD]. Each line has the place, the code and the message.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = 'web/lib/src';
const { SyntaxKind: Kind } = ts;

/** Functions that write a message, with their parameters; `network` is the function that networkErrors() returns. */
const makers = {
  AttnError: ['code', 'message'],
  errorWithHelp: ['code', 'message', 'help'],
  fail: ['code', 'op', 'argument', 'got', 'expected', 'help'],
  abortError: ['message'],
  network: ['networkMessage'],
  // Readers of JSON files.
  unsupported: ['argument', 'value', 'expected'],
  wrong: ['argument', 'value', 'expected'],
};
/** refuse() of the GGUF reader, whose parts are given it as `refusal`. */
const ofGguf = ['argument', 'expected', 'got', 'code', 'help'];
const makersOf = (file) => (file.includes('/model/gguf/') ? { ...makers, refuse: ofGguf, refusal: ofGguf } : makers);
/** The code of functions that have no parameter for it. */
const codes = { abortError: 'ABORTED', network: 'NETWORK', unsupported: 'UNSUPPORTED', wrong: 'FORMAT' };
/** Results of functions that write a part of a message. */
const samples = {
  describe: ['is 7'],
  hint: ['Did you mean it?'],
  reason: ['the reason'],
  shapeText: ['(2,3)'],
  withArticle: ['a Linear'],
  stringify: ['"x"'],
  join: ['a, b'],
};
/** More alternatives of one message than this are not printed. */
const mostAlternatives = 24;

const combine = (lists) => lists.reduce((all, list) => all.flatMap((before) => list.map((after) => before + after)).slice(0, mostAlternatives), ['']);

const calledName = ({ expression }) =>
  ts.isPropertyAccessExpression(expression) ? expression.name.text : ts.isIdentifier(expression) ? expression.text : '';

function declarationsOf(source) {
  const constants = new Map();
  const calls = new Map();
  const visit = (node) => {
    if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name) && node.initializer)
      constants.set(node.name.text, [...(constants.get(node.name.text) ?? []), node]);
    if (ts.isCallExpression(node)) calls.set(calledName(node), [...(calls.get(calledName(node)) ?? []), node]);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { constants, calls };
}

/** The nearest function around a node that has the parameter, with its name and the parameter's position. */
function parameterOf(node, name) {
  for (let at = node; at; at = at.parent) {
    if (!ts.isFunctionLike(at)) continue;
    const index = at.parameters.findIndex((each) => ts.isIdentifier(each.name) && each.name.text === name);
    if (index < 0) continue;
    const named = at.name ?? (ts.isVariableDeclaration(at.parent) ? at.parent.name : undefined);
    return { name: named && ts.isIdentifier(named) ? named.text : undefined, index, parameter: at.parameters[index] };
  }
  return undefined;
}

/** The constant of this name whose scope is the nearest around the node. */
function constantOf(node, found = []) {
  for (let at = node; at; at = at.parent) {
    const here = found.find((each) => each.parent.parent.parent === at);
    if (here) return here;
  }
  return undefined;
}

/** The texts that an expression may have. */
function texts(node, context, depth = 0) {
  const sub = (each) => texts(each, context, depth);
  if (ts.isStringLiteralLike(node)) return [node.text];
  if (ts.isNumericLiteral(node)) return [node.text];
  if (ts.isParenthesizedExpression(node) || ts.isNonNullExpression(node) || ts.isAsExpression(node)) return sub(node.expression);
  if (ts.isTemplateExpression(node))
    return combine([[node.head.text], ...node.templateSpans.flatMap((span) => [sub(span.expression), [span.literal.text]])]);
  if (ts.isConditionalExpression(node)) return [...new Set([...sub(node.whenTrue), ...sub(node.whenFalse)])];
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === Kind.QuestionQuestionToken)
    return [...new Set([...sub(node.left), ...sub(node.right)])];
  if (ts.isCallExpression(node)) {
    const arrow = constantOf(node, context.constants.get(calledName(node)))?.initializer;
    const result = arrow && ts.isArrowFunction(arrow) && !ts.isBlock(arrow.body) ? arrow.body : undefined;
    if (samples[calledName(node)]) return samples[calledName(node)];
    return result && depth < 4 ? texts(result, context, depth + 1) : [`‹${node.expression.getText().split('.').at(-1)}›`];
  }
  if (ts.isIdentifier(node)) {
    if (node.text === 'undefined') return [''];
    if (['op', 'operation'].includes(node.text)) return ['op'];
    const parameter = parameterOf(node, node.text);
    const constant = parameter ? undefined : constantOf(node, context.constants.get(node.text));
    if (constant && depth < 4) return texts(constant.initializer, context, depth + 1);
    const calls = parameter?.name ? (context.calls.get(parameter.name) ?? []) : [];
    const given = [...calls.map((call) => call.arguments[parameter.index]), parameter?.parameter.initializer].filter((each) => each && depth < 4);
    if (given.length > 0) return [...new Set(given.flatMap((each) => texts(each, context, depth + 1)))].slice(0, mostAlternatives);
  }
  return [`‹${node.getText().split('.').at(-1)}›`];
}

/** Ends a message with its help, as errorWithHelp() does. */
const helped = (message, help) => (help === '' ? message : `${message}. ${help}${help.endsWith('?') ? '' : '.'}`);

/** The messages that a call of a maker may write. */
function messagesOf(node, context) {
  const name = calledName(node);
  const names = Object.hasOwn(context.makers, name) ? context.makers[name] : undefined;
  if (!names || (ts.isNewExpression(node) ? name !== 'AttnError' : name === 'AttnError')) return undefined;
  const given = Object.fromEntries(names.map((each, i) => [each, node.arguments?.[i] && texts(node.arguments[i], context)]));
  const isOfGguf = names === ofGguf;
  if (isOfGguf && !given.code?.[0]) given.code = ['FORMAT'];
  const { code = [codes[name]], op = [isOfGguf ? 'loadModel: gguf' : 'op'], argument, expected, help = [''] } = given;
  const { got = ['is 7'], message, networkMessage } = given;
  const [subject] = argument ?? [];
  const written =
    message ??
    (networkMessage
      ? combine([['op: '], networkMessage])
      : combine([[`${op[0]}: ${subject} ${isOfGguf ? 'is ' : ''}`], got, [', expected '], expected]));
  const all = written.flatMap((each) => help.map((end) => helped(each, end)));
  return { code: code.join('|'), messages: [...new Set(all)] };
}

/** Lists the errors that a source can throw. */
export function errorsOf(file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const context = { ...declarationsOf(source), makers: makersOf(file) };
  const found = [];
  const visit = (node) => {
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      const made = messagesOf(node, context);
      const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
      for (const message of made?.messages ?? []) found.push({ place: `${file}:${line}`, code: made.code, message });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Lists the errors of all sources of the package. */
export function listErrors() {
  const files = readdirSync(join(root, folder), { recursive: true })
    .map((file) => `${folder}/${file}`)
    .filter((file) => /(?<!\.d)\.ts$/.test(file) && !file.endsWith('args/error.ts'));
  return files.sort().flatMap((file) => errorsOf(file, readFileSync(join(root, file), 'utf8')));
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const [word = ''] = argv.slice(2);
  for (const { place, code, message } of listErrors()) if (`${place} ${code} ${message}`.includes(word)) console.log(`${place} ${code} ${message}`);
}
