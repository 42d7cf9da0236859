// Token-by-token decoding: each call computes one row and reuses the keys and values of the previous call.
import { load } from 'attn';

const attn = await load();
const words = new attn.Embedding({ numEmbeddings: 50, embeddingDim: 16 }); // drawn from N(0,1), seed 0
const layer = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4, numKeyValueHeads: 2, rotary: {} });
const options = { isCausal: true, outputPresent: true };
/** Returns the token whose vector is nearest to the last row of (L,E). */
const next = ({ data }) => words.nearest(data.slice(-16), 1)[0].id;

const tokens = [12, 7, 40];
let { output, present } = layer.forward(words.forward(tokens), undefined, undefined, options); // the prompt in one call
while (tokens.length < 9) {
  tokens.push(next(output));
  const row = words.forward(tokens.slice(-1)); // (1,E)
  ({ output, present } = layer.forward(row, undefined, undefined, { ...options, past: present }));
}
console.log('tokens:', tokens.join(' '));
console.log(`keys kept: (${present.key.dims}), values (${present.value.dims})`); // by head, after rotation

const whole = layer.forward(words.forward(tokens), undefined, undefined, options);
const same = (a, b) => (a.every((value, i) => value === b[i]) ? 'yes' : 'no');
console.log('the last row as if all had been computed at once:', same(output.data, whole.output.data.slice(-16)));
console.log('the keys, too:', same(present.key.data, whole.present.key.data));

// A further row with a window of itself and the 2 rows before it.
const more = words.forward([3]);
const { weights } = layer.forward(more, undefined, undefined, { window: [2, 0], past: present, needWeights: true });
console.log('weights of head 0 with a window:', Array.from(weights.data.slice(0, 10), (weight) => weight.toFixed(3)).join(' '));
