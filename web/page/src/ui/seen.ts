import { useEffect, useState } from 'preact/hooks';

/** Whether part of an element is on the screen, or at most `near` pixels above or below it. */
export function useSeen(element: { readonly current: HTMLElement | null }, near = 0): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setSeen(entries.at(-1)!.isIntersecting), { rootMargin: `${near}px 0px` });
    observer.observe(element.current!);
    return () => observer.disconnect();
  }, []);
  return seen;
}
