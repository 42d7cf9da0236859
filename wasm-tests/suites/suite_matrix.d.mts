import type { Host } from '../support/host.ts';

type SetUp = Pick<Host, 'engine' | 'variant' | 'threads' | 'build'>;
export function isComplete(setUp: Pick<SetUp, 'engine' | 'variant' | 'threads'>): boolean;
export function suitesOf(setUp: SetUp): string[];
export function checkMatrix(files: readonly string[]): string[];
