import { useState } from 'preact/hooks';
import { splitHeads } from '../../arithmetic/arrays.ts';
import { ofHead } from '../../state/walk.ts';
import { Eq, Formula, I, Plus, Sub } from '../../ui/formula.tsx';
import { Term } from '../../ui/term.tsx';
import { Working } from '../../ui/working.tsx';
import {
  at,
  before,
  Choice,
  columnInFocus,
  isShown,
  LinearDot,
  LinearTables,
  numberInFocus,
  rowInFocus,
  TokenTable,
  WeightsBehind,
  type StepProps,
} from './parts.tsx';

type Letter = 'Q' | 'K' | 'V';

const words = { Q: 'query', K: 'key', V: 'value' } as const;

const traces = { Q: 'q_proj', K: 'k_proj', V: 'v_proj' } as const;

const turned = { Q: 'q', K: 'k', V: 'v' } as const;

export function ProjectionStep({ walk, sizes }: StepProps) {
  const [letter, setLetter] = useState<Letter>('Q');
  const { head, trace, names, run, layer } = walk;
  const { D, E, tokens } = sizes;
  const word = words[letter];
  const linear = names?.[word];
  const all = trace[traces[letter]];
  // Neighbouring heads may share keys and values.
  const count = all.dims[2]! / D;
  const which = Math.floor((head * count) / sizes.H);
  const first = which * D;
  const own = ofHead(splitHeads(all, count), which);
  const x = sizes.preNorm ? trace.norm1 : run.hiddenStates[layer]!;
  const row = letter === 'Q' ? rowInFocus(sizes) : columnInFocus(sizes);
  const column = numberInFocus('head', D);
  const rotates = sizes.rotary && letter !== 'V';
  const normalises = [...run.model.shapes.keys()].some((name) => name.endsWith('.q_norm.weight'));
  return (
    <>
      <p>
        Three small matrices of this <Term word="head" /> turn each row of X into a <Term word="query" />, a <Term word="key" /> and a{' '}
        <Term word="value" /> of {D} numbers.
      </p>
      {count < sizes.H && (
        <p class="note">
          Its {sizes.H} heads share {count} {letter === 'K' ? 'keys' : 'values'} for each token: {sizes.H / count} neighbouring heads have the same.
        </p>
      )}
      <Choice
        name="Projection shown"
        value={letter}
        options={[
          ['Q', 'Queries'],
          ['K', 'Keys'],
          ['V', 'Values'],
        ]}
        onChange={setLetter}
      />
      <Formula>
        <I>{letter}</I>
        <Eq />
        <I>X</I>
        <Sub base="W" sub={letter} />
        {linear?.bias && (
          <>
            <Plus />
            <Sub base="b" sub={letter} />
          </>
        )}
      </Formula>
      <TokenTable sizes={sizes} name={letter} colour={words[letter]} tensor={own} kind="head" of={letter === 'Q' ? 'query' : 'key'} />
      <Working
        name={`${letter} of ${tokens[row]}, number ${column + 1}`}
        value={at(own, row, column)}
        before={before(walk, traces[letter], row * all.dims[2]! + first + column)}
      >
        {isShown(walk, linear) && (
          <LinearDot
            walk={walk}
            linear={linear}
            part={{ out: [first, D] }}
            a={(e) => at(x, row, e)}
            count={E}
            column={column}
            result={at(own, row, column)}
          />
        )}
      </Working>
      {rotates && (
        <>
          <p class="note">
            This model has <Term word="rotary">rotary positions</Term>: before queries and keys are compared, the rows of {letter} are{' '}
            {normalises && 'normalised and '}rotated by an angle that depends only on their position. The angle is not learned, so you cannot change
            it.
          </p>
          <TokenTable
            sizes={sizes}
            name={`${letter}, rotated`}
            colour={words[letter]}
            tensor={ofHead(trace[turned[letter]], head)}
            kind="head"
            of={letter === 'Q' ? 'query' : 'key'}
          />
        </>
      )}
      {isShown(walk, linear) ? (
        <WeightsBehind>
          <LinearTables
            key={letter}
            walk={walk}
            name={`W_${letter}`}
            biasName={`b_${letter}`}
            linear={linear}
            part={{ out: [first, D] }}
            inKind="model"
            outKind="head"
          />
          <p class="note">
            In the model’s file, W_{letter} is part of {linear.weight.name}
            {names!.query.weight.name === names!.key.weight.name
              ? ', which contains the matrices for queries, keys and values one after the other'
              : ''}
            : {D} of its {linear.weight.count} columns belong to this head.
          </p>
        </WeightsBehind>
      ) : (
        <p class="note">The page does not know the names of these weights in this family of models.</p>
      )}
    </>
  );
}
