/** How tokens become entities, as transformers' AggregationStrategy has it. */
export const aggregations = ['none', 'simple', 'first', 'average', 'max'] as const;
export type Aggregation = (typeof aggregations)[number];
