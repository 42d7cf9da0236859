/** The file that the browser starts. It imports all else, for WebKit runs a worker's first module again when a later chunk imports it. */
import reviews from './reviews.bin?url';

void import('./serve.ts').then(({ serve }) => serve(new URL(reviews, location.href).href));
