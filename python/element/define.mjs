import { defineAttentionMap } from '../../web/lib/src/element/attention_map.js';

defineAttentionMap();
