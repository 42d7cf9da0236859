/** What is known of the model in the page before it is there, so that the page has its shape from the beginning. */
import { id2label, num_attention_heads, num_hidden_layers } from '../../../../testdata/models/sentiment/config.json';

export const bundled = { layers: num_hidden_layers, heads: num_attention_heads, labels: Object.values(id2label) } as const;

/** Of texts that it never saw so many in a hundred are judged rightly; the rest of its card is testdata/models/sentiment/README.md. */
export const rightOf100 = { films: 80, negations: 73, products: 72 } as const;
