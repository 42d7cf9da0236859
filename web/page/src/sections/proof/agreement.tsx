import type { ComponentChildren } from 'preact';
import { counted, scientific } from '../../formats/numbers.ts';
import { editedWeights } from '../../state/background.ts';
import type { LoadedModel } from '../../model/loaded.ts';
import { openBeside } from '../../state/load_model.ts';
import { loadingBeside } from '../../state/model.ts';
import { comparison, exactOf, referenced, type Compared, type Comparison } from '../../state/reference.ts';
import { Formula, Group } from '../../ui/formula.tsx';
import { NumberTable } from '../../ui/number_table.tsx';
import { Alert } from '../../ui/alert.tsx';
import { Part } from '../../ui/part.tsx';

export function Agreement({ of }: { of: LoadedModel }) {
  const made = comparison.value.value?.model === of ? comparison.value.value : undefined;
  const known = referenced.includes(of.id);
  const exact = exactOf(of);
  return (
    <Part class="proof-part" title="The same numbers as PyTorch">
      {!known && (
        <p>
          The page has PyTorch’s numbers for its mask model and its classifier, not for {of.name}. attn’s own tests compare every family of models
          with PyTorch. The next part checks what can be checked without them.
        </p>
      )}
      {of.dtype === 'int8' && (
        <p>
          With int8 weights the numbers are not those of PyTorch’s float32, only close to them: “What int8 changes” shows how close.
          {known && ' With the same weights as float32 they are.'}
        </p>
      )}
      {known && !exact && (
        <p>
          <button type="button" disabled={!!loadingBeside.value} onClick={() => void openBeside()}>
            Load them as float32 too, and compare with PyTorch
          </button>
        </p>
      )}
      {known && editedWeights.value.length > 0 && (
        <p>You have changed weights, so PyTorch’s numbers do not apply. Undo the changes to compare again.</p>
      )}
      <Alert what="The comparison with PyTorch failed." why={comparison.failure.value} />
      {made && editedWeights.value.length === 0 && <Agreed of={made} />}
      {!made && known && exact && editedWeights.value.length === 0 && !comparison.failure.value && <p>Comparing …</p>}
    </Part>
  );
}

export const total = (rows: readonly Compared[]) => rows.reduce((sum, { count }) => sum + count, 0);

export const largest = (rows: readonly Compared[]) => rows.reduce((most, each) => (each.difference > most.difference ? each : most));

function Agreed({ of: { rows, texts, torch, transformers } }: { of: Comparison }) {
  const passes = rows.every((row) => row.passes);
  const worst = largest(rows);
  return (
    <>
      <p class={passes ? 'proof-verdict' : 'proof-verdict failed'}>
        <strong>{passes ? 'They agree.' : 'They do not agree.'}</strong> The largest difference from PyTorch {torch} is{' '}
        <strong class="figure">{scientific(worst.difference)}</strong>; the tolerance is <span class="figure">{scientific(worst.tolerance)}</span>.{' '}
        {total(rows)} numbers from {counted(texts, 'text')} were compared just now, in this page.
      </p>
      <ComparedTable name="Differences to PyTorch" rows={rows} />
      <p>
        PyTorch’s numbers were computed by transformers {transformers} in float64: y<sub>64</sub>. The tolerance t is twice the difference between
        PyTorch’s float32 and float64 plus 10<sup>-6</sup>. If values exceed 1, both grow with the largest:
      </p>
      <Formula>
        <Largest>
          <Difference from="" />
        </Largest>
        <mo>≤</mo>
        <mi>t</mi>
        <mo>·</mo>
        <Largest>
          <Group>
            <mn>1</mn>
            <mo>,</mo>
            <mrow>
              <mo>|</mo>
              <msub>
                <mi>y</mi>
                <mn>64</mn>
              </msub>
              <mo>|</mo>
            </mrow>
          </Group>
        </Largest>
      </Formula>
      <Formula>
        <mi>t</mi>
        <mo>=</mo>
        <mn>2</mn>
        <mspace width="0.2em" />
        <Largest>
          <Difference from="32" />
        </Largest>
        <mo>+</mo>
        <msup>
          <mn>10</mn>
          <mn>-6</mn>
        </msup>
      </Formula>
    </>
  );
}

const Largest = ({ children }: { children: ComponentChildren }) => (
  <mrow>
    <mi mathvariant="normal">max</mi>
    <mspace width="0.2em" />
    {children}
  </mrow>
);

const Difference = ({ from }: { from: string }) => (
  <mrow>
    <mo>|</mo>
    {from ? (
      <msub>
        <mi>y</mi>
        <mn>{from}</mn>
      </msub>
    ) : (
      <mi>y</mi>
    )}
    <mo>-</mo>
    <msub>
      <mi>y</mi>
      <mn>64</mn>
    </msub>
    <mo>|</mo>
  </mrow>
);

export function ComparedTable({ name, rows }: { name: string; rows: readonly Compared[] }) {
  const columns = ['largest difference', 'tolerance', 'numbers', 'within'];
  return (
    <NumberTable
      name={name}
      rows={{ kind: 'numbers', count: rows.length, label: (i) => rows[i]!.what }}
      columns={{ kind: 'check', count: columns.length, label: (j) => columns[j]! }}
      cell={(i, j) => {
        const { difference, tolerance, count, passes } = rows[i]!;
        return [scientific(difference), scientific(tolerance), count, passes ? 'yes' : 'no'][j];
      }}
    />
  );
}
