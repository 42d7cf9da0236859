import { fail } from '../args/error.js';
import { limits } from './limits.js';
import { op, type Section } from './schema.js';
import { codesOf, transform, utf8, type Text } from './text.js';
import { BREAK, EXTEND, PREPEND, is } from './unicode.js';

/** Exact below six bytes only: a longer cluster (flags, Indic conjuncts) may end early. */
function clusterEnd(codes: readonly number[], at: number): number {
  for (let end = at + 1; ; ++end) {
    const [before, code] = [codes[end - 1], codes[end]];
    if (code === undefined) return end;
    if (before === 13 && code === 10) continue;
    if (is(before, BREAK) || is(code, BREAK)) return end;
    if (is(code, EXTEND) || is(before, PREPEND) || joinsSyllable(before, code)) continue;
    // © has two bytes.
    if (before === 0x200d && joinsPictograph(codes, at, end)) continue;
    return end;
  }
}

const within = (code: number, first: number, last: number) => code >= first && code <= last;
const isVowel = (code: number) => within(code, 0x1160, 0x11a7) || within(code, 0xd7b0, 0xd7c6);
const isTail = (code: number) => within(code, 0x11a8, 0x11ff) || within(code, 0xd7cb, 0xd7fb);
const isLead = (code: number) => within(code, 0x1100, 0x115f) || within(code, 0xa960, 0xa97c);
const isSyllable = (code: number) => within(code, 0xac00, 0xd7a3);

function joinsSyllable(before: number, code: number): boolean {
  if (isLead(before)) return isLead(code) || isVowel(code) || isSyllable(code);
  if (isVowel(before) || (isSyllable(before) && (before - 0xac00) % 28 === 0)) return isVowel(code) || isTail(code);
  return (isTail(before) || isSyllable(before)) && isTail(code);
}

const pictograph = /^\p{Extended_Pictographic}/u;
const isPictograph = (code: number) => pictograph.test(String.fromCodePoint(code));

function joinsPictograph(codes: readonly number[], from: number, at: number): boolean {
  let start = at - 2;
  while (start > from && is(codes[start], EXTEND)) --start;
  return start >= from && isPictograph(codes[start]) && isPictograph(codes[at]);
}

/**
 * sentencepiece rules in a double array (darts-clone). The shortest matching rule replaces a cluster below six bytes;
 * longer clusters go character by character.
 */
export function precompiled(section: Section): (text: Text) => Text {
  const map = section.text('precompiled_charsmap', limits.charsmap);
  section.take('precompiled_charsmap'); // only its parsed form stays in memory
  let blob: Uint8Array;
  let units: DataView;
  const size = () => units.byteLength / 4;
  try {
    const text = atob(map);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
    const length = new DataView(bytes.buffer).getUint32(0, true);
    units = new DataView(bytes.buffer, 4, length - (length % 4));
    blob = bytes.subarray(4 + units.byteLength);
    new TextDecoder('utf-8', { fatal: true }).decode(blob);
  } catch {
    fail('FORMAT', op, section.at('precompiled_charsmap'), 'is no character map', 'a map compiled by sentencepiece, in base64');
  }
  for (let at = 0; at < blob.length;) {
    const next = blob.indexOf(0, at);
    const end = next < 0 ? blob.length : next;
    if (end - at > limits.content)
      fail('UNSUPPORTED', op, section.at('precompiled_charsmap'), `has a replacement of ${end - at} bytes`, `at most ${limits.content} bytes`);
    at = end + 1;
  }
  const unit = (at: number) => (at < size() ? units.getUint32(4 * at, true) : 0);
  const offset = (u: number) => (u >>> 10) << ((u & 512) >>> 6);
  const found = new Map<number, number[]>();
  let room = 2 ** 18;

  function replacement(at: number): number[] {
    let codes = found.get(at);
    if (!codes) {
      const end = blob.indexOf(0, at);
      codes = codesOf(new TextDecoder('utf-8', { ignoreBOM: true }).decode(blob.subarray(at, end < 0 ? blob.length : end)));
      if ((room -= codes.length + 16) > 0) found.set(at, codes);
    }
    return codes;
  }

  function lookUp(codes: readonly number[], from: number, to: number): number[] | undefined {
    let node = offset(unit(0));
    for (let i = from; i < to && codes[i] !== 0; ++i)
      for (const byte of utf8(codes[i])) {
        node ^= byte;
        const u = unit(node);
        // The high bit marks a value, which is no edge.
        if ((u & 0x800000ff) >>> 0 !== byte) return undefined;
        node ^= offset(u);
        if (u & 256) return replacement(unit(node) & 0x7fffffff);
      }
    return undefined;
  }

  return (text) => {
    const { codes } = text;
    const out: number[] = [];
    const changes: number[] = [];
    const put = (from: number, to: number): boolean => {
      const content = lookUp(codes, from, to);
      if (!content) return false;
      text.budget.hold(out.length + content.length);
      const more = content.length - (to - from);
      content.forEach((code, i) => {
        out.push(code);
        changes.push(i < content.length - more ? 0 : 1);
      });
      // As in the library, removed characters shift the ranges.
      if (more < 0 && changes.length > 0) changes[changes.length - 1] += more;
      return true;
    };
    for (let at = 0; at < codes.length;) {
      const end = clusterEnd(codes, at);
      let length = 0;
      for (let i = at; i < end && length < 6; ++i) length += utf8(codes[i]).length;
      if (length >= 6 || !put(at, end))
        for (let i = at; i < end; ++i)
          if (!put(i, i + 1)) {
            text.budget.hold(out.length + 1);
            out.push(codes[i]);
            changes.push(0);
          }
      at = end;
    }
    return transform(text, out, changes);
  };
}
