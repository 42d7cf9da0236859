/** attn's GEMM on packed weights as a contender, through a module with the package's objects (gemm.cpp). */
function started(factory, bytes) {
  return new Promise((done, fail) => {
    factory({
      wasmMemory: new WebAssembly.Memory({ initial: 32, maximum: 65536 }),
      instantiateWasm(imports, ready) {
        WebAssembly.instantiate(bytes, imports).then(({ instance, module }) => ready(instance, module), fail);
        return {};
      },
    }).then(done, fail);
  });
}

/** A call that only reads this many bytes: the least time of a forward with as many bytes of weights. */
export async function streamOf({ factory, bytes }, size) {
  const module = await started(factory, bytes);
  module._stream_prepare(size);
  return module._stream_run;
}

/** factory and bytes are gemm-VARIANT.mjs and .wasm; attn is an instance of the package, for the peak. */
export async function gemmContender(attn, { factory, bytes }, variant) {
  const module = await started(factory, bytes);
  return {
    contender: 'attn',
    variant,
    threads: 1,
    attn,
    prepare({ M, K, N, int8 }) {
      const y = module._gemm_prepare(M, K, N, int8 ?? false);
      return {
        call: module._gemm_run,
        output() {
          module._gemm_run();
          return module.HEAPF32.slice(y >> 2, (y >> 2) + M * N);
        },
      };
    },
    dispose: () => attn.dispose(),
  };
}
