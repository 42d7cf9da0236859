/** Types of the tasks of a model's head: entities, masks, answers, ranking. 'attn' exports all of them. */
import type { TokenizeOptions } from './types.js';
import type { AbortSignal } from './host.js';

/** Task of a checkpoint's head, by the Hugging Face names. */
export type Task =
  | 'embedding'
  | 'text-classification'
  | 'token-classification'
  | 'fill-mask'
  | 'question-answering'
  | 'multiple-choice'
  | 'text-generation'
  | 'image-classification';

/** A named entity in a text. */
export interface Entity {
  /** Label of the entity; without `B-` and `I-` unless `aggregation` is `'none'`. */
  label: string;
  /** Probability of the label; the mean if the entity has several tokens. */
  score: number;
  /** Part of the text: `text.slice(start, end)`. */
  text: string;
  start: number;
  end: number;
}

/** A token for a mask. */
export interface FilledMask {
  /** Token as text, for example ` good` for `Ġgood`. */
  token: string;
  id: number;
  /** Probability among all tokens of the vocabulary. */
  score: number;
  /** The text with this token in place of the mask; other masks remain. */
  text: string;
}

/** A part of the context that answers a question. */
export interface Answer {
  /** Part of the context: `context.slice(start, end)`; empty if there is no answer. */
  text: string;
  /** Probability of the start times probability of the end; the sum if the same words occur several times. */
  score: number;
  start: number;
  end: number;
}

/** A document of {@link TextTasks.rank}. */
export interface RankedDocument {
  /** Index in the given list. */
  index: number;
  /** Relevance to the query. */
  score: number;
  /** Whether the query or this document was truncated because they exceed the maximum length together. */
  truncated: boolean;
}

/** A token that may follow a text. */
export interface NextToken {
  id: number;
  /** Token in the vocabulary's spelling, for example `Ġgood`. */
  token: string;
  /** Token as text, for example ` good`. */
  text: string;
  logit: number;
  /** Probability among all tokens of the vocabulary. */
  probability: number;
}

/** A message of a conversation; a template may use further members, such as `tool_calls`. */
export interface ChatMessage {
  /** For example `'system'`, `'user'` or `'assistant'`. */
  readonly role: string;
  readonly content?: unknown;
  readonly [member: string]: unknown;
}

/** Options of {@link TextTasks.applyChatTemplate}. */
export interface ChatTemplateOptions {
  /** Ends with the start of an answer, for {@link TextTasks.generate}. Default false. */
  addGenerationPrompt?: boolean | undefined;
  /** The name of one of the model's templates, or a Jinja template. Default: `tool_use` with tools, else `default`. */
  chatTemplate?: string | undefined;
  /** Descriptions of functions that the model may call, as JSON schemas. */
  tools?: readonly unknown[] | undefined;
  /** Documents to answer from, for templates that use them. */
  documents?: readonly unknown[] | undefined;
  /** Further variables of the template, such as `{ enable_thinking: false }`. */
  variables?: Readonly<Record<string, unknown>> | undefined;
}

/** Options of {@link TextTasks.generate}. */
export interface GenerateOptions {
  /** Maximal number of new tokens, from 1. Default 64. */
  maxNewTokens?: number | undefined;
  /** Draws each token by its probability instead of taking the likeliest. Default false. */
  doSample?: boolean | undefined;
  /** Divisor of the logits, above 0: less than 1 favours likely tokens. Default 1. */
  temperature?: number | undefined;
  /** Draws only from this number of likeliest tokens; 0 from all. Default 0. */
  topK?: number | undefined;
  /** Draws only from the likeliest tokens that together have this probability (Holtzman et al. 2020). Default 1. */
  topP?: number | undefined;
  /** Draws only from tokens with at least this share of the largest probability (Nguyen et al. 2024). Default 0. */
  minP?: number | undefined;
  /**
   * Divides positive logits of tokens that occur before, and multiplies negative ones (Keskar et al. 2019); above 1
   * avoids repetition, also without `doSample`. Default 1.
   */
  repetitionPenalty?: number | undefined;
  /** The same seed gives the same tokens, natively as well. Default 0. */
  seed?: number | undefined;
  /** Strings before which the new text ends. */
  stop?: readonly string[] | undefined;
  /** See {@link TokenizeOptions.addSpecialTokens}; of the prompt. */
  addSpecialTokens?: boolean | undefined;
  /**
   * Receives each new token, and what it adds to the text: nothing while the bytes of a character are incomplete.
   * `probability` is that of the model, before any option changes it.
   */
  onToken?: ((token: { id: number; text: string; probability: number }) => void) | undefined;
  /** Ends the text: the call returns the tokens so far. */
  signal?: AbortSignal | undefined;
}

