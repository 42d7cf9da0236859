/**
 * Hashes forwards of the checkpoints of testdata/models, like native-tests/digest/models.cpp. Change both together. Ids
 * come from the golden files, so tokenizers are not involved.
 */
import type { Attn, Encoding, Tensor, TextModel } from 'attn';
import { Hash } from './digest_draw.ts';
import { checkpoints, loadCheckpoint, readModelGolden } from './model_cases.ts';

function hashOf(model: TextModel, inputs: Encoding): string {
  const output = model.forward(inputs, { outputAttentions: true, outputHiddenStates: true });
  const hash = new Hash();
  hash.add(output.lastHiddenState);
  for (const state of output.hiddenStates!) hash.add(state);
  for (const weights of output.attentions!) hash.add(weights);
  if (output.logits) hash.add(output.logits);
  output.attentions!.forEach((_, layer) => {
    for (const tensor of Object.values<Tensor>(model.traceLayer(inputs, layer))) hash.add(tensor);
  });
  return hash.text();
}

/** Returns "hash checkpoint/case" of one forward each, over all of its results. */
export async function modelLines(attn: Attn, weights: 'float32' | 'int8'): Promise<string[]> {
  const lines: string[] = [];
  for (const name of checkpoints) {
    const model = await loadCheckpoint(attn, name, weights);
    const { tensors } = await readModelGolden(attn, name);
    for (const key of [...tensors.keys()].filter((each) => each.endsWith('/input_ids')).sort()) {
      const which = key.slice(0, -'/input_ids'.length);
      const { data, dims } = tensors.get(key)!;
      const inputs: Encoding = {
        inputIds: Int32Array.from(data),
        attentionMask: Uint8Array.from(tensors.get(`${which}/attention_mask`)!.data),
        tokenTypeIds: Int32Array.from(tensors.get(`${which}/token_type_ids`)?.data ?? new Int32Array(data.length)),
        dims,
        truncated: [],
        tokens: [],
        offsets: [],
      };
      lines.push(`${hashOf(model, inputs)} ${name}/${which}`);
    }
    model.dispose();
  }
  return lines;
}
