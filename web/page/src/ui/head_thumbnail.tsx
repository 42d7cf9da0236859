import { useLayoutEffect, useRef } from 'preact/hooks';
import { paint } from '../palette.ts';

/** One head as a small picture, one pixel a cell. Its label says the same in words. */
export function HeadThumbnail({
  weights,
  size,
  head,
  label,
  chosen,
  onChoose,
}: {
  weights: Float32Array;
  size: number;
  head: number;
  label: string;
  chosen: boolean;
  onChoose: () => void;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current!.getContext('2d')!;
    const image = context.createImageData(size, size);
    let largest = 0;
    for (const w of weights) largest = Math.max(largest, w);
    for (let i = 0; i < size * size; ++i) paint(image.data, i, weights[i]! / (largest || 1));
    context.putImageData(image, 0, 0);
  }, [weights, size]);
  return (
    <label class="thumbnail">
      <input type="radio" name="thumbnail" checked={chosen} onChange={onChoose} aria-label={label} />
      <canvas ref={canvas} width={size} height={size} aria-hidden="true" />
      <span aria-hidden="true">{head + 1}</span>
    </label>
  );
}
