import type { Disturbance } from '../../state/speed.ts';

export function Disturbed({ by: { kind, from, to } }: { by: Disturbance }) {
  const peak = (value: number) => <span class="figure">{value.toFixed(1)}</span>;
  return (
    <p class="proof-disturbed">
      <strong>Something else was using this computer.</strong>{' '}
      {kind === 'unsteady' ? (
        <>
          The measured peak varied between {peak(from)} and {peak(to)} GFLOP/s.
        </>
      ) : (
        <>
          The peak was {peak(from)} GFLOP/s this time and {peak(to)} before.
        </>
      )}{' '}
      So these times are longer than necessary. Measure again when the computer is idle.
    </p>
  );
}