/** Result of {@link TextTasks.generate}. */
export interface GeneratedText {
  /** The new part, without special tokens and without the stop string. */
  text: string;
  /** Ids of all new tokens. */
  ids: number[];
  /** The same tokens in the vocabulary's spelling. */
  tokens: string[];
  /**
   * `'length'`: `maxNewTokens`, or the model has no more positions; `'eos'`: the model ended the text; `'stop'`: a stop
   * string; `'aborted'`: the signal.
   */
  finishReason: 'length' | 'eos' | 'stop' | 'aborted';
}

/** Result of {@link TextTasks.scoreTokens}. */
export interface ScoredText {
  /**
   * Per token: the natural logarithm of its probability after the tokens before it, its rank among all tokens (1: the
   * likeliest), and the entropy of the prediction in nats. The first token has null, because nothing is before it.
   */
  tokens: { id: number; token: string; logProbability: number | null; rank: number | null; entropy: number | null }[];
  /** exp of the negative mean of the log probabilities. */
  perplexity: number;
}

/**
 * Keys and values of the tokens that a language model has seen, made by {@link TextModel.createCache}. It belongs to
 * the model and its current weights, and is freed with the model.
 */
export interface KeyValueCache {
  /** Number of tokens per sequence. */
  readonly length: number;
  /** Room for tokens. */
  readonly maxLength: number;
  /**
   * Discards all tokens after the first `length`.
   *
   * @param length number of tokens to keep, from 0
   * @throws {AttnError} `OUT_OF_RANGE` if the cache has fewer tokens
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-gpt2');
   * const cache = model.createCache();
   * model.forward(model.tokenize('The old'), { cache });
   * cache.truncate(2);
   * console.log(cache.length); // 2
   * ```
   */
  truncate(length: number): void;
  /**
   * Frees the memory.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-gpt2');
   * const cache = model.createCache();
   * const before = attn.info.heap.used;
   * cache.dispose();
   * console.log(attn.info.heap.used < before); // true
   * ```
   */
  dispose(): void;
  /** Calls {@link KeyValueCache.dispose}. */
  [Symbol.dispose](): void;
}

/** Options of {@link TextTasks.classifyZeroShot}. */
export interface ZeroShotOptions extends TokenizeOptions, BatchOptions {
  /** The sentence that is tested, with `{}` in place of the label. Default `'This example is {}.'`. */
  hypothesisTemplate?: string | undefined;
  /** Scores each label alone, so that several can be near 1; else the scores of a text sum to 1. Default false. */
  multiLabel?: boolean | undefined;
  /** Number of labels per text, from 1. Default all. */
  topK?: number | undefined;
}

/** Options of {@link TextTasks.fillMask}. */
export interface FillMaskOptions extends BatchOptions {
  /** Number of tokens per mask, from 1. Default 5. */
  topK?: number | undefined;
  /** Considers only these tokens. A text that is not a token counts as its first token, as in transformers. */
  targets?: readonly string[] | undefined;
}

/** Options of {@link TextTasks.answer}. */
export interface AnswerOptions extends BatchOptions {
  /** Maximal number of answers, from 1. Default 1. */
  topK?: number | undefined;
  /** Maximal number of tokens of an answer. Default 15. */
  maxAnswerLength?: number | undefined;
  /** Tokens of a window, including the question. Default 384 or the model's `maxLength` if that is less. */
  maxLength?: number | undefined;
  /** Tokens that neighbouring windows of a long context share. Default 128, at most half of `maxLength`. */
  stride?: number | undefined;
  /** Allows the empty answer, which means "no answer". Default false. */
  allowEmpty?: boolean | undefined;
}

