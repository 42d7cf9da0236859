import { render } from 'preact';
import { App } from './app.tsx';
import { followGuesses } from './state/guess.ts';
import { keepInHash } from './state/hash.ts';
import { followHeads } from './state/heads.ts';
import { followOpeningModel, startPage } from './state/load_model.ts';
import { follow } from './state/run.ts';
import { firstVisit } from './state/view.ts';

keepInHash(firstVisit);
followOpeningModel();
follow();
followGuesses();
followHeads();
void startPage();
// Files and the worker are requested by this thread, before rendering keeps it busy.
setTimeout(() => render(<App />, document.getElementById('app')!));
