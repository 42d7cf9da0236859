/**
 * Checks that int8 models give the same vectors, attentions and scores as on every other machine.
 * testdata/models/all-MiniLM-L6-v2.int8.txt has the hashes; native-tests/models/int8_test.cpp checks the same.
 */
import type { Attn, TextModel } from 'attn';
import { assert } from 'chai';
import { Hash } from '../support/digest_draw.ts';
import { loadCheckpoint } from '../support/model_cases.ts';
import { bytes, host, loadHere, takesLong, url } from '../support/host.ts';

const describeLong = takesLong ? describe : () => undefined;

const textOf = async (path: string) => new TextDecoder().decode(await bytes(path));

interface Film {
  readonly text: string;
  readonly label: number;
}

const films = async () => JSON.parse(await textOf('testdata/sentiment/films.json')) as { accuracy: number; texts: Film[] };

/**
 * Returns 1000 texts of 3 to 256 tokens: film reviews; every 20th is shortened to one or two words, every 20th is
 * twelve reviews in one.
 */
async function digestTexts(): Promise<string[]> {
  const { texts } = await films();
  return Array.from({ length: 1000 }, (_, i) => {
    if (i % 20 === 0)
      return texts[i].text
        .split(' ')
        .slice(0, i % 40 === 0 ? 1 : 2)
        .join(' ');
    return texts
      .slice(i, i % 20 === 19 ? i + 12 : i + 1)
      .map(({ text }) => text)
      .join(' ');
  });
}

function hashOf(...parts: readonly Float32Array[]): string {
  const hash = new Hash();
  for (const data of parts) hash.add({ data, dims: [data.length] });
  return hash.text();
}

describe('int8 models', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  describeLong('all-MiniLM-L6-v2', () => {
    let model: TextModel | undefined;
    let texts: string[] = [];
    let expected: string[] = [];
    before(async () => {
      const address = url('models/all-MiniLM-L6-v2/config.json');
      if (!(await fetch(address)).ok) return void host.note('all-MiniLM-L6-v2 is not in models/: tools/setup fetches it');
      model = await attn.loadModel(new URL('.', address), { cache: 'none', weights: 'int8' });
      texts = await digestTexts();
      expected = (await textOf('testdata/models/all-MiniLM-L6-v2.int8.txt')).trim().split('\n');
      assert.lengthOf(expected, 1050);
    });
    after(() => model?.dispose());

    const check = (got: readonly string[], from: number) =>
      assert.isEmpty(
        got.flatMap((line, i) => (line === expected[from + i] ? [] : [from + i])),
        'bits that differ from other machines',
      );
    async function checkVectors(from: number, count: number, batchSize?: number): Promise<void> {
      const { data, dims } = await model!.embed(texts.slice(from, from + count), { batchSize });
      check(
        Array.from({ length: count }, (_, i) => hashOf(data.subarray(i * dims[1], (i + 1) * dims[1]))),
        from,
      );
    }

    // Few enough that a slow browser still reports progress.
    for (let from = 0; from < 1000; from += 100)
      it(`vectors of the texts ${from} to ${from + 99}`, async () => {
        if (model) await checkVectors(from, 100);
      });

    it('vectors in batches of any size', async () => {
      if (!model) return;
      assert.equal(model.tokenize(texts[0]).dims[1], 3);
      assert.equal(model.tokenize(texts[19]).dims[1], 256);
      // The native tests cover every size from 1 to 32.
      for (const batchSize of [1, 2, 3, 5, 7, 16, 31, 32]) await checkVectors(0, 32, batchSize);
    });

    it('attentions', () => {
      if (!model) return;
      check(
        texts
          .slice(0, 50)
          .map((text) => hashOf(...model!.forward(model!.tokenize(text), { outputAttentions: true }).attentions!.map(({ data }) => data))),
        1000,
      );
      host.note(`int8: ${attn.info.notes.at(-1)}; 1000 vectors and the attentions of 50 texts are those of every machine`);
    });
  });

  it('the sentiment model gives the same scores as on every machine, and is right as often as in float32', async () => {
    const model = await loadCheckpoint(attn, 'sentiment', 'int8');
    const { accuracy, texts } = await films();
    const scores = await model.classify(texts.map(({ text }) => text));
    const right = scores.filter(([{ label }], i) => (label === model.labels![1]) === (texts[i].label === 1)).length;
    assert.closeTo(right / texts.length, accuracy, 0.003);
    assert.equal(hashOf(...scores.map(([a, b]) => Float32Array.of(a.score, b.score))), 'c54dc7b1');
    model.dispose();
  });
});
