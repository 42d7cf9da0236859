/** Stores a limited number of snapshots of a run: evenly spread, with the first and the newest. */
export class Moments<T> {
  readonly #most: number;
  #every: number;
  #kept: { readonly step: number; readonly value: T }[] = [];
  #newest: { readonly step: number; readonly value: T } | undefined;

  /** At most `most`, initially `every` steps apart. */
  constructor(most: number, every: number) {
    this.#most = Math.max(2, most);
    this.#every = every;
  }

  get steps(): readonly number[] {
    const kept = this.#kept.map(({ step }) => step);
    return this.#newest && this.#newest.step !== kept.at(-1) ? [...kept, this.#newest.step] : kept;
  }

  wants(step: number): boolean {
    return step % this.#every === 0;
  }

  /** Steps must increase. */
  add(step: number, value: T): void {
    const isKept = this.#kept.at(-1)?.step === step;
    this.#newest = { step, value };
    if (isKept || !this.wants(step)) return;
    this.#kept.push(this.#newest);
    if (this.#kept.length < this.#most) return;
    this.#every *= 2;
    this.#kept = this.#kept.filter((each) => this.wants(each.step));
  }

  at(step: number): { readonly step: number; readonly value: T } | undefined {
    if (this.#newest && this.#newest.step <= step) return this.#newest;
    return this.#kept.findLast((each) => each.step <= step);
  }
}
