/** Normalizes a module's path in modules.json: "./1_Pooling/" becomes "1_Pooling". */
export const moduleFolder = (path: string): string => path.replace(/^\.(\/|$)|\b\/$/g, '');

/** Tests for the name of a folder inside the model's folder, or for none. */
export const isModuleFolder = (folder: string): boolean => /^([\w-][\w.-]{0,99})?$/.test(folder);
