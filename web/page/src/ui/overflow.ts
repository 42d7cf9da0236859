import { useLayoutEffect, useState } from 'preact/hooks';
import { observeSize } from './size.ts';

export function useOverflow(element: { readonly current: HTMLElement | null }): boolean {
  const [overflows, setOverflows] = useState(false);
  useLayoutEffect(() => {
    const { current } = element;
    if (!current) return;
    const measure = () => setOverflows(current.scrollWidth > current.clientWidth + 1 || current.scrollHeight > current.clientHeight + 1);
    measure();
    return observeSize(current.firstElementChild ? [current, current.firstElementChild] : [current], measure);
  }, []);
  return overflows;
}

export const scrollable = (overflows: boolean, label: string) =>
  overflows ? ({ tabIndex: 0, role: 'group', 'aria-label': `${label}, scrolls` } as const) : {};
