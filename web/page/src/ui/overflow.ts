import { useLayoutEffect, useState } from 'preact/hooks';

/** Whether the content is larger than the element. */
export function useOverflow(element: { readonly current: HTMLElement | null }): boolean {
  const [overflows, setOverflows] = useState(false);
  useLayoutEffect(() => {
    const { current } = element;
    if (!current) return;
    const measure = () => setOverflows(current.scrollWidth > current.clientWidth + 1 || current.scrollHeight > current.clientHeight + 1);
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    if (current.firstElementChild) observer.observe(current.firstElementChild);
    measure();
    return () => observer.disconnect();
  }, []);
  return overflows;
}

export const scrollable = (overflows: boolean, label: string) =>
  overflows ? ({ tabIndex: 0, role: 'group', 'aria-label': `${label}, scrolls` } as const) : {};
