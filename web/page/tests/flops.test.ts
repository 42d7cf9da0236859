import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { encoderSize, gigaflops, multiplyAdds } from '../src/model/flops.ts';

const config = (name: string) => JSON.parse(readFileSync(new URL(`../../../testdata/models/${name}/config.json`, import.meta.url), 'utf8'));

describe('the operation count of a forward pass', () => {
  it('is the sum over all matrix products', () => {
    // E = 2, F = 3, L = 5: Q, K, V and W_O 5×2×2 each, q kᵀ and weights·v 5×5×2, feed-forward 5×2×3 and 5×3×2.
    const size = { layers: 1, width: 2, hidden: 3, gated: false };
    expect(multiplyAdds(size, 5)).toEqual({ projections: 80, attention: 100, feedForward: 60, total: 240 });
    expect(multiplyAdds({ ...size, layers: 4 }, 5).total).toBe(960);
    expect(multiplyAdds({ ...size, gated: true }, 5).feedForward).toBe(90);
    expect(multiplyAdds(size, 0).total).toBe(0);
  });

  it('counts fewer products if heads share keys and values', () => {
    // Q and W_O 5×2×6 each, K and V 5×2×3 each, q kᵀ and weights·v 5×5×6.
    const size = { layers: 1, width: 2, hidden: 3, gated: false, queries: 6, keys: 3 };
    expect(multiplyAdds(size, 5)).toMatchObject({ projections: 180, attention: 300 });
  });

  it('is 2.9 GFLOP for all-MiniLM-L6-v2 and 128 tokens', () => {
    expect(gigaflops(multiplyAdds({ layers: 6, width: 384, hidden: 1536, gated: false }, 128).total, 1000)).toBeCloseTo(2.87, 1);
  });

  it('reads its sizes from the configuration of every model family', () => {
    expect(encoderSize(config('sentiment'))).toEqual({ layers: 2, heads: 4, width: 64, hidden: 256, gated: false });
    expect(encoderSize(config('tiny-distilbert'))).toEqual({ layers: 2, heads: 4, width: 32, hidden: 48, gated: false });
    expect(encoderSize(config('tiny-modernbert'))).toEqual({ layers: 4, heads: 4, width: 32, hidden: 48, gated: true });
    expect(encoderSize(config('tiny-gpt2'))).toEqual({ layers: 2, heads: 4, width: 24, hidden: 96, gated: false });
    expect(encoderSize(config('tiny-mistral'))).toEqual({ layers: 2, heads: 4, width: 24, hidden: 40, gated: true, queries: 16, keys: 8 });
    for (const name of ['tiny-bert', 'tiny-roberta', 'tiny-xlm-roberta', 'tiny-mpnet']) expect(encoderSize(config(name)).hidden).toBe(48);
  });
});
