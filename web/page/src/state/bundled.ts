/** Facts about the opening models, known before one is loaded so that the layout does not shift. */
import * as masks from '../../../../testdata/models/masks/config.json';
import * as sentiment from '../../../../testdata/models/sentiment/config.json';
import { openingModel } from '../model/known.ts';
import { view } from './view.ts';

const configs = { masks, sentiment };
const sizeOf = (id: keyof typeof configs) => ({ layers: configs[id].num_hidden_layers, heads: configs[id].num_attention_heads });

export const opening = (): { readonly layers: number; readonly heads: number } => sizeOf(openingModel(view.value.model));

export const sentimentLabels = Object.values(sentiment.id2label);

/** Accuracy in percent on unseen texts; source: testdata/models/sentiment/README.md. */
export const rightOf100 = { films: 80, negations: 73, products: 72 } as const;
