/** What models say of tokens and of pairs of texts: the part of the types that is about the tasks of heads. All of it is exported by 'attn'. */
import type { TokenizeOptions } from './attn.js';
import type { AbortSignal } from './host.js';

/** What a checkpoint's head is for, as Hugging Face calls it. */
export type Task = 'embedding' | 'text-classification' | 'token-classification' | 'fill-mask' | 'question-answering' | 'multiple-choice';

/** Something that a text names. */
export interface Entity {
  /** The label, without `B-` and `I-` where tokens are put together. */
  label: string;
  /** From 0 to 1: of several tokens the mean. */
  score: number;
  /** `text.slice(start, end)` of the text. */
  text: string;
  start: number;
  end: number;
}

/** A token in the place of a mask. */
export interface FilledMask {
  /** As text: ` good` of `Ġgood`. */
  token: string;
  id: number;
  /** From 0 to 1, of the whole vocabulary. */
  score: number;
  /** The text with the token in the place of the mask. Where it has other masks they stay. */
  text: string;
}

/** A part of the context that answers the question. */
export interface Answer {
  /** `context.slice(start, end)`; empty where there is no answer. */
  text: string;
  /** From 0 to 1: the probability of its start times that of its end; of several places with the same words the sum. */
  score: number;
  start: number;
  end: number;
}

/** A document's place in the list that was given, and how relevant it is. */
export interface RankedDocument {
  index: number;
  score: number;
  /** Whether the query or this document was truncated because they exceed the maximum length together. */
  truncated: boolean;
}

export interface FillMaskOptions extends BatchOptions {
  topK?: number | undefined;
  targets?: readonly string[] | undefined;
}

export interface AnswerOptions extends BatchOptions {
  topK?: number | undefined;
  maxAnswerLength?: number | undefined;
  maxLength?: number | undefined;
  stride?: number | undefined;
  allowEmpty?: boolean | undefined;
}

/** Options of all calls that compute texts in batches. No bit of a result depends on them. */
export interface BatchOptions {
  /**
   * Texts of a batch. By default a batch takes about 30 ms of a desktop computer, so that a page can draw and answer between batches: as many texts as
   * that allows for the tokens of the longest one and for the size of the model, from 1 to 32.
   */
  batchSize?: number | undefined;
  /**
   * `'user'`: go before all other calls of the same thread or worker, for example with a query that someone waits for while documents are being
   * embedded. Default `'background'`: calls take turns, batch by batch.
   */
  priority?: 'user' | 'background' | undefined;
  /** Ends the call between two batches, with `ABORTED`. */
  signal?: AbortSignal | undefined;
  /** Called after each batch, with the number of texts. */
  onProgress?: ((p: { done: number; total: number }) => void) | undefined;
}

/** What goes before texts. Without either, what the files name as `default_prompt_name`; `prompt: ''` is none. */
export interface PromptOptions {
  prompt?: string | undefined;
  /** One of config_sentence_transformers.json. */
  promptName?: string | undefined;
}

/** The tasks of a {@link TextModel}. */
export interface TextTasks {
  /** What the checkpoint's head is for; `'embedding'` without one. */
  readonly task: Task;

  /**
   * The text of tokens: what the tokenizer's decoder makes of them, as transformers' `decode`. Ids that the vocabulary does not have are left out.
   *
   * @param options `skipSpecialTokens`: leave out `[CLS]` and the like; default false
   * @throws AttnError `UNSUPPORTED` for a decoder that attn does not have; `ARGUMENT`
   */
  decode(ids: ArrayLike<number>, options?: { skipSpecialTokens?: boolean | undefined }): string;

