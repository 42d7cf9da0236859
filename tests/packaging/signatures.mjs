/**
 * Compares the hand-written types that attn.d.ts exports with the signatures that the module declares (src/bindings): names,
 * order of arguments, optional ones, and the words of each list.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';

const ownOfAttn = ['info', 'writeSafetensors', 'loadModel', 'dispose', '[Symbol.dispose]'];
const ownOfModules = ['dispose', '[Symbol.dispose]'];

/** Options that JavaScript applies itself. */
const ownOptions = ['.loadStateDict.options.prefix'];

/** Codes that C++ never throws: errors of JavaScript arrays and objects, of fetching, and of C++ itself. */
const ownErrorCodes = ['DTYPE', 'DISPOSED', 'WRONG_INSTANCE', 'DETACHED', 'NETWORK', 'ABORTED', 'ENVIRONMENT', 'INTERNAL'];

/** Used by loadModel(), which has its own types; not a member of an instance. */
const internalClass = 'TextModel';

export async function openModule(dist) {
  const { default: factory } = await import(pathToFileURL(join(dist, 'attn.mjs')).href);
  const module = await WebAssembly.compile(readFileSync(join(dist, 'attn-simd.wasm')));
  return factory({
    wasmMemory: new WebAssembly.Memory({ initial: 32, maximum: 65536 }),
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(module, imports).then((instance) => done(instance, module));
      return {};
    },
  });
}

export function differences(file, module) {
  const program = ts.createProgram([file], { strict: true, noEmit: true, target: ts.ScriptTarget.ES2022, types: [], skipDefaultLibCheck: true });
  const checker = program.getTypeChecker();
  const source = program.getSourceFile(file);
  const aliased = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol);
  const exported = new Map(checker.getExportsOfModule(checker.getSymbolAtLocation(source)).map((symbol) => [symbol.name, aliased(symbol)]));
  const found = [];
  const same = (what, ours, theirs) => {
    for (const name of theirs) if (!ours.includes(name)) found.push(`${what}: the types lack ${name}`);
    for (const name of ours)
      if (!theirs.includes(name) && !ownOptions.some((each) => `${what}.${name}`.endsWith(each))) found.push(`${what}: the module lacks ${name}`);
  };
  const typeOf = (name) => checker.getDeclaredTypeOfSymbol(exported.get(name));
  const nameOf = (symbol) => (symbol.name.startsWith('__@dispose') ? '[Symbol.dispose]' : symbol.name);
  const typeOfSymbol = (symbol) => checker.getTypeOfSymbolAtLocation(symbol, symbol.valueDeclaration ?? source);
  const isOptional = (symbol) => (symbol.flags & ts.SymbolFlags.Optional) !== 0 || Boolean(symbol.valueDeclaration?.questionToken);
  const parts = (type) => (type.isUnion() ? type.types : [type]).filter((part) => (part.flags & ts.TypeFlags.Undefined) === 0);
  const words = (type) =>
    parts(type)
      .filter((part) => part.isStringLiteral())
      .map((part) => part.value);
  const elements = (type) => parts(type).flatMap((part) => (checker.isArrayType(part) ? checker.getTypeArguments(part) : []));
  const is = (type, flag) => parts(type).length > 0 && parts(type).every((part) => (part.flags & flag) !== 0);

  function compareArgument(path, argument, symbol) {
    if (isOptional(symbol) === (argument.required === true))
      found.push(`${path} is ${argument.required ? 'required' : 'optional'} in the module, not in the types`);
    const type = typeOfSymbol(symbol);
    switch (argument.kind) {
      case 'group':
        return compareAll(path, argument.members, checker.getNonNullableType(type).getProperties());
      case 'list':
        return compareAll(path, argument.members, elements(type)[0].getProperties());
      case 'choice':
        return same(path, words(type), argument.choices);
      case 'trace':
      case 'names':
        return same(path, elements(type).flatMap(words), argument.choices);
      case 'mask':
        return same(`${path}.kind`, words(typeOfSymbol(checker.getNonNullableType(type).getProperty('kind'))), argument.choices);
      case 'flag':
        return is(type, ts.TypeFlags.BooleanLike) || found.push(`${path} is a boolean in the module, not in the types`);
      case 'int':
      case 'seed':
      case 'number':
        return is(type, ts.TypeFlags.Number) || found.push(`${path} is a number in the module, not in the types`);
    }
  }

  function compareAll(path, list, symbols) {
    same(
      path,
      symbols.map(nameOf),
      list.map(({ name }) => name),
    );
    for (const argument of list) {
      const symbol = symbols.find(({ name }) => name === argument.name);
      if (symbol) compareArgument(`${path}.${argument.name}`, argument, symbol);
    }
  }

  function compareCall(path, list, signature) {
    const [ours, theirs] = [signature.parameters.map(({ name }) => name), list.map(({ name }) => name)];
    compareAll(path, list, signature.parameters);
    if (ours.join() !== theirs.join())
      found.push(`${path}: the order of the arguments is (${ours.join(', ')}) in the types, (${theirs.join(', ')}) in the module`);
  }

  const signatures = JSON.parse(module.signatures()).filter(({ owner }) => owner !== internalClass);
  const members = typeOf('Attn').getProperties();
  const of = (owner) => signatures.filter((signature) => signature.owner === owner);
  const classes = [...new Set(signatures.flatMap(({ owner }) => owner ?? []))];
  same('Attn', members.map(nameOf), [...of(undefined).map(({ name }) => name), ...classes, ...ownOfAttn]);
  for (const member of members) {
    const name = nameOf(member);
    const signature = of(undefined).find((each) => each.name === name);
    const type = typeOfSymbol(member);
    if (signature) compareCall(name, signature.arguments, type.getCallSignatures()[0]);
    if (!classes.includes(name)) continue;
    const [constructor] = type.getConstructSignatures();
    const properties = constructor.getReturnType().getProperties();
    const methods = of(name).filter((each) => each.name !== 'constructor');
    compareCall(`new ${name}`, of(name).find((each) => each.name === 'constructor').arguments, constructor);
    same(name, properties.map(nameOf), [...methods.map((each) => each.name), ...ownOfModules]);
    for (const method of methods) {
      const property = properties.find((each) => each.name === method.name);
      if (property && method.result !== 'property')
        compareCall(`${name}.${method.name}`, method.arguments, typeOfSymbol(property).getCallSignatures()[0]);
    }
  }
  same('ErrorCode', words(typeOf('ErrorCode')), [...module.errorCodes().split(','), ...ownErrorCodes]);
  return found;
}
