import { whole } from '../args/signature.js';
import type { LensModel, LensText, LogitLens, LogitLensOptions, LogitLensPrediction } from '../lens.js';
import { fail } from '../args/error.js';
import { largest } from '../tasks/largest.js';
import { type AnyModel, breaks, Decoder, eachRowOfLogits, readIndices, readModel, readOptions, readTokens } from './model.js';

async function predictions(logits: Float32Array, topK: number, tokenOf: (id: number) => Promise<string>): Promise<LogitLensPrediction[]> {
  const best = largest(logits, topK);
  const most = logits[best[0]!]!;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - most);
  const result: LogitLensPrediction[] = [];
  for (const id of best) result.push({ id, token: await tokenOf(id), logit: logits[id]!, probability: Math.exp(logits[id]! - most) / sum });
  return result;
}

/** The final norm of a decoder; the heads of post-norm encoders take hidden states as they are. */
async function normOf(op: string, model: AnyModel): Promise<((row: Float32Array) => ArrayLike<number>) | undefined> {
  const task = await model.task;
  if (task === 'fill-mask') {
    const names = [...(await model.parameterShapes()).keys()];
    if (names.some((name) => name.endsWith('final_norm.weight')))
      fail('UNSUPPORTED', op, 'model', 'is a pre-norm encoder', 'a decoder or a post-norm encoder');
    return undefined;
  }
  const decoder = await Decoder.of(op, model);
  return (row) => decoder.finalNorm(row).values;
}

export async function logitLens(model: LensModel, text: LensText, options?: LogitLensOptions): Promise<LogitLens> {
  const op = 'logitLens';
  const any = readModel(op, model);
  const { values, signal } = readOptions(op, options, ['layers', 'positions', 'topK']);
  const topK = values['topK'] === undefined ? 5 : whole(op, 'topK', values['topK'], 1, 2 ** 31 - 1);
  const { inputs, ids, tokens } = await readTokens(op, any, text);
  const norm = await normOf(op, any);
  const positions = readIndices(op, 'positions', values['positions'], ids.length);
  const pause = breaks(op, signal);
  await pause();
  const { hiddenStates } = await any.forward(inputs, { outputHiddenStates: true, outputLogits: false });
  const last = hiddenStates!.length - 1;
  const layers = readIndices(op, 'layers', values['layers'], last + 1);

  const known = new Map<number, string>();
  const tokenOf = async (id: number) => {
    if (!known.has(id)) known.set(id, (await any.idToToken(id)) ?? '');
    return known.get(id)!;
  };
  const width = hiddenStates![0]!.dims[2]!;
  const result: LogitLensPrediction[][][] = [];
  for (const layer of layers) {
    const rows = new Float32Array(positions.length * width);
    positions.forEach((position, i) => {
      const row = hiddenStates![layer]!.data.subarray(position * width, (position + 1) * width);
      // The last hidden state is after the norm.
      rows.set(norm && layer < last ? norm(row) : row, i * width);
    });
    const list: LogitLensPrediction[][] = [];
    await eachRowOfLogits(op, any, rows, width, async (logits) => {
      await pause();
      list.push(await predictions(logits, topK, tokenOf));
    });
    result.push(list);
  }
  return { tokens, layers, positions, predictions: result };
}
