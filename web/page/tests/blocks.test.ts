import { describe, expect, it } from 'vitest';
import { describePieces, placePieces, sideOf, type Piece } from '../src/draw/blocks.ts';

const pieces: readonly Piece[] = [
  { id: 'Q', name: 'Q', rows: 12, columns: 16, marks: [{ of: 'query', row: 11 }] },
  { sign: '·' },
  { id: 'K', name: 'Kᵀ', rows: 16, columns: 12, marks: [{ of: 'key', column: 0 }] },
  { sign: '=' },
  { id: 'S', name: 'QKᵀ', rows: 12, columns: 12, marks: [{ of: 'query', row: 11, column: 0 }] },
];

describe('matrices drawn as blocks', () => {
  it.each([100, 160, 640])('fit in lines of at most %i pixels and do not overlap', (most) => {
    const { placed, width, height } = placePieces(pieces, most);
    expect(width).toBeLessThanOrEqual(most + 4);
    const blocks = placed.flatMap((piece) => ('sign' in piece ? [] : [piece]));
    expect(blocks.map(({ id }) => id)).toEqual(['Q', 'K', 'S']);
    blocks.forEach((block, i) => {
      expect(block.y + block.height).toBeLessThan(height);
      for (const other of blocks.slice(i + 1)) expect(block.x + block.width < other.x || block.y + block.height < other.y).toBe(true);
    });
  });

  it('grow with the number of columns, but less than proportionally', () => {
    expect([1, 2, 16, 64, 1536].map(sideOf)).toEqual([16, 27, 60, 82, 132]);
  });

  it('highlight a row over the full width, a column over the full height, and a cell at their intersection', () => {
    const [q, , k, , s] = placePieces(pieces, 640).placed;
    if (!q || !k || !s || 'sign' in q || 'sign' in k || 'sign' in s) throw new Error('blocks');
    const [row, column, cell] = [q.lit[0]!, k.lit[0]!, s.lit[0]!];
    expect([row.width, row.of, column.height, column.of]).toEqual([q.width, 'query', k.height, 'key']);
    expect(row.y + row.height).toBeCloseTo(q.y + q.height);
    expect([column.x, cell.x]).toEqual([k.x, s.x]);
    expect(cell.y + cell.height).toBeCloseTo(s.y + s.height);
    expect(cell.width).toBeGreaterThanOrEqual(6);
  });

  it('have a text description', () => {
    expect(describePieces(pieces)).toBe('Q, 12 × 16, · Kᵀ, 16 × 12, = QKᵀ, 12 × 12');
  });
});
