import { useState } from 'preact/hooks';

export function Code({ title, code }: { title: string; code: string }) {
  const [copied, setCopied] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
      setCopied('Copied.');
    } catch {
      setCopied('The browser does not allow copying here. Select the text instead.');
    }
    setTimeout(() => setCopied(''), 4000);
  };
  return (
    <div class="code">
      <div class="code-head">
        <h4>{title}</h4>
        <span class="note" aria-live="polite">
          {copied}
        </span>
        <button type="button" class="quiet" onClick={copy} aria-label={`Copy the ${title} code`}>
          Copy
        </button>
      </div>
      <pre tabIndex={0} role="group" aria-label={`${title} code`}>
        <code>{code}</code>
      </pre>
    </div>
  );
}
