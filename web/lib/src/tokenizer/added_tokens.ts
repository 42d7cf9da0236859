import type { Model } from './models.js';
import type { Normalizer } from './normalizers.js';
import { limits } from './limits.js';
import { atMost, type Section } from './schema.js';
import { Budget, readText, slice, stringOf, type Piece, type Text } from './text.js';
import { Trie } from './trie.js';
import { SPACE, WORD, is } from './unicode.js';

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly singleWord: boolean;
  readonly stripsLeft: boolean;
  readonly stripsRight: boolean;
  readonly normalized: boolean;
  readonly special: boolean;
  /** Left to the model. */
  readonly isSplit: boolean;
}

/** By number in the trie. */
interface Wanted {
  readonly tokens: readonly AddedToken[];
  readonly trie: Trie;
}

/** Found in a text before it is split into words. */
export class AddedTokens {
  readonly ids = new Map<string, number>();
  readonly own: number;
  readonly #byId = new Map<number, AddedToken>();
  readonly #texts = new Map<number, string>();
  /** Searched for before and after normalization. */
  readonly #plain: Wanted;
  readonly #normalized: Wanted;
  readonly #normalizer: Normalizer;

  /** `splitsSpecial`: the model tokenizes special tokens. */
  constructor(sections: readonly Section[], model: Model, normalizer: Normalizer, splitsSpecial = false) {
    this.#normalizer = normalizer;
    let nextId = model.size;
    let length = 0;
    atMost('tokenizer.json.added_tokens', sections.length, 'tokens', limits.addedTokens);
    for (const section of sections) {
      const content = section.text('content', limits.token);
      if (content === '') continue;
      length += content.length;
      // The library also ignores the file's id.
      const id = this.ids.get(content) ?? model.idOf(content) ?? nextId++;
      const before = this.#byId.get(id);
      // As in the library: once special, always special.
      const special = section.boolean('special', false) || (before?.content === content && before.special);
      this.ids.set(content, id);
      this.#byId.set(id, {
        id,
        content,
        singleWord: section.boolean('single_word'),
        stripsLeft: section.boolean('lstrip'),
        stripsRight: section.boolean('rstrip'),
        normalized: section.boolean('normalized'),
        special,
        isSplit: special && splitsSpecial,
      });
    }
    this.own = [...this.ids.keys()].filter((content) => model.idOf(content) === undefined).length;
    // Shared, because tokens and normalizers multiply.
    const budget = new Budget(length, 'tokenizer.json.added_tokens');
    const all = [...this.#byId.values()];
    const wanted = (tokens: readonly AddedToken[], text: (token: AddedToken) => string): Wanted => ({ tokens, trie: new Trie(tokens.map(text)) });
    this.#plain = wanted(
      all.filter(({ normalized }) => !normalized),
      ({ content }) => content,
    );
    let made = 0;
    this.#normalized = wanted(
      all.filter(({ normalized }) => normalized),
      ({ id, content }) => {
        const text = stringOf(normalizer(readText(content, budget)).codes);
        atMost('a normalized token', text.length, 'characters', limits.token);
        made += text.length;
        this.#texts.set(id, text);
        atMost('tokenizer.json.added_tokens', made, 'characters once they are normalized', 2 * length + 16 * all.length + 4096);
        return text;
      },
    );
  }

  get all(): readonly AddedToken[] {
    return [...this.#byId.values()].map((token) => ({ ...token, content: this.tokenOf(token.id)! }));
  }

  /** As in the library, a token that normalization changes is not special. */
  isSpecial(id: number): boolean {
    const token = this.#byId.get(id);
    return token !== undefined && token.special && this.tokenOf(id) === token.content;
  }

  tokenOf(id: number): string | undefined {
    return this.#texts.get(id) ?? this.#byId.get(id)?.content;
  }

  extract(text: string, budget: Budget): Piece[] {
    const whole = readText(text, budget);
    let length = 0;
    return this.#find(whole, this.#plain).flatMap((piece) => {
      if (piece.added !== undefined) return [piece];
      const text = this.#normalizer(slice(whole, piece.from, piece.to));
      whole.budget.hold((length += text.codes.length));
      return this.#find(text, this.#normalized);
    });
  }

  /** Leftmost, then longest. */
  #find(text: Text, { tokens, trie }: Wanted): Piece[] {
    const { codes, budget } = text;
    const count = codes.length;
    const out: Piece[] = [];
    let done = 0;
    // Tokens that begin inside white space include it to its end, as in the library.
    let spaces = 0;
    for (let at = 0; at < count;) {
      let [end, found] = [at, -1];
      let i = at + 1;
      for (let state = trie.step(0, codes[at]); state > 0; state = i < count ? trie.step(state, codes[i++]) : 0) {
        const number = trie.numberAt(state);
        if (number >= 0) [end, found] = [i, number];
      }
      budget.spend(i - at);
      if (found < 0) {
        ++at;
        continue;
      }
      const token = tokens[found];
      let [from, to] = [at, end];
      at = end;
      const inWord = (i: number) => i >= 0 && i < count && is(codes[i], WORD);
      if (token.isSplit || (token.singleWord && (inWord(from - 1) || inWord(to)))) continue;
      if (token.stripsLeft) {
        while (from > done && is(codes[from - 1], SPACE)) --from;
        from = Math.max(from, done);
      }
      if (token.stripsRight) {
        if (to < spaces) to = spaces;
        else while (to < count && is(codes[to], SPACE)) spaces = ++to;
      }
      if (done < from) out.push({ text, from: done, to: from });
      if (from < to) {
        budget.spend(to - from); // tokens may overlap
        out.push({ text, from, to, added: token.id });
      }
      done = to;
    }
    if (done < count) out.push({ text, from: done, to: count });
    return out;
  }
}
