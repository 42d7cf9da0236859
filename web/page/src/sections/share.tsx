import { useState } from 'preact/hooks';
import { linkHash, longestHash } from '../state/hash.ts';
import { view } from '../state/view.ts';

const filesNote = () => (view.value.model === 'files' ? ' It does not contain the model from your files.' : '');

/** Its message appears over the page, so that nothing moves. */
export function Share() {
  const [said, setSaid] = useState('');
  const [link, setLink] = useState<string>();
  const share = async () => {
    const hash = linkHash();
    setLink(undefined);
    if (hash.length > longestHash)
      return void setSaid(`The link would have ${hash.length} characters, and many programs cut such links. Shorten the text or undo some changes.`);
    const address = new URL(`#${hash}`, location.href.replace(/#.*/, '')).href;
    try {
      await navigator.clipboard.writeText(address);
      setSaid(`Copied. The link contains your text: anyone with the link can read it.${filesNote()}`);
    } catch {
      setLink(address);
      setSaid(`Copy the link from here. It contains your text: anyone with the link can read it.${filesNote()}`);
    }
  };
  return (
    <div class="share" onKeyDown={(event) => event.key === 'Escape' && setSaid('')}>
      <button type="button" title="Links contain your text." onClick={() => void share()}>
        Share
      </button>
      <div class={said ? 'share-said' : ''} aria-live="polite">
        {said && (
          <>
            <p>{said}</p>
            {link && <input type="text" readOnly aria-label="Link to this view" value={link} onFocus={(event) => event.currentTarget.select()} />}
            <button type="button" class="quiet" onClick={() => setSaid('')}>
              Close
            </button>
          </>
        )}
      </div>
    </div>
  );
}
