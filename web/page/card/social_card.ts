/** The picture for links to the page: its first map, computed when the page is built. */
import { fileURLToPath } from 'node:url';
import { load } from 'attn';
import { paint } from '../src/draw/palette.ts';
import { initialView } from '../src/state/view.ts';
import { Canvas, type Colour } from './canvas.ts';
import { widthOf } from './stroke_font.ts';

/** Sizes that the platforms recommend. */
export const cardWidth = 1200;
export const cardHeight = 630;

const paper: Colour = [15, 18, 24];
const ink: Colour = [232, 235, 241];
const muted: Colour = [165, 174, 189];
const query: Colour = [146, 180, 255];
const key: Colour = [255, 179, 125];

export interface AttentionMap {
  readonly tokens: readonly string[];
  /** (L,L) */
  readonly weights: Float32Array;
  readonly layer: number;
  readonly head: number;
}

export async function firstMap(): Promise<AttentionMap> {
  const attn = await load();
  try {
    const model = await attn.loadModel(fileURLToPath(new URL('../../../testdata/models/sentiment', import.meta.url)));
    const { text, layer, head } = initialView;
    const inputs = model.tokenize(text);
    const tokens = inputs.tokens[0]!;
    const { data } = model.forward(inputs, { outputAttentions: true }).attentions![layer]!;
    const cells = tokens.length ** 2;
    return { tokens, weights: Float32Array.from(data.subarray(head * cells, (head + 1) * cells)), layer, head };
  } finally {
    attn.dispose();
  }
}

const labelSize = 17;
const margin = 48;

/** Position and size of the cells. */
export function gridOf({ tokens }: Pick<AttentionMap, 'tokens'>): { readonly cell: number; readonly left: number; readonly top: number } {
  const labels = Math.ceil(Math.max(...tokens.map((token) => widthOf(token, labelSize)))) + 12;
  const cell = Math.floor((cardHeight - 2 * margin - labels) / tokens.length);
  const side = cell * tokens.length;
  return { cell, left: cardWidth - margin - side, top: margin + labels + Math.floor((cardHeight - 2 * margin - labels - side) / 2) };
}

export function drawCard(map: AttentionMap): Canvas {
  const { tokens, weights, layer, head } = map;
  const { cell, left, top } = gridOf(map);
  const canvas = new Canvas(cardWidth, cardHeight, paper);
  const largest = Math.max(...weights);
  const rgba = new Uint8ClampedArray(4);
  weights.forEach((weight, at) => {
    const [row, column] = [Math.floor(at / tokens.length), at % tokens.length];
    paint(rgba, 0, weight / largest);
    canvas.fill(left + column * cell, top + row * cell, cell - 2, cell - 2, [rgba[0]!, rgba[1]!, rgba[2]!]);
  });
  tokens.forEach((token, i) => {
    const middle = (i + 0.5) * cell + labelSize / 2 - 1;
    canvas.text(token, left - 12, top + middle, { size: labelSize, colour: query, anchor: 'end' });
    canvas.text(token, left + middle, top - 12, { size: labelSize, colour: key, upwards: true });
  });
  canvas.text('attn', margin, 150, { size: 84, colour: ink });
  ['Which words', 'look at which?'].forEach((line, i) => canvas.text(line, margin, 240 + 52 * i, { size: 32, colour: ink }));
  ['Every number of a Transformer’s', 'attention, on your own sentence,', 'in your browser.'].forEach((line, i) =>
    canvas.text(line, margin, 366 + 36 * i, { size: 18, colour: muted }),
  );
  canvas.text(`Layer ${layer + 1}, head ${head + 1}`, margin, cardHeight - margin, { size: 16, colour: muted });
  return canvas;
}
