/** Facts about the opening models, known before one is loaded so that the layout does not shift. */
import { num_attention_heads as maskHeads, num_hidden_layers as maskLayers } from '../../../../testdata/models/masks/config.json';
import { num_attention_heads as heads, num_hidden_layers as layers } from '../../../../testdata/models/sentiment/config.json';
import { openingModel } from '../model/known.ts';
import { view } from './view.ts';

const sizes = { masks: { layers: maskLayers, heads: maskHeads }, sentiment: { layers, heads } };

export const opening = (): { readonly layers: number; readonly heads: number } => sizes[openingModel(view.value.model)];

/** Accuracy in percent on unseen texts; source: testdata/models/sentiment/README.md. */
export const rightOf100 = { films: 80, negations: 73, products: 72 } as const;
