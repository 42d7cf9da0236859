import { useLayoutEffect, useRef } from 'preact/hooks';
import { imageOf, poolSigned } from '../draw/heatmap.ts';
import { within, type Part } from '../draw/part.ts';

/** Largest side in pixels. */
const most = 64;

export function Minimap({ levels, size, part, onPart }: { levels: Float32Array; size: number; part: Part; onPart: (part: Part) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const pixels = Math.min(size, most);
  useLayoutEffect(() => canvas.current!.getContext('2d')!.putImageData(imageOf(poolSigned(levels, size, pixels), pixels), 0, 0), [levels]);
  const percent = (count: number) => `${(100 * count) / size}%`;
  const go = (event: PointerEvent & { currentTarget: HTMLElement }) => {
    if (event.type === 'pointermove' && (event.buttons & 1) === 0) return;
    const { left, top, width, height } = event.currentTarget.getBoundingClientRect();
    const first = (place: number) => place * size - part.count / 2;
    onPart(within({ row: first((event.clientY - top) / height), column: first((event.clientX - left) / width), count: part.count }, size));
  };
  return (
    <div class="minimap" aria-hidden="true" onPointerDown={go} onPointerMove={go}>
      <canvas ref={canvas} width={pixels} height={pixels} />
      <span style={{ left: percent(part.column), top: percent(part.row), width: percent(part.count), height: percent(part.count) }} />
    </div>
  );
}
