/** Facts about the built-in model, known before it loads so that the layout does not shift. */
import { id2label, num_attention_heads, num_hidden_layers } from '../../../../testdata/models/sentiment/config.json';

export const bundled = { layers: num_hidden_layers, heads: num_attention_heads, labels: Object.values(id2label) } as const;

/** Accuracy in percent on unseen texts; source: testdata/models/sentiment/README.md. */
export const rightOf100 = { films: 80, negations: 73, products: 72 } as const;
