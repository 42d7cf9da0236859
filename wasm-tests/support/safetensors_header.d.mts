export interface StoredTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Counted from `dataStart`. */
  readonly data_offsets: readonly [number, number];
}

export declare function readSafetensorsHeader(file: Uint8Array): {
  readonly tensors: Readonly<Record<string, StoredTensor>>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly dataStart: number;
};
