import { describe, expect, it } from 'vitest';
import { truncate, longestMessage } from '../src/formats/truncate.ts';
import { parseMatrixText } from '../src/formats/matrix_text.ts';
import { parseNpy } from '../src/formats/npy.ts';
import { nameOf } from '../src/model/known.ts';
import { explain } from '../src/state/status.ts';
import { faultOfWord } from '../src/state/words.ts';

describe('overlong text', () => {
  it('keeps its beginning and its end, and short text is unchanged', () => {
    expect(truncate('short', 5)).toBe('short');
    expect(truncate(`begin${'x'.repeat(1000)}end`, 20)).toMatch(/^beginx+…x+end$/);
    expect(truncate('x'.repeat(1000), 20)).toHaveLength(20);
  });

  it('is not split inside a character', () => {
    for (let most = 4; most < 30; ++most) expect(() => encodeURIComponent(truncate('🎬'.repeat(100), most))).not.toThrow();
  });

  const long = 'n'.repeat(1_000_000);
  const npy = (descr: string, shape: string) => {
    const header = new TextEncoder().encode(`{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`);
    const bytes = new Uint8Array(12 + header.length);
    bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 2, 0]);
    new DataView(bytes.buffer).setUint32(8, header.length, true);
    bytes.set(header, 12);
    return bytes;
  };
  const thrown = (run: () => unknown) => {
    try {
      run();
    } catch (error) {
      return explain(error);
    }
    throw new Error('nothing was thrown');
  };
  it.each<readonly [string, () => string]>([
    ['an error from the package', () => explain(Object.assign(new Error(`tensor ${long}`), { code: 'FORMAT' }))],
    ['a thrown value that is not an Error', () => explain(long)],
    ['the name of a model', () => nameOf(`https://example.org/${long}/`)],
    ['a word', () => faultOfWord({ text: long, id: undefined, pieces: Array.from(long) })!],
    ['a number', () => thrown(() => parseMatrixText(`[[${'1'.repeat(1_000_000)}]]`))],
    ['the type of a .npy file', () => thrown(() => parseNpy(npy(`<${long}`, '1')))],
    ['the shape of a .npy file', () => thrown(() => parseNpy(npy('<f4', '1,'.repeat(500_000))))],
  ])('is shortened if it comes from %s', (_, said) => {
    expect(said().length).toBeLessThan(longestMessage + 200);
  });
});
