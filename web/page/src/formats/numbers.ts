/** Formats numbers in ASCII, so that they can be copied anywhere. */

/** Fixed decimals; never "-0.0000"; very large numbers in scientific notation. */
export function fixed(value: number, decimals = 6): string {
  if (!Number.isFinite(value)) return String(value);
  if (Math.abs(value) >= 1e9) return value.toExponential(decimals);
  const text = value.toFixed(decimals);
  return Number(text) === 0 ? (0).toFixed(decimals) : text;
}

/** Integers stay integers, and tiny numbers keep their leading digits. */
export function teaching(values: ArrayLike<number>): (value: number) => string {
  const whole = Array.from(values).every((value) => Number.isInteger(value) || !Number.isFinite(value));
  return (value) => {
    if (!Number.isFinite(value)) return String(value);
    if (whole || value === 0) return String(value === 0 ? 0 : value);
    return Math.abs(value) < 1e-4 ? value.toExponential(4) : fixed(value);
  };
}

/** As short as possible, for sums of products. */
export function brief(value: number): string {
  if (!Number.isFinite(value) || value === 0) return String(value === 0 ? 0 : value);
  if (Math.abs(value) >= 1e7) return value.toExponential(2).replace('e+', 'e');
  if (Number.isInteger(value)) return String(value);
  return Math.abs(value) < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(4)));
}

export const bracketed = (value: number): string => (value < 0 ? `(${brief(value)})` : brief(value));

/** With the sign as an operator: "+ 0.5", "- 0.5". */
export const joined = (value: number): string => `${value < 0 ? '-' : '+'} ${brief(Math.abs(value))}`;

/** Two digits: "1.7", "0.0045", "3.1e-6". */
export function shortNumber(value: number): string {
  const size = Math.abs(value);
  return value === 0 || (size >= 1e-3 && size < 1e4) ? String(Number(value.toPrecision(2))) : value.toExponential(1);
}

/** The shortest decimal that restores the float32. */
export function shortestFloat32(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  for (let digits = 1; digits < 9; ++digits) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

/** "1.2e-7" */
export function scientific(value: number): string {
  return value === 0 ? '0' : value.toExponential(1);
}

export function milliseconds(value: number): string {
  return `${value < 10 ? value.toFixed(2) : value.toFixed(1)} ms`;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** "(3, 4)" */
export function shapeText(dims: readonly number[]): string {
  return `(${dims.join(', ')})`;
}

export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
export const wholeMegabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;
