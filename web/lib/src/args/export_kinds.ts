export const exportKinds = ['float32', 'float16', 'int8'] as const;
export type ExportKind = (typeof exportKinds)[number];
