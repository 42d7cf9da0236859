/** All suites, for a host that imports them in one go. */
import './goldens.ts';
import './reference_cases.ts';
import './semantics.ts';
import './module.ts';
import './loading.ts';
import './bad_input.ts';
import './leaks.ts';
import './threads.ts';
import './worker.ts';
import './safetensors.ts';
import './bits.ts';
