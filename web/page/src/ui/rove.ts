/** Rows per Page Up or Page Down in a map. */
export const pageStep = 10;

/** Arrow keys move the focus among the buttons of a group, of which only one is a tab stop. */
export function rove(event: KeyboardEvent, group: HTMLElement): void {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const buttons = Array.from(group.querySelectorAll<HTMLElement>('button'));
  const at = buttons.indexOf(event.target as HTMLElement);
  const targets: Record<string, number> = {
    ArrowLeft: at - 1,
    ArrowUp: at - 1,
    ArrowRight: at + 1,
    ArrowDown: at + 1,
    Home: 0,
    End: buttons.length - 1,
  };
  if (at < 0 || !Object.hasOwn(targets, event.key)) return;
  event.preventDefault();
  buttons[Math.min(buttons.length - 1, Math.max(0, targets[event.key]!))]!.focus();
}
