// The build puts Comlink beside the compiled sources under this name.
export * from 'comlink';
