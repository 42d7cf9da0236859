import type { Tensor } from 'attn';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { paint } from '../draw/palette.ts';

/** A square matrix as a picture; a click chooses a row. It needs a table with the numbers next to it. */
export function MatrixMap({
  title,
  matrix,
  low,
  chosen,
  onChoose,
}: {
  title: string;
  matrix: Tensor;
  /** The value of the darkest colour; the lightest is 1. */
  low: number;
  chosen: number;
  onChoose: (row: number) => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = matrix.dims[0]!;
  useLayoutEffect(() => {
    const context = canvas.current!.getContext('2d')!;
    const image = context.createImageData(size, size);
    matrix.data.forEach((value, i) => paint(image.data, i, (value - low) / (1 - low || 1)));
    context.putImageData(image, 0, 0);
  }, [matrix, low]);
  const numbers = Array.from({ length: size }, (_, i) => (
    <span key={i} class={i === chosen ? 'chosen' : ''}>
      {i + 1}
    </span>
  ));
  return (
    <figure class="matrix-map" aria-hidden="true">
      <figcaption>{title}</figcaption>
      <div class="matrix-map-columns">{numbers}</div>
      <div class="matrix-map-rows">{numbers}</div>
      <div
        class="matrix-map-field"
        onClick={(event) => {
          const { top, height } = event.currentTarget.getBoundingClientRect();
          onChoose(Math.min(size - 1, Math.max(0, Math.floor(((event.clientY - top) / height) * size))));
        }}
      >
        <canvas ref={canvas} width={size} height={size} />
        <div class="matrix-map-row" style={{ top: `${(100 * chosen) / size}%`, height: `${100 / size}%` }} />
      </div>
    </figure>
  );
}
