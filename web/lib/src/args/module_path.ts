/** The path of a module in modules.json without the parts that joining it to the model's folder leaves out: "1_Pooling" of "./1_Pooling/". */
export const moduleFolder = (path: string): string => path.replace(/^\.(\/|$)|\b\/$/g, '');

/** Whether it is the name of a folder in the model's folder, or none. */
export const isModuleFolder = (folder: string): boolean => /^([\w-][\w.-]{0,99})?$/.test(folder);
