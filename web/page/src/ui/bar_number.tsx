import { fixed } from '../formats/numbers.ts';
import '../styles/bars.css';

/** A number from 0 to 1 with a bar of that length. */
export function BarNumber({ value, decimals = 4 }: { value: number; decimals?: number }) {
  return (
    <span class="bar-number" style={{ '--share': `${(100 * Math.min(1, Math.max(0, value || 0))).toFixed(1)}%` }}>
      {fixed(value, decimals)}
    </span>
  );
}
