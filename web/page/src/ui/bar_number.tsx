import { fixed } from '../formats/numbers.ts';
import '../styles/bars.css';
import { Bar } from './bar.tsx';

export function BarNumber({ value, decimals = 4 }: { value: number; decimals?: number }) {
  return (
    <span class="bar-number">
      <Bar share={Math.min(1, Math.max(0, value || 0))} class="bar" />
      <span>{fixed(value, decimals)}</span>
    </span>
  );
}
