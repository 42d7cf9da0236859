import { useEffect, useRef } from 'preact/hooks';
import { isPlaying, stepShown } from '../../state/first_look.ts';

const milliseconds = 650;

/** Preact's own text node: it would not notice another one, and go on writing into this. */
const shownIn = (of: SVGTSpanElement | null) => of!.firstChild as Text;

/** A number that counts up from 0 while its step is played. */
export function Counted({ value, step, write }: { value: number; step: number; write: (value: number) => string }) {
  const text = useRef<SVGTSpanElement>(null);
  const counts = isPlaying.value && stepShown.value === step && Number.isFinite(value);
  useEffect(() => {
    if (!counts) return;
    const start = performance.now();
    let frame = 0;
    const show = () => {
      const part = Math.min(1, (performance.now() - start) / milliseconds);
      shownIn(text.current).data = write(value * part);
      if (part < 1) frame = requestAnimationFrame(show);
    };
    show();
    return () => {
      cancelAnimationFrame(frame);
      if (text.current) shownIn(text.current).data = write(value);
    };
  }, [counts, value]);
  return <tspan ref={text}>{write(value)}</tspan>;
}
