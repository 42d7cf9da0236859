import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { FirstLook } from './sections/first_look.tsx';
import { Masthead } from './sections/masthead.tsx';
import { isFirstPictureDrawn } from './state/first_look.ts';
import { partInAddress } from './state/hash.ts';
import { explain, status } from './state/status.ts';
import { Alert } from './ui/alert.tsx';

const story = signal<typeof import('./sections/story.tsx') | undefined>(undefined);
const storyFailure = signal<string | undefined>(undefined);

/** Said after every change of the text, so it is not shown. */
const usual = /^(Ready|Starting|Loading)/;
const milliseconds = 5000;

function Status() {
  const { text, failed } = status.value;
  const [old, setOld] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setOld(text), milliseconds);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <p role="status" class={['status', failed ? 'failed' : (usual.test(text) || text === old) && 'usual'].filter(Boolean).join(' ')}>
      {text}
    </p>
  );
}

export function App() {
  const help = useRef<HTMLDialogElement>(null);
  const showHelp = () => help.current?.showModal();
  const isWanted = isFirstPictureDrawn.value || status.value.failed || partInAddress.value !== undefined;
  useEffect(() => {
    if (!isWanted) return;
    import('./sections/story.tsx').then(
      (found) => (story.value = found),
      (error: unknown) => (storyFailure.value = explain(error)),
    );
  }, [isWanted]);
  return (
    <>
      <Masthead onHelp={showHelp} />
      <main id="main" tabIndex={-1}>
        <FirstLook steps={story.value?.Steps} />
        {story.value && <story.value.Story onHelp={showHelp} />}
        <Alert what="The rest of the page could not be loaded. Reload the page." why={storyFailure.value} />
      </main>
      <Status />
      {story.value && <story.value.Help dialog={help} />}
    </>
  );
}
