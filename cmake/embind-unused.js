// Removes unused features of Emscripten's src/embind/embind.js, such as strings as arguments, overloads and base
// classes, from the glue.
addToLibrary({
  _embind_register_bigint__deps: [],
  _embind_register_bigint: (type, name, size, least, most) => {},
  _embind_register_emval__deps: [],
  _embind_register_emval: (type) => {},
  _embind_register_memory_view__deps: [],
  _embind_register_memory_view: (type, index, name) => {},
  _embind_register_std_wstring__deps: [],
  _embind_register_std_wstring: (type, size, name) => {},

  _embind_register_std_string__deps: ['$registerType', 'free'],
  _embind_register_std_string: (type, name) => {
    registerType(type, {
      name: 'string',
      fromWireType(value) {
        const text = new TextDecoder().decode(HEAPU8.slice(value + 4, value + 4 + HEAPU32[value >>> 2]));
        _free(value);
        return text;
      },
      argPackAdvance: 8,
      destructorFunction: null,
    });
  },
  $integerReadValueFromPointer: (name, size, signed) => {},
  $floatReadValueFromPointer: (name, size) => {},

  $throwUnboundTypeError__deps: ['$throwBindingError'],
  $throwUnboundTypeError: (message, types) => throwBindingError(message),
  $ensureOverloadTable: (owner, method, name) => throwBindingError(`${name} is bound twice`),

  $genericPointerToWireType__deps: [],
  $genericPointerToWireType: undefined,
  $RegisteredPointer_fromWireType__deps: ['$makeClassHandle'],
  $RegisteredPointer_fromWireType: function (ptr) {
    return makeClassHandle(this.registeredClass.instancePrototype, { ptrType: this, ptr });
  },
  $makeClassHandle__deps: [],
  $makeClassHandle: (prototype, record) => Object.create(prototype, { $$: { value: record } }),
  $init_ClassHandle__deps: ['$ClassHandle', '$throwInstanceAlreadyDeleted', '$runDestructor'],
  $init_ClassHandle: () => {
    ClassHandle.prototype.delete = function () {
      if (!this.$$.ptr) throwInstanceAlreadyDeleted(this);
      runDestructor(this.$$);
      this.$$.ptr = undefined;
    };
  },
});
