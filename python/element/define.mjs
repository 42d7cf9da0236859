import { defineAttentionImage } from '../../web/lib/src/element/attention_image.js';
import { defineAttentionMap } from '../../web/lib/src/element/attention_map.js';

defineAttentionMap();
defineAttentionImage();
