import { render } from 'preact';
import { App } from './app.tsx';
import { keepInHash } from './state/hash.ts';
import { followHeads } from './state/heads.ts';
import { startPage } from './state/load_model.ts';
import { follow } from './state/run.ts';
import { followWhy } from './state/why.ts';
import './styles/print.css';

keepInHash();
follow();
followHeads();
followWhy();
void startPage();
// Files and the worker are requested by this thread, before rendering keeps it busy.
setTimeout(() => render(<App />, document.getElementById('app')!));
