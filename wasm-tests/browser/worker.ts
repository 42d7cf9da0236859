/** Runs the suites inside a worker, whose name holds the set-up. */
import { runSuites } from './run.ts';

void runSuites(new URLSearchParams(self.name));
