import { useLayoutEffect, useState } from 'preact/hooks';

/** The inner width in CSS pixels; 0 before mounting. */
export function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const current = element.current!;
    const measure = () => setWidth(current.clientWidth);
    // Deferred: changing sizes inside a ResizeObserver callback raises an error.
    const observer = new ResizeObserver(() => requestAnimationFrame(measure));
    observer.observe(current);
    measure();
    return () => observer.disconnect();
  }, []);
  return width;
}
