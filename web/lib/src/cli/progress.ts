export const counted = (count: number, unit: string) => `${count} ${unit}${count === 1 ? '' : 's'}`;

export class Progress {
  readonly #unit: string;
  readonly #shown: boolean;
  #next = 0;

  constructor(unit: string, shown: boolean) {
    this.#unit = unit;
    this.#shown = shown;
  }

  /** `at` of `size` is done; without a size there is no bar. */
  report(count: number, at: number, size: number | undefined): void {
    if (!this.#shown || (Date.now() < this.#next && at !== size)) return;
    this.#next = Date.now() + 100;
    const share = size ? Math.min(at / size, 1) : undefined;
    const bar = share === undefined ? '' : `[${'#'.repeat(Math.floor(share * 30)).padEnd(30, '-')}] ${Math.floor(share * 100)} %, `;
    process.stderr.write(`\r${bar}${counted(count, this.#unit)}`);
  }

  clear(): void {
    if (this.#shown) process.stderr.write('\r\x1b[K');
  }
}
