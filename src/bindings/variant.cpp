// The loader recognises the build by this section.
__asm__(".section .custom_section.attn,\"\",@\n.ascii \"" ATTN_WASM_VARIANT "\"\n");
