import { counted, scientific } from '../../formats/numbers.ts';
import type { LoadedModel } from '../../model/loaded.ts';
import { selfCheck, type SelfCheck } from '../../state/self_check.ts';
import { Alert } from '../../ui/alert.tsx';
import { Part } from '../../ui/part.tsx';
import { ComparedTable } from './agreement.tsx';

export function Checks({ of }: { of: LoadedModel }) {
  const made = selfCheck.value.value?.model === of ? selfCheck.value.value : undefined;
  return (
    <Part class="proof-part" title="Computed once more, without the module">
      <p>
        Any model can be checked in two ways. Every row of attention weights has to sum to 1. And each step of each layer is computed once more in
        plain JavaScript with 64-bit numbers, from the weights and from what went into the step: not one line of the module has a part in it.
      </p>
      <Alert what="The check failed." why={selfCheck.failure.value} />
      {of.dtype === 'int8' && (
        <p>
          The weights are int8: before each product the rows that go in are rounded to 8 bits. The check rounds them in the same way, and multiplies
          them by the numbers that the weights stand for.
        </p>
      )}
      {made ? <Checked of={made} layers={of.layers} /> : !selfCheck.failure.value && <p>Checking …</p>}
    </Part>
  );
}

/** As much of a text as a sentence about it can hold. */
export function shortened(text: string, most = 80): string {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most).join('').trimEnd()} …`;
}

function Checked({ of: { sums, rows, tokens, steps, text }, layers }: { of: SelfCheck; layers: number }) {
  const passes = steps.every((each) => each.passes);
  return (
    <>
      <p class={passes ? 'proof-verdict' : 'proof-verdict failed'}>
        <strong>{passes ? 'They agree.' : 'They do not agree.'}</strong> The text was “{shortened(text)}”, and{' '}
        {rows === tokens ? `all of its ${counted(tokens, 'token')}` : `${rows} of its ${counted(tokens, 'token')}`} were computed in{' '}
        {counted(layers, 'layer')}. The sums of {sums.count} rows of weights miss 1 by at most{' '}
        <strong class="figure">{scientific(sums.difference)}</strong>.
      </p>
      <ComparedTable name="Layers recomputed step by step" rows={steps} />
      <p class="note">
        Of each step you see the number that comes nearest to what is allowed: what sums of that many 32-bit products may lose to rounding, √K · 2
        <sup>-23</sup> times the sum of their sizes for K products, and a few roundings more. Positions, masks and embeddings are not part of this
        check.
      </p>
    </>
  );
}
