import type { ComponentChildren } from 'preact';

export const Part = ({ class: name, title, children }: { class: string; title: string; children: ComponentChildren }) => (
  <div class={name}>
    <h3>{title}</h3>
    {children}
  </div>
);
