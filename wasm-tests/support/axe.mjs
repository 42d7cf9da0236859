import { readFileSync } from 'node:fs';
import { at } from './paths.mjs';

const source = readFileSync(at('node_modules/axe-core/axe.min.js'), 'utf8');

/** Runs axe-core, a checker of accessibility, on the page that a driver has open; resolves to its findings in words. */
export async function axeFindings(driver) {
  await driver.evaluate(new Function(source));
  return driver.evaluate(async () => {
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    return violations.map(({ id, nodes: [{ html, failureSummary }] }) => `${id}: ${html.slice(0, 120)}: ${failureSummary}`);
  });
}
