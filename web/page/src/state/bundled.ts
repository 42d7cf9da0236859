/** What is known of the model in the page before it is there, so that the page has its shape from the beginning. */
import { id2label, num_attention_heads, num_hidden_layers } from '../../../../testdata/models/sentiment/config.json';

export const bundled = { layers: num_hidden_layers, heads: num_attention_heads, labels: Object.values(id2label) } as const;
