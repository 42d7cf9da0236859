/** transformers' AggregationStrategy. */
export const aggregations = ['none', 'simple', 'first', 'average', 'max'] as const;
export type Aggregation = (typeof aggregations)[number];
