import { useLayoutEffect, useState } from 'preact/hooks';

/**
 * Returns a function that ends the observation. Deferred to the next frame: a change of sizes inside a ResizeObserver callback raises an error
 * event.
 */
export function observeSize(elements: readonly Element[], measure: () => void): () => void {
  let frame = 0;
  const observer = new ResizeObserver(() => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(measure);
  });
  for (const element of elements) observer.observe(element);
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
  };
}

/** The inner width in CSS pixels; 0 before mounting. */
export function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const current = element.current!;
    const measure = () => setWidth(current.clientWidth);
    measure();
    return observeSize([current], measure);
  }, []);
  return width;
}
