import { useRef } from 'preact/hooks';
import { Example } from './sections/example.tsx';
import { Lab } from './sections/lab.tsx';
import { More } from './sections/head_details.tsx';
import { Playground } from './sections/playground.tsx';
import { ProofSection } from './sections/proof.tsx';
import { Steps } from './sections/steps.tsx';
import { Train } from './sections/train.tsx';
import { Use } from './sections/use.tsx';
import { Words } from './sections/words.tsx';
import { status } from './state/status.ts';
import { Footer } from './ui/footer.tsx';
import { Help } from './ui/help.tsx';
import { ThemeButton } from './ui/theme.tsx';

const sections = [
  ['sentence', 'Sentence and heads'],
  ['example', 'By hand'],
  ['train', 'Train'],
  ['steps', 'Step by step'],
  ['lab', 'Your numbers'],
  ['use', 'Use it'],
  ['words', 'Words'],
  ['proof', 'Proof'],
] as const;

/** Scrolls to a section and moves the focus. The address is not changed, because it contains the view. */
function goTo(event: MouseEvent, id: string): void {
  const target = document.getElementById(id);
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  target.tabIndex = -1;
  target.focus({ preventScroll: true });
  target.scrollIntoView();
}

export function App() {
  const help = useRef<HTMLDialogElement>(null);
  const showHelp = () => help.current?.showModal();
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => goTo(event, 'main')}>
        Skip to the content
      </a>
      <header class="masthead">
        <div class="masthead-inner">
          <p class="wordmark">attn</p>
          <nav aria-label="Sections">
            {sections.map(([id, name]) => (
              <a key={id} href={`#${id}`} onClick={(event) => goTo(event, id)}>
                {name}
              </a>
            ))}
          </nav>
          <div class="masthead-tools">
            <button type="button" class="quiet keys-button" onClick={showHelp}>
              Keys
            </button>
            <ThemeButton />
          </div>
        </div>
      </header>
      <p role="status" class={status.value.failed ? 'status failed' : 'status'}>
        {status.value.text}
      </p>
      <main id="main" tabIndex={-1}>
        <Playground onHelp={showHelp} />
        <More />
        <Example />
        <Train />
        <Steps />
        <Lab />
        <Use />
        <Words />
        <ProofSection />
      </main>
      <Footer />
      <Help dialog={help} />
    </>
  );
}
