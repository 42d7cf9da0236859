// Embind registers every type it knows when a module starts. These are types that no binding takes or returns: for them nothing is
// done, and what converts them stays out of the glue.
addToLibrary({
  _embind_register_bigint: (type, name, size, least, most) => {},
  _embind_register_emval: (type) => {},
  _embind_register_memory_view: (type, index, name) => {},
  _embind_register_std_wstring: (type, size, name) => {},
});
