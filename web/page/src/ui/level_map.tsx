/** A square map in the colours of weights, one pixel per cell. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { paint } from '../draw/palette.ts';

interface LevelMapProps {
  /** (size,size) */
  readonly levels: ArrayLike<number> | undefined;
  readonly size: number;
  /** The level in the brightest colour. */
  readonly brightest?: number;
  /** Accessible name; without one the map is decoration. */
  readonly name?: string;
}

export function LevelMap({ levels, size, brightest = 1, name }: LevelMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    if (!levels) return;
    const context = canvas.current!.getContext('2d', { willReadFrequently: true })!;
    const image = context.createImageData(size, size);
    for (let i = 0; i < size * size; ++i) paint(image.data, i, (levels[i] ?? 0) / brightest);
    context.putImageData(image, 0, 0);
  }, [levels, size, brightest]);
  const about = name === undefined ? ({ 'aria-hidden': 'true' } as const) : ({ role: 'img', 'aria-label': name } as const);
  return <canvas ref={canvas} width={size} height={size} {...about} />;
}
