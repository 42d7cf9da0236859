/** All suites, for a host that imports them in one go. */
import { host } from '../support/host.ts';
import './goldens.ts';
import './reference_cases.ts';
import './semantics.ts';
import './edges.ts';
import './module.ts';
import './transformer.ts';
import './embedding.ts';
import './dropout.ts';
import './loading.ts';
import './bad_input.ts';
import './bad_layers.ts';
import './bad_files.ts';
import './odd_input.ts';
import './properties.ts';
import './leaks.ts';
import './out_of_memory.ts';
import './threads.ts';
import './worker.ts';
import './safetensors.ts';
import './bits.ts';
import './sequences.ts';
import './text_model.ts';
import './model_edits.ts';
import './sentiment.ts';
import './load_model.ts';

if (host.complete) await import('./tokenizer.ts');
