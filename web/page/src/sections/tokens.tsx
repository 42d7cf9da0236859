/** The tokens of the sentence, their numbers, and the rows that enter the first layer. */
import { useRef } from 'preact/hooks';
import { run, type Run } from '../state/run.ts';
import { readable } from '../state/words.ts';
import { Part } from '../ui/part.tsx';
import { useSeen } from '../ui/seen.ts';
import { StripRows } from '../ui/strip.tsx';

/** More would push the rest of the part out of sight. */
const most = 12;

export function Tokens() {
  const frame = useRef<HTMLDivElement>(null);
  const isNear = useSeen(frame, 300);
  const of = run.value;
  return (
    <div ref={frame} class="words-tokens">
      <Part class="words-part" title="From words to rows">
        {of && <Sentence of={of} />}
        {of && isNear && <Rows of={of} />}
      </Part>
    </div>
  );
}

/** Learned positions are added to the rows; other models use them within attention. */
const hasPositions = (shapes: ReadonlyMap<string, unknown>): boolean =>
  [...shapes.keys()].some((name) => /position_embeddings\.weight$|wpe\.weight$/.test(name));

function Sentence({ of: { tokens, model } }: { of: Run }) {
  const left = tokens.length - most;
  return (
    <p>
      The model splits your sentence into {tokens.length} tokens of its vocabulary. Below, each has its number in the vocabulary and its row of{' '}
      {model.hiddenSize} numbers as it enters the first layer
      {hasPositions(model.shapes) && ', made of one row for the token and one for its position, because order counts'}
      {left > 0 ? `, for the first ${most} tokens` : ''}. Violet is positive, gold negative.
    </p>
  );
}

function Rows({ of: { tokens, encoding, hiddenStates, model } }: { of: Run }) {
  const { data } = hiddenStates[0]!;
  const width = model.hiddenSize;
  return (
    <StripRows
      rows={tokens.slice(0, most).map((token, i) => ({
        name: `${readable(token)} · ${encoding.inputIds[i]}`,
        key: i,
        values: data.subarray(i * width, (i + 1) * width),
      }))}
    />
  );
}
