/** The time limit stops hanging tests, not slow ones. */
export const limit = { timeout: 20 * 60_000 };

/** Skips a test whose browser or tool is missing, or fails if CI=true. Usage: `return skipUnlessCi(t, why)`. */
export function skipUnlessCi(t, why) {
  if (process.env.CI === 'true') throw new Error(why);
  t.skip(why);
}
