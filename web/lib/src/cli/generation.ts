/** src/command/generation.cpp writes the same bytes. */
import type { GenerateOptions, ScoredText, TextModel } from '../attn.js';
import { decodeStrictUtf8 } from '../platform/utf8.js';
import { load } from '../node.js';
import { type Call, Misuse } from './options.js';
import { printable, quoted } from './printable.js';
import { array, columns, number, object } from './written.js';

type Options = Call['options'];

/** Returns the argument, or for '-' standard input without its last line break. */
export async function textOf(given: string, name = 'TEXT'): Promise<string> {
  let text = given;
  if (given === '-') {
    const pieces: Buffer[] = [];
    for await (const piece of process.stdin) pieces.push(piece as Buffer);
    try {
      text = decodeStrictUtf8(Buffer.concat(pieces)).replace(/\r?\n$/, '');
    } catch (error) {
      throw new Error(`${name} is not UTF-8`, { cause: error });
    }
  }
  if (text === '') throw new Misuse(`${name} is empty`);
  return text;
}

function generateOptionsOf(options: Options): GenerateOptions {
  const value = (name: keyof Options) => options[name] as number | undefined;
  const drawn = { temperature: value('temperature'), topK: value('top-k'), topP: value('top-p'), minP: value('min-p'), seed: value('seed') };
  return {
    ...drawn,
    maxNewTokens: value('max-new-tokens'),
    repetitionPenalty: value('repetition-penalty'),
    doSample: options['do-sample'] !== undefined || Object.values(drawn).some((each) => each !== undefined),
  };
}

/** Writes a text as it grows, except an end that may be the start of a stop string. */
class Stream {
  readonly #stops: readonly string[];
  #text = '';
  #written = 0;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  add(text: string): void {
    this.#text += text;
    let end = this.#text.length;
    for (const stop of this.#stops) {
      const at = this.#text.indexOf(stop);
      if (at >= 0) end = Math.min(end, at);
      for (let size = Math.min(stop.length, this.#text.length); size > 0; --size)
        if (this.#text.endsWith(stop.slice(0, size))) end = Math.min(end, this.#text.length - size);
    }
    this.#write(this.#text, end);
  }

  end(text: string): void {
    this.#write(text, text.length);
    process.stdout.write('\n');
  }

  #write(text: string, end: number): void {
    if (end <= this.#written) return;
    process.stdout.write(text.slice(this.#written, end).split('\n').map(printable).join('\n'));
    this.#written = end;
  }
}

async function generate(model: TextModel, text: string, { options, stops }: Call): Promise<void> {
  const stream = new Stream(stops);
  const isJson = options.json !== undefined;
  const made = await model.generate(text, {
    ...generateOptionsOf(options),
    stop: stops,
    ...(!isJson && { onToken: (token: { readonly text: string }) => void stream.add(token.text) }),
  });
  if (!isJson) return void stream.end(made.text);
  const { ids, tokens, finishReason } = made;
  const members = { text: quoted(made.text), ids: array(ids.map(String)), tokens: array(tokens.map(quoted)), finish_reason: quoted(finishReason) };
  console.log(object(members));
}

async function score(model: TextModel, text: string, { options }: Call): Promise<void> {
  const { tokens, perplexity } = await model.scoreTokens(text);
  const total = tokens.reduce((sum, { logProbability }) => sum + (logProbability ?? 0), 0);
  const orNull = (value: number | null) => (value === null ? 'null' : number(value));
  if (options.json === undefined) {
    for (const { token, logProbability } of tokens) console.log(`${logProbability === null ? '-' : number(logProbability)}\t${columns([token])}`);
    console.log(`${number(total)}\ttotal\n${number(perplexity)}\tperplexity`);
    return;
  }
  const json = ({ id, token, logProbability, rank, entropy }: ScoredText['tokens'][number]) =>
    object({ id: String(id), token: quoted(token), log_probability: orNull(logProbability), rank: String(rank), entropy: orNull(entropy) });
  console.log(object({ tokens: array(tokens.map(json)), log_probability: number(total), perplexity: number(perplexity) }));
}

export async function withModel(call: Call, path: string, use: (model: TextModel) => Promise<void>): Promise<void> {
  // For tests: simd computes as the native library with ATTN_MAX_ARCH=emulated.
  const attn = await load({ variant: process.env['ATTN_VARIANT'] === 'simd' ? 'simd' : 'auto' });
  try {
    const model = await attn.loadModel(path, { weights: (call.options.weights as 'float32' | 'int8' | undefined) ?? 'auto' });
    await use(model);
  } finally {
    attn.dispose();
  }
}

export async function runGeneration(call: Call): Promise<void> {
  const text = await textOf(call.paths[1]!);
  await withModel(call, call.paths[0]!, async (model) => {
    if (model.task !== 'text-generation') throw new Error(`MODEL is for ${model.task}, expected one for text-generation`);
    await (call.command === 'generate' ? generate : score)(model, text, call);
  });
}