/** Options of all functions that process texts in batches. They do not change a bit of a result. */
export interface BatchOptions {
  /**
   * Number of texts per batch. By default a batch takes about 30 ms on a desktop computer, so that a page stays
   * responsive: 1 to 32 texts, depending on the longest text and the size of the model.
   */
  batchSize?: number | undefined;
  /**
   * `'user'` runs before all other calls of the same thread or worker, such as a query while documents are embedded.
   * Default `'background'`: calls take turns after each batch.
   */
  priority?: 'user' | 'background' | undefined;
  /** Rejects with `ABORTED` between two batches. */
  signal?: AbortSignal | undefined;
  /** Receives the number of processed texts after each batch. */
  onProgress?: ((p: { done: number; total: number }) => void) | undefined;
}

/** A prompt in front of each text. */
export interface PromptOptions {
  /** The prompt itself; `''` for none. Default that of `promptName`. */
  prompt?: string | undefined;
  /**
   * Name of a prompt of config_sentence_transformers.json; `'query'` and `'document'` always exist. Default the file's
   * `default_prompt_name`.
   */
  promptName?: string | undefined;
}

/** Options of {@link TextModel.embed}. */
export interface EmbedOptions extends TokenizeOptions, PromptOptions, BatchOptions {
  /**
   * Pooling over tokens without padding: `'mean'`, `'cls'` (first position), `'max'`, `'lasttoken'`, `'weightedmean'`
   * (weights 1, 2, 3, …) or `'mean_sqrt_len'` (sum / √tokens). Default that of the files, which may concatenate several,
   * else mean.
   */
  pooling?: 'mean' | 'cls' | 'max' | 'lasttoken' | 'weightedmean' | 'mean_sqrt_len' | undefined;
  /** Scales vectors to length 1. Default that of the files, else false. */
  normalize?: boolean | undefined;
}

/** Options of {@link TextModel.classify}. */
export interface ClassifyOptions extends TokenizeOptions, BatchOptions {
  /** Number of labels per text, from 1. Default all. */
  topK?: number | undefined;
}

/** Options of {@link TextTasks.classifyTokens}. */
export interface ClassifyTokensOptions extends TokenizeOptions, BatchOptions {
  /**
   * `'none'` gives one entity per token; `'simple'` (default) joins adjacent tokens with the same label, unless the
   * second begins another entity (`B-`); `'first'`, `'average'` and `'max'` do the same with one label per word, that
   * of its first token, of the mean of its probabilities, or of its most certain token.
   */
  aggregation?: 'none' | 'simple' | 'first' | 'average' | 'max' | undefined;
  /**
   * Splits long texts into windows that share this number of tokens; of overlapping entities the longest, then the most
   * certain counts. By default long texts are truncated.
   */
  stride?: number | undefined;
  /** Labels to omit. Default `['O']`. */
  ignoreLabels?: readonly string[] | undefined;
}

/** Options of {@link TextTasks.rank}. */
export interface RankOptions extends TokenizeOptions, PromptOptions, BatchOptions {
  /** Number of documents to return, from 1. Default all. */
  topK?: number | undefined;
}

/** Functions of a {@link TextModel} for tasks. */
export interface TextTasks {
  /** Task of the checkpoint's head; `'embedding'` if it has none. */
  readonly task: Task;

  /**
   * Converts token ids to text with the tokenizer's decoder, as transformers' `decode`. Unknown ids are ignored.
   *
   * @param ids token ids
   * @param options.skipSpecialTokens omits `[CLS]` and the like; default false
   * @throws {AttnError} `UNSUPPORTED` if attn does not have the tokenizer's decoder
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const { inputIds } = model.tokenize('A warm film.');
   * console.log(model.decode(inputIds, { skipSpecialTokens: true })); // a warm film.
   * ```
   */
  decode(ids: ArrayLike<number>, options?: { skipSpecialTokens?: boolean | undefined }): string;

  /**
   * Finds the named entities of each text (NER), as transformers' TokenClassificationPipeline.
   *
   * @param texts one text or several
   * @param options see {@link ClassifyTokensOptions}
   * @returns per text, its entities in order
   * @throws {AttnError} `UNSUPPORTED` if the model has no head for token classification
   * @throws {AttnError} `CONFIG` if `stride` is not less than the tokens that `maxLength` leaves for text, or is given with `aggregation: 'none'`
   * @throws {AttnError} those of {@link TextModel.embed}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/entities');
   * const [entities] = await model.classifyTokens('Anna Miller lives in Lyon.', { aggregation: 'first' });
   * for (const { label, text, start } of entities) console.log(label, text, start);
   * // PER Anna Miller 0
   * // LOC Lyon 21
   * ```
   */
  classifyTokens(texts: string | readonly string[], options?: ClassifyTokensOptions): Promise<Entity[][]>;

