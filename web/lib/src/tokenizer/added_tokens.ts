import type { Model } from './models.js';
import type { Normalizer } from './normalizers.js';
import type { Section } from './schema.js';
import { checkGrowth, codesOf, readText, slice, type Piece, type Text } from './text.js';
import { Trie } from './trie.js';
import { SPACE, WORD, is } from './unicode.js';

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly singleWord: boolean;
  readonly stripsLeft: boolean;
  readonly stripsRight: boolean;
  readonly normalized: boolean;
}

/** Tokens beside the model's, found in the text before it is cut into words: those of special meaning, e.g. [MASK], and any others. */
export class AddedTokens {
  readonly ids = new Map<string, number>();
  readonly #byId = new Map<number, AddedToken>();
  /** Those that are looked for before normalisation, and after. */
  readonly #plain = new Trie();
  readonly #normalized = new Trie();
  readonly #normalizer: Normalizer;

  constructor(sections: readonly Section[], model: Model, normalizer: Normalizer) {
    this.#normalizer = normalizer;
    let nextId = model.size;
    for (const section of sections) {
      const content = section.string('content');
      if (content === '') continue;
      // As the library does: the id that the file names is not what counts.
      const id = this.ids.get(content) ?? model.vocabulary.get(content) ?? nextId++;
      this.ids.set(content, id);
      this.#byId.set(id, {
        id,
        content,
        singleWord: section.boolean('single_word'),
        stripsLeft: section.boolean('lstrip'),
        stripsRight: section.boolean('rstrip'),
        normalized: section.boolean('normalized'),
      });
    }
    for (const { id, content, normalized } of this.#byId.values())
      if (normalized) this.#normalized.add(normalizer(readText(content)).codes, id);
      else this.#plain.add(codesOf(content), id);
  }

  tokenOf(id: number): string | undefined {
    return this.#byId.get(id)?.content;
  }

  /** A text as pieces: added tokens, and normalised text between them. */
  extract(text: string): Piece[] {
    const whole = readText(text);
    let length = 0;
    return this.#find(whole, this.#plain).flatMap((piece) => {
      if (piece.added !== undefined) return [piece];
      const text = this.#normalizer(slice(whole, piece.from, piece.to));
      checkGrowth((length += text.codes.length), whole.limit);
      return this.#find(text, this.#normalized);
    });
  }

  /** The leftmost, of those the longest, and on from its end. */
  #find(text: Text, trie: Trie): Piece[] {
    const { codes } = text;
    const count = codes.length;
    const out: Piece[] = [];
    let done = 0;
    for (let at = 0; at < count;) {
      let [end, id] = [at, -1];
      for (let node = trie.step(0, codes[at]), i = at + 1; node > 0; node = i < count ? trie.step(node, codes[i++]) : 0)
        if (trie.values[node] >= 0) [end, id] = [i, trie.values[node]];
      if (id < 0) {
        ++at;
        continue;
      }
      const token = this.#byId.get(id)!;
      let [from, to] = [at, end];
      at = end;
      const inWord = (i: number) => i >= 0 && i < count && is(codes[i], WORD);
      if (token.singleWord && (inWord(from - 1) || inWord(to))) continue;
      if (token.stripsLeft) {
        while (from > done && is(codes[from - 1], SPACE)) --from;
        from = Math.max(from, done);
      }
      if (token.stripsRight) while (to < count && is(codes[to], SPACE)) ++to;
      if (done < from) out.push({ text, from: done, to: from });
      if (from < to) out.push({ text, from, to, added: id });
      done = to;
    }
    if (done < count) out.push({ text, from: done, to: count });
    return out;
  }
}
