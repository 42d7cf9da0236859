import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** Paper is laid out with the sizes of the screen: what is measured on it is scaled, and would stay when printing ends. */
export const isPrinting = (): boolean => matchMedia('print').matches;

/**
 * Returns a function that ends the observation. Deferred to the next frame: a change of sizes inside a ResizeObserver callback raises an error
 * event.
 */
export function observeSize(elements: readonly Element[], measure: () => void): () => void {
  let frame = 0;
  const observer = new ResizeObserver(() => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => isPrinting() || measure());
  });
  for (const element of elements) observer.observe(element);
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
  };
}

/** A width that follows from what is drawn for it may come and go for ever. */
const mostInARow = 3;

/** The inner width in CSS pixels; 0 before mounting. */
export function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  const changes = useRef(0);
  const measure = () => setWidth(element.current!.clientWidth);
  // After each render, because an observer reports only when the old width has been painted.
  useLayoutEffect(() => {
    if (isPrinting() && width > 0) return;
    changes.current = element.current!.clientWidth === width ? 0 : changes.current + 1;
    if (changes.current <= mostInARow) measure();
  });
  useLayoutEffect(() => observeSize([element.current!], measure), []);
  return width;
}
