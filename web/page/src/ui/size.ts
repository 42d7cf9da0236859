import { useLayoutEffect, useState } from 'preact/hooks';

/** How wide an element is inside, in CSS pixels; 0 before it is there. */
export function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const current = element.current!;
    const measure = () => setWidth(current.clientWidth);
    // What is drawn for one width may change another, which it may not do while it is told of a change.
    const observer = new ResizeObserver(() => requestAnimationFrame(measure));
    observer.observe(current);
    measure();
    return () => observer.disconnect();
  }, []);
  return width;
}
