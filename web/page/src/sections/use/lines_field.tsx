import { faultOf, linesText, lines, readLines } from '../../state/compare_texts.ts';
import { Alert } from '../../ui/alert.tsx';

export function LinesField() {
  const fault = faultOf(readLines(linesText.value));
  return (
    <div class="field">
      <label for="use-texts">Texts, one per line</label>
      <textarea
        id="use-texts"
        rows={9}
        dir="auto"
        spellcheck={false}
        value={linesText.value}
        aria-invalid={fault ? 'true' : undefined}
        aria-describedby={fault ? 'use-texts-error' : undefined}
        onInput={(event) => (linesText.value = event.currentTarget.value)}
      />
      <Alert id="use-texts-error" why={fault} />
      <Alert what="The texts could not be compared." why={lines.failure.value} />
    </div>
  );
}
