// The build places Comlink next to the compiled sources under this name.
export * from 'comlink';
