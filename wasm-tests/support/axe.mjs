import { readFileSync } from 'node:fs';
import { at } from './paths.mjs';

const script = new Function(readFileSync(at('node_modules/axe-core/axe.min.js'), 'utf8'));

/**
 * Runs axe-core, an accessibility checker, on the driver's page, or on the `part` that a selector finds; resolves to
 * readable findings.
 */
export async function axeFindings(driver, part = ':root') {
  if (!(await driver.evaluate(() => typeof axe === 'object'))) await driver.evaluate(script);
  return driver.evaluate(async (selector) => {
    const { violations } = await axe.run(selector, { resultTypes: ['violations'] });
    const about = (node) => `${node.target.join(' ')} ${(node.failureSummary ?? '').replace(/\s+/g, ' ')}`;
    return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(about).join(' | ')}`);
  }, part);
}
