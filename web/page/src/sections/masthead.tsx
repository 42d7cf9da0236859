/** Each part has an address. */
import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { enterPart, partInAddress } from '../state/hash.ts';
import { story, type PartId, type StoryId } from '../state/parts.ts';
import '../styles/masthead.css';
import { observeSize } from '../ui/size.ts';
import { ThemeButton } from '../ui/theme.tsx';

/** Parts that are shown on a wide screen; the menu has all. */
const leading: readonly StoryId[] = ['one', 'many', 'train', 'numbers'];
const places = [
  { id: 'lab', name: 'Your own numbers' },
  { id: 'proof', name: 'Proof' },
] as const;

const current = signal<'first' | StoryId>('first');

function showPart(id: string): void {
  const target = document.getElementById(id);
  if (!target) {
    // It is being loaded.
    const again = new MutationObserver(() => {
      if (!document.getElementById(id)) return;
      again.disconnect();
      showPart(id);
    });
    return again.observe(document.getElementById('main')!, { childList: true });
  }
  target.tabIndex = -1;
  target.focus({ preventScroll: true });
  target.scrollIntoView();
}

/** Marks the last part that begins above the upper third of the screen. */
function followScrolling(): () => void {
  let asked = false;
  const find = () => {
    asked = false;
    const line = innerHeight / 3;
    const isAbove = (id: StoryId) => (document.getElementById(id)?.getBoundingClientRect().top ?? Infinity) <= line;
    current.value = story.findLast(({ id }) => isAbove(id))?.id ?? 'first';
  };
  const ask = () => {
    if (!asked) requestAnimationFrame(find);
    asked = true;
  };
  addEventListener('scroll', ask, { passive: true });
  return () => removeEventListener('scroll', ask);
}

/** When the page opens, once the part is there, and when the visitor goes back. */
function followAddress(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const go = () => {
    const part = partInAddress.value && document.getElementById(partInAddress.value);
    if (!part) return;
    timer ??= setTimeout(stop, 8000);
    part.scrollIntoView({ behavior: 'instant' });
  };
  const stop = partInAddress.value ? observeSize([document.body], go) : () => {};
  const events = ['wheel', 'touchstart', 'keydown', 'pointerdown'] as const;
  for (const each of events) addEventListener(each, stop, { passive: true, once: true });
  const back = () => {
    if (partInAddress.value) showPart(partInAddress.value);
    else scrollTo({ top: 0 });
  };
  addEventListener('hashchange', back);
  return () => {
    stop();
    clearTimeout(timer);
    for (const each of events) removeEventListener(each, stop);
    removeEventListener('hashchange', back);
  };
}

interface LinkProps {
  readonly id: PartId;
  readonly name: string;
  readonly number?: number;
  readonly onGo?: () => void;
}

function PartLink({ id, name, number, onGo }: LinkProps) {
  const go = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onGo?.();
    enterPart(id);
    showPart(id);
  };
  return (
    <a href={`#${id}`} aria-current={current.value === id ? 'true' : undefined} onClick={go}>
      {number !== undefined && <span class="part-number">{number}</span>} {name}
    </a>
  );
}

function Menu({ onHelp }: { onHelp: () => void }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const close = () => setOpen(false);
  useEffect(() => {
    if (!isOpen) return;
    const outside = (event: Event) => !box.current!.contains(event.target as Node) && close();
    addEventListener('pointerdown', outside);
    return () => removeEventListener('pointerdown', outside);
  }, [isOpen]);
  return (
    <div
      ref={box}
      class="menu"
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return;
        close();
        box.current!.querySelector('button')!.focus();
      }}
    >
      <button type="button" class="quiet" aria-expanded={isOpen} aria-controls="menu-parts" onClick={() => setOpen(!isOpen)}>
        Menu
      </button>
      <div id="menu-parts" class="menu-parts" hidden={!isOpen}>
        <PartLink id="first" name="First look" onGo={close} />
        {story.map(({ id, title }, i) => (
          <PartLink key={id} id={id} name={title} number={i + 1} onGo={close} />
        ))}
        {places.map((place) => (
          <PartLink key={place.id} {...place} onGo={close} />
        ))}
        <button
          type="button"
          class="quiet keys-button"
          onClick={() => {
            close();
            onHelp();
          }}
        >
          Keys
        </button>
      </div>
    </div>
  );
}

export function Masthead({ onHelp }: { onHelp: () => void }) {
  useEffect(followScrolling, []);
  useLayoutEffect(followAddress, []);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          showPart('main');
        }}
      >
        Skip to the content
      </a>
      <header class="masthead">
        <div class="masthead-inner">
          <p class="wordmark">attn</p>
          <nav aria-label="Parts of the page">
            <div class="nav-leading">
              {story
                .filter(({ id }) => leading.includes(id))
                .map(({ id, name }) => (
                  <PartLink key={id} id={id} name={name} />
                ))}
            </div>
            <Menu onHelp={onHelp} />
          </nav>
          <ThemeButton />
        </div>
      </header>
    </>
  );
}
