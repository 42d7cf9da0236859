import { useId } from 'preact/hooks';
import { fixed, shortNumber } from '../formats/numbers.ts';
import {
  agreement,
  explaining,
  explainLine,
  isCurrent,
  lineToExplain,
  methodInFocus,
  methodNames,
  methods,
  scoreText,
  why,
  whyFailure,
  type Method,
  type Why,
} from '../state/why.ts';
import '../styles/why.css';
import { NumberTable } from '../ui/number_table.tsx';
import { Alert } from '../ui/alert.tsx';

const abouts: Readonly<Record<Method, string>> = {
  leave_one_out: 'The direct measurement: the answer’s logit minus the logit for the text without the token.',
  integrated_gradients:
    'The gradient, averaged on the path from an empty text to this one, times the difference of the token’s embedding from that of padding (Sundararajan et al. 2017). It distributes the whole difference among the tokens.',
  gradient_x_input: 'The gradient for the text itself times the token’s embedding: quick, but unreliable if the model is very sure.',
  attention_gradient: 'Attention weights, weighted by their effect on this answer and followed through the layers (Chefer et al. 2021).',
  attention_rollout: 'Attention weights alone, followed through the layers (Abnar & Zuidema 2020): where the model looks, independent of its answer.',
};
const others = methods.filter((method) => method !== 'leave_one_out');

export function WhyPart({ texts }: { texts: readonly string[] }) {
  const id = useId();
  const made = why.value && isCurrent(why.value) ? why.value : undefined;
  const chosen = Math.min(lineToExplain.value, texts.length - 1);
  const doing = explaining.value;
  return (
    <div class="why">
      <div class="why-choice">
        <div class="field">
          <label for={id}>Explain line</label>
          <select id={id} value={chosen} onChange={(event) => (lineToExplain.value = Number(event.currentTarget.value))}>
            {texts.map((text, i) => (
              <option key={i} value={i}>
                {i + 1} {text}
              </option>
            ))}
          </select>
        </div>
        <button type="button" disabled={doing !== undefined} onClick={() => void explainLine(texts[chosen]!)}>
          Why?
        </button>
        <span class="note" aria-live="polite">
          {doing && `${doing} …`}
        </span>
      </div>
      <Alert what="The answer could not be explained." why={whyFailure.value} />
      {made && <Answer of={made} />}
    </div>
  );
}

function Answer({ of }: { of: Why }) {
  const id = useId();
  const method = methodInFocus.value;
  const { tokens, offsets, scores, label, delta, text } = of;
  const isWord = (i: number) => offsets[i] !== null;
  const alike = agreement(scores[method], scores.leave_one_out, isWord);
  return (
    <>
      <p>
        “{text}” is <strong>{label}</strong>, {scoreText(of)}, with all heads on. <span class="why-for">Violet</span> words support that answer,{' '}
        <span class="why-against">gold, underlined</span> words oppose it.
      </p>
      <div class="why-texts">
        <div>
          <label for={id}>Method</label>{' '}
          <select id={id} value={method} onChange={(event) => (methodInFocus.value = event.currentTarget.value as Method)}>
            {others.map((each) => (
              <option key={each} value={each}>
                {methodNames[each]}
              </option>
            ))}
          </select>
          <Words of={of} method={method} />
          <p class="note">{abouts[method]}</p>
        </div>
        <div>
          <p class="why-truth">{methodNames.leave_one_out}</p>
          <Words of={of} method="leave_one_out" />
          <p class="note">{abouts.leave_one_out}</p>
        </div>
      </div>
      <p>
        {Number.isFinite(alike) && `Correlation of the two: ${fixed(alike, 2)}. `}
        The scores of integrated gradients should add up to the answer’s logit minus that of an empty text. The error is{' '}
        <span class="figure" role="group" aria-label="Delta of integrated gradients">
          {shortNumber(100 * delta)} %
        </span>{' '}
        (delta).
      </p>
      <NumberTable
        name="Attribution"
        rows={{ kind: 'token', count: tokens.length, label: (i) => tokens[i]! }}
        columns={{ kind: 'method', count: methods.length, label: (j) => methodNames[methods[j]!] }}
        cell={(i, j) => fixed(scores[methods[j]!][i]!, 4)}
      />
    </>
  );
}

/** Smaller shares of the largest score are not shaded. */
const least = 0.05;
const kindOf = (share: number) => (Math.abs(share) < least ? '' : share < 0 ? 'against' : 'for');

function Words({ of: { text, offsets, scores }, method }: { of: Why; method: Method }) {
  const most = scores[method].reduce((sum, score, i) => Math.max(sum, offsets[i] ? Math.abs(score) : 0), 0) || 1;
  const pieces: unknown[] = [];
  let at = 0;
  offsets.forEach((range, i) => {
    if (!range) return;
    const [start, end] = [Math.max(at, range[0]), Math.max(at, range[1])];
    const score = scores[method][i]!;
    pieces.push(
      text.slice(at, start),
      <span key={i} class={kindOf(score / most)} style={{ '--share': `${Math.round((100 * Math.abs(score)) / most)}%` }}>
        {text.slice(start, end)}
      </span>,
    );
    at = end;
  });
  return (
    <p class="why-words" aria-hidden="true">
      {pieces as string[]}
      {text.slice(at)}
    </p>
  );
}
