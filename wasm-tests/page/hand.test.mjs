import { strict as assert } from 'node:assert';
import { pageTest } from './fixture.mjs';

const step = async (page, title) => {
  await page.evaluate(
    (name) =>
      Array.from(document.querySelectorAll('#example .step-list button'))
        .find((each) => each.textContent.includes(name))
        .click(),
    title,
  );
  await page.until(({ text }, name) => text('#example h3').includes(name), title, title);
};

pageTest('by hand, a number that does not fit a float32 raises an alert, and the steps keep the number before', async ({ page }) => {
  await page.openFresh();
  // Typed key by key, 1e4 is a number on the way.
  await page.fill('X, cats, number 1', '1e40', '#example');
  assert.match(
    await page.says(/./, 'alert', undefined, '#example'),
    /^X, cats, number 1: A float32 has at most 3\.4e38\. The steps go on with 1(0000)?\.$/,
  );
  assert.equal(await page.tool(({ find }) => find('spinbutton', 'X, cats, number 1').getAttribute('aria-invalid')), 'true');
  await page.fill('X, cats, number 1', '2', '#example');
  await page.lacks('alert', undefined, '#example');
  await step(page, 'Each word gets a query');
  await page.until(({ table }) => table('Q = X·Wq', '#example').cells[0].join() === '2,0,3', 'Q of the new number');
});

pageTest('by hand, softmax shows its working and plain decimals, and an unscaled score says so', async ({ page }) => {
  await page.openFresh();
  await step(page, 'Scale');
  await page.until(({ text }) => /the products stay as they are/.test(text('#example')), 'the word');
  await step(page, 'Softmax');
  const cells = await page.until(
    ({ find, text }) => Array.from(find('table', 'Shares', '#example').querySelectorAll('td:not(.total)'), text),
    'the shares',
  );
  // Scores of the article: 2, 4, 4 and 4, 16, 12 and 4, 12, 10.
  const rows = [
    [2, 4, 4],
    [4, 16, 12],
    [4, 12, 10],
  ];
  const expected = rows.flatMap((row) => {
    const sum = row.reduce((all, score) => all + Math.exp(score), 0);
    return row.map((score) => [(Math.exp(score) / sum).toFixed(6), Number(Math.exp(score).toPrecision(4)), Number(sum.toPrecision(4))]);
  });
  const shown = cells.map((cell) => /^(\d\.\d{6}) ?(\S+) \/ (\S+)$/.exec(cell).slice(1));
  assert.deepEqual(
    shown.map(([share, power, sum]) => [share, Number(power), Number(sum)]),
    expected,
  );
});
