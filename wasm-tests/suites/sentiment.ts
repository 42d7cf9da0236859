/** Tests the bundled sentiment model on held-out texts: its answers and its accuracy. */
import { assert } from 'chai';
import { host, loadHere, takesLong, url } from '../support/host.ts';

interface Judged {
  /** Over all texts, by PyTorch. */
  readonly accuracy: number;
  readonly texts: readonly { readonly text: string; readonly label: 0 | 1; readonly positive: number }[];
}

/** Number of texts, least accuracy, and the sampling interval if all texts would take too long. */
const files = [
  { name: 'films', count: 2118, least: 0.78, some: takesLong ? 1 : 20 },
  { name: 'negations', count: 200, least: 0.7, some: 1 },
  { name: 'products', count: 3610, least: 0.68, some: host.engine === 'node' ? 1 : 20 },
];
const checked = host.build === 'release' ? 1 : 40;

describe('the sentiment model', () => {
  for (const { name, count, least, some } of files)
    it(`${name}: the same answer as PyTorch for every text, and the accuracy`, async () => {
      const { accuracy, texts } = (await (await fetch(url(`testdata/sentiment/${name}.json`))).json()) as Judged;
      assert.lengthOf(texts, count);
      const attn = await loadHere();
      const model = await attn.loadModel(url('testdata/models/sentiment'), { cache: 'none' });
      assert.deepEqual(model.labels, ['negative', 'positive']);
      const step = Math.max(some, checked);
      const asked = texts.filter((_, i) => i % step === 0);
      const answers = await model.classify(asked.map(({ text }) => text));
      let right = 0;
      for (const [i, answer] of answers.entries()) {
        const { text, label, positive } = asked[i];
        const score = answer.find((each) => each.label === 'positive')!.score;
        assert.approximately(score, positive, 2e-5, text);
        // No score is so close to one half that rounding decides.
        assert.equal(answer[0].label, positive > 0.5 ? 'positive' : 'negative', text);
        if ((answer[0].label === 'positive') === (label === 1)) right++;
      }
      if (step === 1) {
        assert.equal(right / texts.length, accuracy);
        assert.isAtLeast(accuracy, least);
      }
      attn.dispose();
    });
});
