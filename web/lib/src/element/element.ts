export { AttentionImage, defineAttentionImage } from './attention_image.js';
export { AttentionMap, defineAttentionMap } from './attention_map.js';
export { viridis, writeViridis } from './colours.js';
export { figureToPng, figureToSvg, paintFigure } from './figure.js';
export { imageFigure } from './image.js';
export { linesFigure, mapFigure } from './map.js';
