/** The suites inside a worker. The set-up comes as the worker's name. */
import { runSuites } from './run.ts';

void runSuites(new URLSearchParams(self.name));
