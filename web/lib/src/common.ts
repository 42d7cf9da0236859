/** Exports of every entry that has load(). */
export { AttnError } from './args/error.js';
export { hub } from './args/hub.js';
export { tensor } from './args/nested.js';
export { encoderTraceNames, traceNames } from './engine/trace_names.js';
export { readSafetensorsHeader } from './model/safetensors_header.js';
