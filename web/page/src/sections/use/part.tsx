import type { ComponentChildren } from 'preact';

export function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="use-part">
      <h3>{title}</h3>
      {children}
    </div>
  );
}
