import { capitalized } from '../formats/names.ts';
import type { ComponentChildren } from 'preact';
import { isDecoder } from '../model/loaded.ts';
import { withOwnMask } from '../state/changes.ts';
import type { Run } from '../state/run.ts';
import type { Scale } from '../draw/scale.ts';
import { lineOf, scaleInUse } from '../state/map_view.ts';
import { update, view, type SpecialTokens, type View } from '../state/view.ts';
import { Slider } from '../ui/slider.tsx';
import { Term } from '../ui/term.tsx';

function Check({
  on,
  isFixed = false,
  onChange,
  hint,
  children,
}: {
  on: boolean;
  isFixed?: boolean;
  onChange: (on: boolean) => void;
  hint: ComponentChildren;
  children: string;
}) {
  const id = `check-${children.toLowerCase().replaceAll(' ', '-')}`;
  return (
    <div class="check-block">
      <label class="check">
        <input type="checkbox" checked={on} disabled={isFixed} aria-describedby={id} onChange={(event) => onChange(event.currentTarget.checked)} />
        <span>{children}</span>
      </label>
      <p class="note" id={id}>
        {hint}
      </p>
    </div>
  );
}

/** Slider positions, denser for small weights. */
const thresholds = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5];

export function Controls({ of }: { of: Run }) {
  const { special, threshold, scaleBy, mergeWords } = view.value;
  const words = lineOf(of);
  const scaleNote = scaleNotes[scaleInUse.value];
  const position = thresholds.findIndex((each) => each >= threshold);
  const text = threshold === 0 ? 'all weights' : `at least ${threshold}`;
  return (
    <div class="controls">
      <div class="field">
        <label for="special-tokens">Special tokens</label>
        <select
          id="special-tokens"
          value={special}
          aria-describedby="special-note"
          onChange={(event) => update({ special: event.currentTarget.value as SpecialTokens })}
        >
          <option value="show">show</option>
          <option value="hide">hide</option>
          <option value="renormalise">hide and renormalise</option>
        </select>
        <span class="note" id="special-note">
          {specialNotes[special]}
        </span>
      </div>
      <div class="field">
        <label for="colours">Colours</label>
        <select
          id="colours"
          value={scaleBy}
          aria-describedby="colours-note"
          onChange={(event) => update({ scaleBy: event.currentTarget.value as View['scaleBy'] })}
        >
          <option value="auto">automatic</option>
          <option value="head">per head</option>
          <option value="row">per row</option>
          <option value="log">logarithmic</option>
        </select>
        <span class="note" id="colours-note">
          {scaleBy === 'auto' ? `Now: ${scaleNote}` : capitalized(scaleNote)}
        </span>
      </div>
      <Slider
        id="threshold"
        label="Threshold"
        min={0}
        max={thresholds.length - 1}
        step={1}
        value={position < 0 ? thresholds.length - 1 : position}
        text={text}
        hint="Smaller weights are not drawn. The table and exported files still contain them."
        onInput={(value) => update({ threshold: thresholds[value]! })}
      />
      <Check on={mergeWords} onChange={(on) => update({ mergeWords: on })} hint={mergeHint(words.tokens)}>
        Merge sub-words
      </Check>
      <Check
        on={withOwnMask(view.value, of.model).causal}
        isFixed={isDecoder(of.model)}
        onChange={(on) => update({ causal: on })}
        hint={
          isDecoder(of.model) ? (
            'This model always has one: no token attends to a later one.'
          ) : (
            <>
              The whole model runs again, and no <Term word="token">token</Term> attends to a later one, as in a model that generates text.
            </>
          )
        }
      >
        Causal mask
      </Check>
    </div>
  );
}

const scaleNotes: Readonly<Record<Scale, string>> = {
  head: 'per head, so that you can compare rows.',
  row: 'per row; the brightest cell of each row is its largest weight.',
  log: 'logarithmic, because most weights would be too small to see next to the largest one.',
};

const specialNotes: Readonly<Record<SpecialTokens, string>> = {
  show: 'All tokens that the model reads.',
  hide: 'Rows then sum to less than 1.',
  renormalise: 'Each row is divided by its sum, so that it adds up to 1 again.',
};

const mergeHint = (tokens: readonly string[]) =>
  `The tokenizer splits rare words into parts. Their rows are averaged and their columns summed (Clark et al. 2019). ${
    tokens.some((token) => token.startsWith('##')) ? 'Parts that continue a word begin with ##.' : 'Try “unputdownable”.'
  }`;
