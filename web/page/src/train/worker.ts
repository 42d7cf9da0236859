/** The worker's script. Everything else is imported dynamically: WebKit runs a worker's first module again if a later chunk imports it. */
import reviews from './reviews.bin?url';

void import('./serve.ts').then(({ serve }) => serve(new URL(reviews, location.href).href));
