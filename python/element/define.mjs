import { defineAttentionMap } from '../../web/lib/src/attention_map.js';

defineAttentionMap();
