import { runSuites } from './run.ts';

void runSuites(new URLSearchParams(self.name));
