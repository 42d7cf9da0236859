import { Fragment, type ComponentChildren } from 'preact';
import { bracketed, brief, fixed, joined } from '../formats/numbers.ts';
import { dotWorking } from '../arithmetic/workings.ts';

/** `name`: "Q of film, number 3". */
export function Working({
  name,
  value,
  before,
  children,
}: {
  name: string;
  value: number;
  before?: number | undefined;
  children?: ComponentChildren;
}) {
  return (
    <div class="working-out" role="group" aria-label={`How ${name} was computed`}>
      <p class="working-head">
        <span>{name}</span> <strong class="figure">{fixed(value)}</strong>
        {before !== undefined && before !== value && <span class="note"> {fixed(before)} without your changes</span>}
      </p>
      {children && <p class="working-line figure">{children}</p>}
    </div>
  );
}

export interface DotProps {
  readonly a: (index: number) => number;
  readonly b: (index: number) => number;
  readonly count: number;
  readonly bias?: number | undefined;
  readonly result?: number;
}

/** 0.5·0.2 + … + bias, with the largest products. The first factor has the colour of rows, the second that of columns. */
export function Dot({ a, b, count, bias, result }: DotProps) {
  const { terms, restCount, rest, sum } = dotWorking(a, b, count);
  return (
    <>
      {terms.map(({ index, a: left, b: right }, i) => (
        <Fragment key={index}>
          <span class="working-term">
            <span class="as-query">{i > 0 ? joined(left) : brief(left)}</span>·<span class="as-key">{bracketed(right)}</span>
          </span>{' '}
        </Fragment>
      ))}
      {restCount > 0 && (
        <>
          <span class="working-term">
            {joined(rest)} <span class="note">from {restCount} smaller products</span>
          </span>{' '}
        </>
      )}
      {bias !== undefined && (
        <>
          <span class="working-term">
            {joined(bias)} <span class="note">bias</span>
          </span>{' '}
        </>
      )}
      <span class="working-term">= {fixed(result ?? sum + (bias ?? 0))}</span>
    </>
  );
}
