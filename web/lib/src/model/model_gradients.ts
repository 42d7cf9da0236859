import type { Encoding, TextModelGradients, TextModelOutput } from '../attn.js';
import { elements } from '../args/arrays.js';
import { describe, fail, reading } from '../args/error.js';
import type { Result } from '../engine/heap.js';
import { toPublic } from '../engine/results.js';
import { readEncoded } from '../args/model_options.js';
import { choice, readMembers } from '../args/signature.js';
import { encodeOptionsOf, type ModelAccess } from './batches.js';
import { type ModelFacts, type ModelState, signatureOf } from './model_state.js';

const wrtNames = ['embeddings', 'parameters', 'attentions'] as const;

function namesOf({ task, labels }: ModelFacts): readonly string[] | undefined {
  return task === 'question-answering' ? ['start', 'end'] : labels;
}

/** Index of a label. C++ checks the range. */
export function numberOf(op: string, argument: string, labels: readonly string[] | undefined, value: unknown): number {
  if (typeof value === 'string') {
    const index = labels?.indexOf(value) ?? -1;
    if (index < 0) fail('OUT_OF_RANGE', op, argument, `is ${JSON.stringify(value)}`, labels ? `one of ${labels.join(', ')}` : 'a number');
    return index;
  }
  if (!Number.isSafeInteger(value)) fail('ARGUMENT', op, argument, describe(value), 'a whole number or the name of a label');
  return value as number;
}

/** Index of a label, or the id of a token that the head predicts. */
export function outputOf(op: string, { about, tokenizer }: ModelState, value: unknown, argument = 'target.label'): number | undefined {
  if (value === undefined) return undefined;
  if ((about.task !== 'fill-mask' && about.task !== 'text-generation') || typeof value !== 'string')
    return numberOf(op, argument, namesOf(about), value);
  // The tokenizers of Llama 2 and Mistral put a space in front of a text, so ' Paris' would be two tokens.
  const id = tokenizer.tokenToId(value) ?? (value.startsWith(' ') ? tokenizer.tokenToId(`▁${value.slice(1)}`) : undefined);
  if (id !== undefined) return id;
  const { inputIds } = tokenizer.encode([value], encodeOptionsOf(op, about, { addSpecialTokens: false }));
  if (inputIds.length === 1) return inputIds[0]!;
  fail('OUT_OF_RANGE', op, argument, `is ${JSON.stringify(value)}, which has ${inputIds.length} tokens`, 'a text that is a single token');
}

export function gradients({ find }: ModelAccess, inputs: Encoding, options: unknown): TextModelGradients {
  const op = 'gradients';
  const { target, wrt, trace } = reading(op, 'options', () => {
    const [given, names = [], trace] = readMembers(op, 'options', options, ['target', 'wrt', 'trace']);
    const members = ['label', 'component', 'row', 'token', 'contrast'];
    const [label, component, row, token, contrast] = readMembers(op, 'target', given, members, 'target.');
    if (!Array.isArray(names)) fail('ARGUMENT', op, 'wrt', describe(names), `an Array of ${wrtNames.join(', ')}`);
    const asked = elements(names as unknown[], (name, i) => wrtNames[choice(op, `wrt[${i}]`, name, wrtNames)]!);
    return {
      target: { label: outputOf(op, find(), label), component, row, token, contrast: outputOf(op, find(), contrast, 'target.contrast') },
      wrt: Object.fromEntries(asked.map((name) => [name, true])),
      trace,
    };
  });
  const { context, handle } = find();
  context.engine.assertUsable(op);
  const signature = signatureOf(context.engine, op);
  const leaves = readEncoded(op, signature, inputs, { target, wrt, trace });
  find();
  const result = context.engine.call(op, signature, leaves, handle) as Result;
  const { number, entries, traced } = result;
  const of = (which: string) => entries.filter(({ field }) => field === which);
  return {
    value: number,
    ...(wrt['embeddings'] && { embeddings: of('output')[0]!.tensor }),
    ...(wrt['attentions'] && { attentions: of('attentions').map(({ tensor }) => tensor) }),
    ...(wrt['parameters'] && { parameters: new Map(of('named').map(({ name, tensor }) => [name as string, tensor])) }),
    ...(traced && { trace: (toPublic('text_model', result) as TextModelOutput).trace! }),
  };
}