  /**
   * What each text names, with its places there, as transformers' TokenClassificationPipeline.
   *
   * @param options besides {@link TokenizeOptions} and {@link BatchOptions}: `aggregation`, default `'simple'`. `'none'`: a row for each token. `'simple'`: neighbours with the
   * same label are one, where the second does not begin (`B-`) another. `'first'`, `'average'`, `'max'`: the same, and a word has one label, that of
   * its first token, of the mean of its tokens' probabilities, or of its most certain token. `stride`: a text that is too long goes in windows that
   * have so many tokens in common; of overlapping entities the longest counts, then the most certain. Without it a long text is cut. `ignoreLabels`,
   * default `['O']`
   * @returns for each text its entities, in their order
   * @example
   * ```ts
   * import type { TextModel } from 'attn';
   *
   * // The text with each entity's label behind it.
   * async function mark(model: TextModel, text: string) {
   *   const [entities] = await model.classifyTokens(text, { aggregation: 'first', stride: 16 });
   *   return entities.reduceRight((all, { label, end }) => `${all.slice(0, end)} [${label}]${all.slice(end)}`, text);
   * }
   * ```
   * @throws AttnError `UNSUPPORTED` for a checkpoint whose head is for something else; `CONFIG` for a stride that leaves no room, or with `'none'`; those
   *   of `tokenize` and `forward`; `ABORTED`
   */
  classifyTokens(
    texts: string | readonly string[],
    options?: TokenizeOptions &
      BatchOptions & {
        aggregation?: 'none' | 'simple' | 'first' | 'average' | 'max' | undefined;
        stride?: number | undefined;
        ignoreLabels?: readonly string[] | undefined;
      },
  ): Promise<Entity[][]>;

  /**
   * For each mask of the text (`maskToken`: `[MASK]`, `<mask>`) its most likely tokens, as transformers' FillMaskPipeline.
   *
   * @param texts one text, or several for a list of results
   * @param options besides {@link BatchOptions}: `topK`: how many, default 5. `targets`: of these tokens alone; of a text that is no token its first
   *   one, as in transformers
   * @throws AttnError `ARGUMENT` for a text without a mask, and for a target that begins with nothing that the vocabulary has; `OUT_OF_RANGE` for a text
   *   that is too long; `UNSUPPORTED` for a checkpoint whose head is for something else; `ABORTED`
   */
  fillMask(texts: string, options?: FillMaskOptions): Promise<FilledMask[][]>;
  fillMask(texts: readonly string[], options?: FillMaskOptions): Promise<FilledMask[][][]>;

  /**
   * Parts of the context that answer the question, the most likely first, as transformers' QuestionAnsweringPipeline (version 4): of whole words.
   *
   * @param question one, or several for a list of results
   * @param context one, for each question, or as many as there are questions
   * @param options besides {@link BatchOptions}: `topK`: how many, default 1; there may be fewer. `maxAnswerLength`: tokens of an answer, default 15.
   * A context that is too long goes in windows of `maxLength` tokens, question included, default 384 or what the model takes, with `stride` of them in
   * common, default 128, of shorter windows half. `allowEmpty`, default false: that there is no answer is one, too, its text is empty
   * @throws AttnError `ARGUMENT` for an empty question or context; `OUT_OF_RANGE` for a question that leaves no room; `CONFIG` for a stride that leaves
   *   none; `UNSUPPORTED` for a checkpoint whose head is for something else; `ABORTED`
   */
  answer(question: string, context: string, options?: AnswerOptions): Promise<Answer[]>;
  answer(question: string | readonly string[], context: string | readonly string[], options?: AnswerOptions): Promise<Answer[][]>;

  /**
   * Documents by falling relevance to the query, by a cross-encoder: a head with one label, through the activation that its files name, else a sigmoid
   * (sentence-transformers' CrossEncoder.rank). The default prompt of config_sentence_transformers.json goes before the query.
   *
   * @param options besides {@link TokenizeOptions} and {@link BatchOptions}: `topK`, default all of them. `prompt` or `promptName` goes before the query
   * @throws AttnError `UNSUPPORTED` for another head; `CONFIG` for a prompt that is not there; those of `tokenize` and `forward`; `ABORTED`
   */
  rank(
    query: string,
    documents: readonly string[],
    options?: TokenizeOptions & BatchOptions & PromptOptions & { topK?: number | undefined },
  ): Promise<RankedDocument[]>;
}
