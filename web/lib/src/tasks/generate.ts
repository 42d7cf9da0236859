/** src/attn/models/text_generation.cpp is the native counterpart. */
import type { GeneratedText, NextToken, ScoredText, Tensor, TextModel as Contract } from '../attn.js';
import { nextCacheNumber } from '../args/caches.js';
import { fail } from '../args/error.js';
import { generateOptions, nextTokenOptions, readText, readTextOptions, type TextOptions } from '../args/model_options.js';
import { tell } from '../args/options.js';
import { readArguments } from '../args/signature.js';
import type { Result } from '../engine/heap.js';
import { assertTask, encodeOptionsOf, withTextIndex } from '../model/batches.js';
import { type ModelState, signatureOf } from '../model/model_state.js';
import { takeTurn, yieldEvery30ms } from '../platform/event_loop.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';

type Find = () => ModelState;

/** Calls a function of the model's module. */
function ask(find: Find, op: string, name: string, ...args: readonly unknown[]): unknown {
  const { context, handle } = find();
  context.engine.assertUsable(op);
  const signature = signatureOf(context.engine, name);
  return context.engine.call(op, signature, readArguments(op, signature, args), handle);
}

function promptIds(op: string, find: Find, text: string, addSpecialTokens?: boolean): number[] {
  const { about, tokenizer } = find();
  assertTask(op, about, 'text-generation');
  const limit = encodeOptionsOf(op, about, {
    truncation: false,
    maxLength: about.positions,
    ...(addSpecialTokens !== undefined && { addSpecialTokens }),
  });
  return withTextIndex(op, 0, () => Array.from(tokenizer.encode([text], limit).inputIds));
}

/** Tokens of the prompt that are decoded with the new ones: some decoders drop the space before the first token. */
const context = 8;

class NewText {
  readonly #tokenizer: Tokenizer;
  readonly #ids: number[];
  readonly #start: number;
  #told = 0;
  text = '';

  constructor(tokenizer: Tokenizer, prompt: readonly number[]) {
    this.#tokenizer = tokenizer;
    this.#ids = prompt.slice(-context);
    this.#start = this.#decoded().length;
  }

  #decoded(): string {
    return this.#tokenizer.decode(this.#ids, true);
  }

  /** Returns whole characters only. */
  add(id: number): string {
    this.#ids.push(id);
    const text = (this.text = this.#decoded().slice(this.#start));
    if (text.endsWith('\ufffd') || text.length < this.#told) return '';
    const added = text.slice(this.#told);
    this.#told = text.length;
    return added;
  }
}

export async function generate(find: Find, givenPrompt: unknown, options?: unknown): Promise<GeneratedText> {
  const op = 'generate';
  const prompt = readText(op, 'prompt', givenPrompt);
  const { plain, signal, onToken } = readTextOptions(op, options, generateOptions);
  const { maxNewTokens = 64, stop = [], addSpecialTokens, ...others } = plain;
  const sampling: TextOptions = others;
  const empty = stop.indexOf('');
  if (empty >= 0) fail('ARGUMENT', op, `stop[${empty}]`, 'is empty', 'a string with characters');
  const ids = promptIds(op, find, prompt, addSpecialTokens);
  const { about, tokenizer } = find();
  const start = ids.length;
  const end = Math.min(start + maxNewTokens, about.positions);
  const made = new NewText(tokenizer, ids);
  const result = (finishReason: GeneratedText['finishReason'], text = made.text): GeneratedText => {
    const added = ids.slice(start);
    return { text, ids: added, tokens: added.map((id) => tokenizer.idToToken(id) ?? ''), finishReason };
  };
  if (start === end) return result('length');
  const number = -nextCacheNumber();
  ask(find, op, 'createCache', number, { maxLength: end });
  try {
    const turn = () => takeTurn(false);
    const sometimes = yieldEvery30ms(turn);
    await turn(); // a signal may have been aborted before the call
    for (let step = 0; ids.length < end; ++step) {
      await sometimes();
      if (signal?.aborted) return result('aborted');
      const [id, , probability] = (ask(find, op, 'generateToken', ids, number, step, sampling) as Tensor).data;
      ids.push(id!);
      tell(op, onToken, { id: id!, text: made.add(id!), probability: probability! }, 'onToken');
      const { text } = made;
      const stops = stop.map((each) => text.indexOf(each)).filter((at) => at >= 0);
      if (stops.length > 0) return result('stop', text.slice(0, Math.min(...stops)));
      if (about.eos.includes(id!)) return result('eos');
    }
    return result('length');
  } finally {
    try {
      ask(find, op, 'freeCache', number);
    } catch {
      // The model was disposed of, and its caches with it.
    }
  }
}

export async function nextToken(find: Find, givenText: unknown, options?: unknown): Promise<NextToken[]> {
  const op = 'nextToken';
  const text = readText(op, 'text', givenText);
  const { topK = 5 } = readTextOptions(op, options, nextTokenOptions).plain;
  const ids = promptIds(op, find, text);
  const { tokenizer } = find();
  const { data } = ask(find, op, 'nextTokens', ids, topK) as Tensor;
  return Array.from({ length: data.length / 3 }, (_, i) => {
    const [id, logit, probability] = data.subarray(3 * i, 3 * i + 3) as unknown as [number, number, number];
    return { id, token: tokenizer.idToToken(id) ?? '', text: tokenizer.decode([id]), logit, probability };
  });
}

export async function scoreTokens(find: Find, givenText: Parameters<Contract['scoreTokens']>[0]): Promise<ScoredText> {
  const op = 'scoreTokens';
  const text = readText(op, 'text', givenText);
  const ids = promptIds(op, find, text);
  const { tokenizer } = find();
  const { entries, number } = ask(find, op, 'scoreTokens', ids) as Result;
  const { data } = entries[0]!.tensor;
  const tokens = ids.map((id, i) => {
    const token = tokenizer.idToToken(id) ?? '';
    if (i === 0) return { id, token, logProbability: null, rank: null, entropy: null };
    const [logProbability, rank, entropy] = data.subarray(3 * i - 3, 3 * i) as unknown as [number, number, number];
    return { id, token, logProbability, rank, entropy };
  });
  return { tokens, perplexity: number };
}
