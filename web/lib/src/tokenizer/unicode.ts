/** Classes of the Hugging Face tokenizers, the same in every engine. */
import { NEWER, kinds, lowerSince14, runKinds, runLengths } from './unicode_table.js';
import { lazyParts } from './lazy_slot.js';
import { stringOf, transform, type Text } from './text.js';

export * from './unicode_table.js';

const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
let kindOf: Uint8Array | undefined;
let scriptOf: Uint8Array | undefined;

/** Base 32, lowest digit first, 32 added to all digits but the last. */
function numbersOf(text: string): number[] {
  const numbers: number[] = [];
  let [value, scale] = [0, 1];
  for (const char of text) {
    const digit = digits.indexOf(char);
    value += (digit % 32) * scale;
    scale *= 32;
    if (digit >= 32) continue;
    numbers.push(value);
    [value, scale] = [0, 1];
  }
  return numbers;
}

function readRuns(values: readonly number[], lengths: string): Uint8Array {
  const table = new Uint8Array(0x110000);
  let code = 0;
  numbersOf(lengths).forEach((more, run) => table.fill(values[run], code, (code += more + 1)));
  return table;
}

/** `classes`: such as LETTER | NUMBER. */
export function is(code: number, classes: number): boolean {
  kindOf ??= readRuns(
    Array.from(runKinds, (kind) => digits.indexOf(kind)),
    runLengths,
  );
  return (kinds[kindOf[code]]! & classes) !== 0;
}

/** 0: any script. */
export function script(code: number): number {
  return (scriptOf ??= lazyParts((rare) => readRuns(numbersOf(rare.runScripts), rare.scriptLengths))!)[code];
}

/** Without context: a final Σ becomes σ. */
function lowerOf(code: number): number[] {
  const lower = String.fromCodePoint(code).toLowerCase();
  const first = lower.codePointAt(0)!;
  if (first === code)
    for (let i = 0; i < lowerSince14.length; i += 3) if (code >= lowerSince14[i] && code <= lowerSince14[i + 1]) return [code + lowerSince14[i + 2]];
  return lower.length > (first > 0xffff ? 2 : 1) ? Array.from(lower, (c) => c.codePointAt(0)!) : [first];
}

export function isAscii({ codes }: Text): boolean {
  return codes.every((code) => code < 0x80);
}

const lowerAscii = (code: number) => (code >= 65 && code <= 90 ? code + 32 : code);

export function lowerCase(text: Text): Text {
  if (isAscii(text)) return { ...text, codes: text.codes.map(lowerAscii) };
  const codes: number[] = [];
  const changes: number[] = [];
  for (const code of text.codes)
    (code < 0x80 ? [lowerAscii(code)] : lowerOf(code)).forEach((lower, i) => {
      text.budget.hold(codes.length + 1);
      codes.push(lower);
      changes.push(i > 0 ? 1 : 0);
    });
  return transform(text, codes, changes);
}

export type Form = 'NFC' | 'NFD' | 'NFKC' | 'NFKD';

/** Whether canonical order exchanges two marks. */
const swaps = (a: string, b: string) => `a${a}${b}`.normalize('NFD') !== `a${a}${b}`;

/** Engines take minutes for some hundred thousand marks in a row. */
function sortMarks(run: string): string {
  return run.replace(/\p{M}{64,}/gu, (row) => {
    const marks = Array.from(row).flatMap((mark) => Array.from(mark.normalize('NFD')));
    // U+0345 sorts last: marks that exchange with it can move.
    const kinds = [...new Set(marks)].filter((mark) => mark === '\u0345' || swaps('\u0345', mark));
    kinds.sort((a, b) => (swaps(a, b) ? 1 : swaps(b, a) ? -1 : 0));
    const ranks = new Map<string, number>();
    kinds.forEach((kind, i) => ranks.set(kind, i > 0 && !swaps(kind, kinds[i - 1]) ? ranks.get(kinds[i - 1])! : i));
    let [sorted, moving]: [string, string[]] = ['', []];
    for (const mark of [...marks, 'a']) {
      if (ranks.has(mark)) {
        moving.push(mark);
        continue;
      }
      sorted += moving.sort((a, b) => ranks.get(a)! - ranks.get(b)!).join('') + mark;
      moving = [];
    }
    return sorted.slice(0, -1);
  });
}

/**
 * Reconstructs ranges: a decomposition takes its character's range and inserts the rest, moved marks are
 * the next of their kind, components of a composed character are dropped.
 */
function normalizeRun(run: string, form: Form, codes: number[], changes: number[]): void {
  const result = sortMarks(run).normalize(form);
  if (result === run) {
    for (const char of run) {
      codes.push(char.codePointAt(0)!);
      changes.push(0);
    }
    return;
  }
  const decomposition = form.replace('C', 'D');
  const queues = new Map<string, { changes: number[]; next: number }>();
  for (const char of run) {
    let change = 0;
    for (const part of char.normalize(decomposition)) {
      const queue = queues.get(part);
      if (queue) queue.changes.push(change);
      else queues.set(part, { changes: [change], next: 0 });
      change = 1;
    }
  }
  for (const char of result) {
    let sum = 1;
    for (const part of form === decomposition ? char : char.normalize('NFD')) {
      const queue = queues.get(part)!;
      sum += queue.changes[queue.next++] - 1;
    }
    codes.push(char.codePointAt(0)!);
    changes.push(sum);
  }
}

/** A character decomposes into at most 4 code points, or 18 with K. */
function checkParts({ codes, budget }: Text, form: Form): void {
  if (budget.fits((form.length > 3 ? 18 : 4) * codes.length)) return;
  let count = 0;
  const decomposition = form.replace('C', 'D');
  for (const code of codes) count += code < 0xa0 ? 1 : Array.from(String.fromCodePoint(code).normalize(decomposition)).length;
  budget.hold(count);
}

export function normalize(text: Text, form: Form): Text {
  const all = text.codes;
  if (all.every((code) => code < 0xa0)) return text;
  checkParts(text, form);
  const codes: number[] = [];
  const changes: number[] = [];
  let from = 0;
  const finish = (to: number) => {
    if (from < to) normalizeRun(stringOf(all, from, to), form, codes, changes);
  };
  // Characters newer than the library's Unicode stay, and nothing moves past them.
  all.forEach((code, at) => {
    if (!is(code, NEWER)) return;
    finish(at);
    codes.push(code);
    changes.push(0);
    from = at + 1;
  });
  finish(all.length);
  return transform(text, codes, changes);
}
