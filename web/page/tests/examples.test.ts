import { readFileSync } from 'node:fs';
import type { Attn as Direct, TextModel } from 'attn';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examples } from '../src/state/examples.ts';
import type { LoadedModel } from '../src/model/loaded.ts';
import { inTestdata, loadDirect, openModel } from './models.ts';

const again = 'run node tools/page/find_examples.mjs';

describe('examples', () => {
  let direct: Direct;
  let of: LoadedModel;
  let text: TextModel;
  beforeAll(async () => {
    ({ direct } = await loadDirect());
    of = await openModel(direct, 'sentiment');
    text = of.text as unknown as TextModel;
  });
  afterAll(() => direct?.dispose());

  const films = JSON.parse(readFileSync(inTestdata('sentiment/films.json'), 'utf8')).texts as readonly {
    readonly text: string;
    readonly label: number;
  }[];
  const answer = (sentence: string, off?: number) => {
    const data = Float32Array.from({ length: of.layers * of.heads }, (_, head) => Number(head !== off));
    return direct.softmax(text.forward(text.tokenize(sentence), { headMask: { data, dims: [of.layers, of.heads] } }).logits!).data;
  };

  it.each(examples.filter(({ breaks }) => breaks))(
    '$text is classified correctly, and incorrectly with its head switched off',
    ({ text: sentence, layer, head }) => {
      const { label } = films.find((film) => film.text === sentence)!;
      expect(answer(sentence)[label], again).toBeGreaterThan(0.5);
      expect(answer(sentence, layer * of.heads + head)[label], again).toBeLessThan(0.5);
    },
  );

  // The first example is only the initial view.
  it.each(examples.slice(1).filter(({ breaks }) => !breaks))(
    '$text refers to the head with the largest weight in its cell',
    ({ text: sentence, pair, layer, head, row, column }) => {
      const inputs = text.tokenize(pair === undefined ? sentence : [[sentence, pair]]);
      const length = inputs.tokens[0]!.length;
      const { attentions } = text.forward(inputs, { outputAttentions: true });
      const at = (l: number, h: number) => attentions![l]!.data[(h * length + row) * length + column]!;
      const all = Array.from({ length: of.layers * of.heads }, (_, i) => at(Math.floor(i / of.heads), i % of.heads));
      expect(at(layer, head), again).toBe(Math.max(...all));
    },
  );

  it('refer to existing cells, and some depend on a single head', () => {
    expect(examples.some(({ breaks }) => breaks)).toBe(true);
    for (const { text: sentence, pair, layer, head, row, column } of examples) {
      const length = text.tokenize(pair === undefined ? sentence : [[sentence, pair]]).tokens[0]!.length;
      expect([layer < of.layers, head < of.heads, row < length, column < length], sentence).toEqual([true, true, true, true]);
    }
  });
});
