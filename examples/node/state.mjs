// Writes randomly initialised weights to a safetensors file and reads them back bit for bit.
import { load } from 'attn';

const attn = await load();
const options = { dModel: 8, nhead: 2, dimFeedforward: 16, numLayers: 2 };
const [encoder, other] = [new attn.TransformerEncoder(options), new attn.TransformerEncoder(options)];
encoder.initialize({ scheme: 'xavier_uniform', seed: 42 });
console.log(`${encoder.parameterCount} parameters in ${encoder.parameterShapes().size} tensors`);
for (const [name, dims] of encoder.parameterShapes()) if (name.startsWith('layers.0.self_attn')) console.log(`${name} (${dims})`);

const state = encoder.stateDict();
console.log('layers.0.linear1.weight begins with', state.get('layers.0.linear1.weight').data[0].toFixed(4));
const file = attn.writeSafetensors(state, { made_by: 'an example' });
console.log(`${file.length} bytes`);
other.loadStateDict(attn.parseSafetensors(file));

const x = new attn.Embedding({ numEmbeddings: 50, embeddingDim: 8 }).forward([12, 7, 41, 3]);
const [a, b] = [encoder.forward(x).output.data, other.forward(x).output.data];
console.log('the same output:', a.every((value, i) => value === b[i]) ? 'yes' : 'no');

// A state that does not match is refused as a whole, and the error lists every mismatch.
const wrong = new Map(state);
wrong.delete('layers.0.norm1.bias');
wrong.set('layers.1.norm2.weight', { data: new Float32Array(9), dims: [9] });
try {
  other.loadStateDict(wrong);
} catch (error) {
  console.log(error.code + error.message.slice(error.message.indexOf(':'))); // without the function's name
}
attn.dispose();
