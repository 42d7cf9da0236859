/** What the files that `node --test` runs have in common. */

/** Options of a test: the limit stops what hangs, not what is slow. */
export const limit = { timeout: 20 * 60_000 };

/** Skips a test whose browser or tool is missing; with CI=true that is a failure. Use it as `return skipUnlessCi(t, why)`. */
export function skipUnlessCi(t, why) {
  if (process.env.CI === 'true') throw new Error(why);
  t.skip(why);
}
