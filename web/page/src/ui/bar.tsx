export const Bar = ({ share, class: name = 'guess-bar' }: { share: number; class?: string }) => (
  <span class="guess-room" aria-hidden="true">
    <span class={name} style={{ width: `${100 * share}%` }} />
  </span>
);
