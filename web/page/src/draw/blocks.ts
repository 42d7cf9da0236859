/** Units are pixels. */

/** The highlighted part of a block: a row, a column or a cell. */
export interface Mark {
  readonly of: 'query' | 'key';
  readonly row?: number;
  readonly column?: number;
  readonly columns?: number;
}

export interface Block {
  /** The same in two successive pictures, so that the matrix moves. */
  readonly id: string;
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly marks?: readonly Mark[];
}

/** "·", "=", "softmax →" */
export interface Sign {
  readonly sign: string;
}

export type Piece = Block | Sign;

export interface Rectangle {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export type PlacedPiece = (Block & Rectangle & { readonly lit: readonly (Rectangle & Pick<Mark, 'of'>)[] }) | (Sign & Pick<Rectangle, 'x' | 'y'>);

const gap = 12;
const captionHeight = 36;
const lineGap = 14;
const letter = 9;

/** Logarithmic, so that 1000 is not a hundred times as long as 10. */
export const sideOf = (count: number): number => Math.round(16 + 11 * Math.log2(Math.max(1, count)));

export const shapeOf = ({ rows, columns }: Pick<Block, 'rows' | 'columns'>): string => `${rows} × ${columns}`;

/** Minimum visible thickness. */
const leastStrip = 4;
const leastCell = 6;
const strip = (side: number, count: number, first: number, many: number, least: number): readonly [from: number, size: number] => {
  const size = Math.min(side, Math.max(least, (side * many) / count));
  return [Math.min(side - size, (side * first) / count), size];
};

function litOf({ rows, columns, marks = [] }: Block, { x, y, width, height }: Rectangle): readonly (Rectangle & Pick<Mark, 'of'>)[] {
  return marks.map(({ of, row, column, columns: many }) => {
    const least = row === undefined || column === undefined ? leastStrip : leastCell;
    const [top, tall] = row === undefined ? [0, height] : strip(height, rows, row, 1, least);
    const [left, wide] = column === undefined ? [0, width] : strip(width, columns, column, many ?? 1, least);
    return { of, x: x + left, y: y + top, width: wide, height: tall };
  });
}

const takes = (piece: Piece): number =>
  'sign' in piece ? piece.sign.length * letter + 6 : Math.max(sideOf(piece.columns), piece.name.length * letter, shapeOf(piece).length * 6);

/** Wraps the pieces into lines up to `most` pixels wide. */
export function placePieces(
  pieces: readonly Piece[],
  most: number,
): { readonly placed: readonly PlacedPiece[]; readonly width: number; readonly height: number } {
  const lines: Piece[][] = [];
  let room = 0;
  for (const piece of pieces) {
    const needed = takes(piece) + gap;
    const line = lines.at(-1);
    if (!line || room + needed > most + gap) {
      lines.push([piece]);
      room = needed;
    } else {
      line.push(piece);
      room += needed;
    }
  }
  const placed: PlacedPiece[] = [];
  let [y, width] = [2, 0];
  for (const line of lines) {
    const tall = line.reduce((highest, piece) => ('sign' in piece ? highest : Math.max(highest, sideOf(piece.rows))), 20);
    let x = 2;
    for (const piece of line) {
      const own = takes(piece);
      if ('sign' in piece) placed.push({ ...piece, x: x + own / 2, y: y + tall / 2 });
      else {
        const size = { width: sideOf(piece.columns), height: sideOf(piece.rows) };
        const at = { x: x + (own - size.width) / 2, y: y + (tall - size.height) / 2, ...size };
        placed.push({ ...piece, ...at, lit: litOf(piece, at) });
      }
      x += own + gap;
    }
    width = Math.max(width, x - gap + 2);
    y += tall + captionHeight + lineGap;
  }
  return { placed, width, height: y - lineGap };
}

/** "X, 12 × 64, · W_Q, 64 × 16, = Q, 12 × 16" */
export const describePieces = (pieces: readonly Piece[]): string =>
  pieces.map((piece) => ('sign' in piece ? piece.sign : `${piece.name}, ${shapeOf(piece)}${piece === pieces.at(-1) ? '' : ','}`)).join(' ');
