/** Compares the attention map and the classifier's answer with the package's numbers. */
import { strict as assert } from 'node:assert';
import { assertNear, ofHead } from './page.mjs';

export const weightsOf = ({ attentions }, layer, head) => ofHead(attentions[layer], head);
/** The initially selected head. */
export const [layer, head] = [1, 3];

/** Checks the table and headers of the head in focus. */
export async function assertMap(page, expected, labels) {
  const table = await page.numbers('Attention weights', expected);
  assert.deepEqual([table.rows, table.columns], [labels, labels], 'row and column headers');
}

/** Probabilities in the bar, as ["positive", "68.1", "70.0"]: with changes, and without if shown. */
const answers = async (page) =>
  (await page.texts('list', "The classifier's answer")).map(
    (text) => /^(\D+)(\d+\.\d) %(?: was (\d+\.\d) %)?$/.exec(text)?.slice(1) ?? assert.fail(text),
  );

export async function assertAnswer(page, now, before) {
  const check = async () => {
    const found = await answers(page);
    assert.deepEqual(
      found.map(([label]) => label),
      Object.keys(now),
      'in the order of the labels, whichever is the larger',
    );
    for (const [label, written, was] of found) {
      assertNear(written, now[label], label, 0.01);
      if (before) assertNear(was ?? '', before[label], `${label} before`, 0.01);
      else assert.equal(was, undefined);
    }
  };
  await page.eventually(check);
}
