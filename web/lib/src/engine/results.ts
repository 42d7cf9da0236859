/** Converts a call's result to the kind that its signature names. */
import type { Module, Tensor } from '../attn.js';
import type { Result } from './heap.js';
import type { Signature } from '../args/signature.js';
import { encoderTraceNames } from './trace_names.js';

type TraceRecord = Record<string, Tensor>;

function assemble({ entries, traced }: Result, byLayer: boolean): object {
  const all: Record<string, Tensor | Tensor[] | Record<string, Tensor> | Map<number, TraceRecord>> = {};
  const traces = new Map<number, TraceRecord>();
  for (const { field, layer, name, tensor } of entries)
    if (field === 'trace') {
      let trace = traces.get(layer);
      if (!trace) traces.set(layer, (trace = {}));
      trace[encoderTraceNames[name as number]!] = tensor;
    } else if (field === 'attentions' || field === 'hiddenStates') ((all[field] ??= []) as Tensor[])[layer] = tensor;
    else if (field === 'presentKey') all['present'] = { key: tensor };
    else if (field === 'presentValue') (all['present'] as Record<string, Tensor>)['value'] = tensor;
    else all[field === 'named' ? (name as string) : field] = tensor;
  if (traced) all['trace'] = byLayer ? traces : (traces.get(-1) ?? {});
  return all;
}

function traceOf({ entries }: Result): TraceRecord {
  return Object.fromEntries(entries.map(({ name, tensor }) => [encoderTraceNames[name as number]!, tensor]));
}

/** An int8 tensor is followed by the scales of its rows. */
function int8Tensors({ entries }: Result): ReturnType<Module['int8StateDict']> {
  const all: ReturnType<Module['int8StateDict']> = new Map();
  for (const { name, tensor } of entries) {
    const before = all.get(name as string);
    all.set(name as string, before ? { data: before.data as unknown as Int8Array, scale: tensor.data, dims: before.dims } : tensor);
  }
  return all;
}

/** Pairs of id and similarity, 32 bits each. */
function neighbours({ data }: Tensor): { id: number; similarity: number }[] {
  const ids = new Int32Array(data.buffer);
  return Array.from({ length: data.length / 2 }, (_, i) => ({ id: ids[2 * i]!, similarity: data[2 * i + 1]! }));
}

export function toPublic(kind: Signature['result'], result: Result): unknown {
  const { entries } = result;
  switch (kind) {
    case 'none':
      return undefined;
    case 'number':
    case 'property':
      return result.number;
    case 'tensor':
      return entries[0]!.tensor;
    case 'tensors':
      return new Map(entries.map(({ name, tensor }) => [name, tensor]));
    case 'int8_tensors':
      return int8Tensors(result);
    case 'shapes':
      return new Map(entries.map(({ name, tensor }) => [name, tensor.dims]));
    case 'neighbours':
      return neighbours(entries[0]!.tensor);
    case 'quantized': {
      const [words, scales] = entries.map(({ tensor }) => tensor.data);
      return { bytes: new Uint8Array(words!.buffer), scales: scales! };
    }
    case 'loss':
      return { loss: result.number, gradient: entries[0]!.tensor };
    case 'attention':
    case 'gradients':
      return assemble(result, false);
    case 'encoder':
      return assemble(result, true);
    case 'text_model': {
      const { output: lastHiddenState, ...others } = assemble(result, true) as Record<string, unknown>;
      return { lastHiddenState, ...others };
    }
    case 'raw':
      return result;
    case 'trace':
      return traceOf(result);
    case 'about': {
      const [json, ...texts] = entries.map(({ name }) => name as string);
      const { classes, ...facts } = JSON.parse(json!) as { classes: number };
      const labels = texts.splice(0, classes);
      const [notes, defaultPrompt, ...others] = texts;
      const pairs = others.flatMap((name, i) => (i % 2 === 0 ? [[name, others[i + 1]!] as const] : []));
      const prompts = Object.freeze(Object.fromEntries(pairs));
      return { ...facts, ...(classes > 0 && { labels }), notes: Object.freeze(notes!.split('\n').filter(Boolean)), defaultPrompt, prompts };
    }
  }
}
