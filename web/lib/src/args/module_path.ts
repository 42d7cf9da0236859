/** "./1_Pooling/" becomes "1_Pooling". */
export const moduleFolder = (path: string): string => path.replace(/^\.(\/|$)|\b\/$/g, '');

/** Accepts '', the model's folder itself. */
export const isModuleFolder = (folder: string): boolean => /^([\w-][\w.-]{0,99})?$/.test(folder);
