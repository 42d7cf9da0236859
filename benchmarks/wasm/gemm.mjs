/** attn's GEMM on packed weights as a contender, through a module of the package's own objects (gemm.cpp). */
/** factory and bytes are of gemm-VARIANT.mjs and .wasm; attn is an instance of the package, for the peak. */
export async function gemmContender(attn, { factory, bytes }, variant) {
  const module = await new Promise((done, fail) => {
    factory({
      wasmMemory: new WebAssembly.Memory({ initial: 32, maximum: 65536 }),
      instantiateWasm(imports, ready) {
        WebAssembly.instantiate(bytes, imports).then(({ instance, module }) => ready(instance, module), fail);
        return {};
      },
    }).then(done, fail);
  });
  return {
    contender: 'attn',
    variant,
    threads: 1,
    attn,
    prepare({ M, K, N }) {
      const y = module._gemm_prepare(M, K, N);
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