  /**
   * Classifies each text by labels of your choice with a head for natural language inference (NLI), as transformers'
   * ZeroShotClassificationPipeline: each text is paired with one sentence per label. The score is the softmax of the
   * entailment logits over the labels; with `multiLabel` or one label that of entailment against contradiction.
   *
   * @param texts one text or several
   * @param labels the labels, as words that fit into `hypothesisTemplate`
   * @param options see {@link ZeroShotOptions}
   * @returns per text, the labels by descending score
   * @throws {AttnError} `UNSUPPORTED` if the model has no head for text classification with a label that begins with
   * `entail`
   * @throws {AttnError} `CONFIG` if `hypothesisTemplate` does not have exactly one `{}`
   * @throws {AttnError} those of {@link TextModel.embed}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment'); // in place of a model for NLI
   * const pairs = [['It rains.', 'This example is weather.'], ['It rains.', 'This example is food.']] as const;
   * const examples = pairs.map((text, i) => ({ text, label: ['entailment', 'contradiction'][i] }));
   * await model.fineTune(examples, { labels: ['contradiction', 'entailment'], epochs: 2 });
   * const [scores] = await model.classifyZeroShot('It rains.', ['weather', 'food']);
   * console.log(scores.length, scores[0].score >= scores[1].score); // 2 true
   * ```
   */
  classifyZeroShot(
    texts: string | readonly string[],
    labels: readonly string[],
    options?: ZeroShotOptions,
  ): Promise<{ label: string; score: number }[][]>;

  /**
   * Predicts the tokens of each mask in a text ({@link TextModel.maskToken}), as transformers' FillMaskPipeline.
   *
   * @param texts one text
   * @param options see {@link FillMaskOptions}
   * @returns per mask, the tokens by descending score
   * @throws {AttnError} `ARGUMENT` if a text has no mask, or a target starts with no token of the vocabulary
   * @throws {AttnError} `OUT_OF_RANGE` if a text is too long
   * @throws {AttnError} `UNSUPPORTED` if the model has no head for fill-mask, or the tokenizer no mask token
   * @throws {AttnError} `ABORTED` if `signal` aborts
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/masks');
   * const [[best]] = await model.fillMask('the film was [MASK].');
   * console.log(best.token, '|', best.text); // funny | the film was funny.
   * ```
   */
  fillMask(texts: string, options?: FillMaskOptions): Promise<FilledMask[][]>;
  /**
   * Predicts the tokens of each mask in several texts, with one result per text.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/masks');
   * const results = await model.fillMask(['the film was [MASK].', 'it was a [MASK] film.'], { topK: 1 });
   * for (const [[{ text }]] of results) console.log(text);
   * // the film was funny.
   * // it was a good film.
   * ```
   */
  fillMask(texts: readonly string[], options?: FillMaskOptions): Promise<FilledMask[][][]>;

  /**
   * Finds the parts of a context that answer a question, in whole words, as transformers' QuestionAnsweringPipeline
   * (version 4). A long context is split into overlapping windows.
   *
   * @param question one question
   * @param context one context
   * @param options see {@link AnswerOptions}
   * @returns answers by descending score
   * @throws {AttnError} `ARGUMENT` if a question or context is empty, or there is not one context per question
   * @throws {AttnError} `OUT_OF_RANGE` if a question leaves no tokens for the context
   * @throws {AttnError} `CONFIG` if `stride` does not fit into a window
   * @throws {AttnError} `UNSUPPORTED` if the model has no head for question answering
   * @throws {AttnError} `ABORTED` if `signal` aborts
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-bert-qa'); // untrained weights
   * const context = 'she is good, he is bad';
   * const [{ text, start, end }] = await model.answer('who is good?', context);
   * console.log(text === context.slice(start, end)); // true
   * ```
   */
  answer(question: string, context: string, options?: AnswerOptions): Promise<Answer[]>;
  /**
   * Answers several questions, with one result per question: one context for all questions, one per question, or
   * several contexts for one question.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-bert-qa'); // untrained weights
   * const results = await model.answer(['who is good?', 'who is bad?'], 'she is good, he is bad', { topK: 3 });
   * console.log(results.map((answers) => answers.length)); // [ 3, 3 ]
   * ```
   */
  answer(question: string | readonly string[], context: string | readonly string[], options?: AnswerOptions): Promise<Answer[][]>;

