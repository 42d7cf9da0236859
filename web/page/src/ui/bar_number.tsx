import { fixed } from '../formats/numbers.ts';
import '../styles/bars.css';
import { Bar } from './bar.tsx';

/** `from`: the value where the bar starts. */
export function BarNumber({ value, decimals = 4, from = 0 }: { value: number; decimals?: number; from?: number }) {
  return (
    <span class="bar-number">
      <Bar share={Math.min(1, Math.max(0, ((value || 0) - from) / (1 - from)))} class="bar" />
      <span>{fixed(value, decimals)}</span>
    </span>
  );
}
