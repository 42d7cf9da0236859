/** The path of a module in a model's folder: the name of a folder in it, or none. */
export const modulePath = /^([\w-][\w.-]{0,99})?$/;