  /**
   * Continues a text with a language model, as transformers' `generate()`: token by token, each computed once, because
   * the keys and values of earlier tokens are kept. Events are handled every 30 ms.
   *
   * @param prompt one text
   * @param options see {@link GenerateOptions}
   * @throws {AttnError} `UNSUPPORTED` if the model has no head for text generation
   * @throws {AttnError} `OUT_OF_RANGE` if the prompt has more tokens than the model has positions, or a logit is NaN
   * @throws {AttnError} `ARGUMENT` if the prompt has no token
   * @throws {AttnError} `CONFIG` if an option is outside its range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
   * const { ids, finishReason } = await model.generate('The old man', { maxNewTokens: 8 });
   * console.log(ids.length, finishReason); // 8 length
   * ```
   */
  generate(prompt: string, options?: GenerateOptions): Promise<GeneratedText>;

  /**
   * Formats a conversation as the model was trained to read it, like transformers'
   * `apply_chat_template(messages, tokenize=False)`: renders the Jinja template of tokenizer_config.json,
   * chat_template.jinja or a GGUF file by `@huggingface/jinja`, which is loaded with the first call. The text contains
   * the special tokens, so pass `addSpecialTokens: false` to `generate`. A template is a program: load models that you
   * trust, since it may run for a long time.
   *
   * @param messages the conversation, oldest message first
   * @param options see {@link ChatTemplateOptions}
   * @throws {AttnError} `UNSUPPORTED` if the model has no template
   * @throws {AttnError} `ARGUMENT` if the template refuses the messages, for example two of one role in a row
   * @throws {AttnError} `FORMAT` if the template has a syntax error
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-llama');
   * const chatTemplate = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"; // this model has none
   * console.log(await model.applyChatTemplate([{ role: 'user', content: 'Hi' }], { chatTemplate })); // <user>Hi
   * ```
   */
  applyChatTemplate(messages: readonly ChatMessage[], options?: ChatTemplateOptions): Promise<string>;

  /**
   * Returns the tokens that most likely follow a text, the likeliest first.
   *
   * @param text one text
   * @param options.topK number of tokens, from 1; default 5
   * @throws {AttnError} those of {@link TextTasks.generate}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
   * const next = await model.nextToken('The old man', { topK: 3 });
   * console.log(next.length, next[0].logit >= next[1].logit); // 3 true
   * ```
   */
  nextToken(text: string, options?: { topK?: number | undefined }): Promise<NextToken[]>;

  /**
   * Returns how well the model predicts each token of a text from the tokens before it.
   *
   * @param text one text
   * @throws {AttnError} those of {@link TextTasks.generate}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
   * const { tokens, perplexity } = await model.scoreTokens('The old man');
   * console.log(tokens[0].rank, tokens[1].rank! >= 1, perplexity > 1); // null true true
   * ```
   */
  scoreTokens(text: string): Promise<ScoredText>;

  /**
   * Sorts documents by relevance to a query with a cross-encoder, a head with one label (sentence-transformers'
   * CrossEncoder.rank). The score is the activation that the files name, else the sigmoid of the logit.
   *
   * @param query text in front of which the prompt is put
   * @param documents several texts
   * @param options see {@link RankOptions}
   * @returns documents by descending score
   * @throws {AttnError} `UNSUPPORTED` if the model has another head
   * @throws {AttnError} `CONFIG` if there is no prompt `promptName`
   * @throws {AttnError} those of {@link TextModel.embed}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * // Give the model the head of a cross-encoder.
   * const documents = ['a recipe for soup', 'a film about dogs'];
   * const examples = documents.map((text, i) => ({ text: ['film', text], label: i }) as const);
   * await model.fineTune(examples, { labels: ['relevance'], layers: 'head', epochs: 30, learningRate: 0.02 });
   * console.log((await model.rank('film', documents)).map(({ index }) => index)); // [ 1, 0 ]
   * ```
   */
  rank(query: string, documents: readonly string[], options?: RankOptions): Promise<RankedDocument[]>;
}
