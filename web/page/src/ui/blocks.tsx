import { useRef } from 'preact/hooks';
import { describePieces, placePieces, shapeOf, type Piece } from '../draw/blocks.ts';
import '../styles/blocks.css';
import { useWidth } from './size.ts';

/** Until the frame is measured. */
const usualWidth = 640;

/** Keyed by matrix, so that a matrix in two successive pictures moves (blocks.css). */
export function Blocks({ pieces, what }: { pieces: readonly Piece[]; what: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const { placed, width, height } = placePieces(pieces, useWidth(frame) || usualWidth);
  const px = (value: number) => `${value}px`;
  return (
    <div ref={frame} class="blocks">
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${what}: ${describePieces(pieces)}`}>
        {placed.map((piece, i) =>
          'sign' in piece ? (
            <text key={`sign ${i} ${piece.sign}`} class="blocks-sign" x={piece.x} y={piece.y + 5}>
              {piece.sign}
            </text>
          ) : (
            <g key={piece.id} class="block" style={{ transform: `translate(${px(piece.x)}, ${px(piece.y)})` }}>
              <rect class="block-body" style={{ width: px(piece.width), height: px(piece.height) }} />
              {piece.lit.map(({ of, x, y, width: wide, height: tall }, mark) => (
                <rect
                  key={mark}
                  class={`block-lit ${of}`}
                  style={{ transform: `translate(${px(x - piece.x)}, ${px(y - piece.y)})`, width: px(wide), height: px(tall) }}
                />
              ))}
              <rect class="block-edge" style={{ width: px(piece.width), height: px(piece.height) }} />
              <text class="block-name" x={piece.width / 2} y={piece.height + 15}>
                <Name of={piece.name} />
              </text>
              <text class="block-shape" x={piece.width / 2} y={piece.height + 29}>
                {shapeOf(piece)}
              </text>
            </g>
          ),
        )}
      </svg>
    </div>
  );
}

/** "W_Q" with a subscript Q. */
function Name({ of }: { of: string }) {
  const [base, sub] = of.split('_');
  return sub === undefined ? (
    <>{of}</>
  ) : (
    <>
      {base}
      <tspan class="block-sub" dy="3">
        {sub}
      </tspan>
    </>
  );
}
