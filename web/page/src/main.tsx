import { render } from 'preact';
import { App } from './app.tsx';
import { keepInHash } from './state/hash.ts';
import { followHeads } from './state/heads.ts';
import { startPage } from './state/model.ts';
import { follow } from './state/run.ts';

keepInHash();
follow();
followHeads();
void startPage();
render(<App />, document.getElementById('app')!);
