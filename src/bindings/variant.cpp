// Names the build in a custom section, from which the loader recognises it.
__asm__(".section .custom_section.attn,\"\",@\n.ascii \"" ATTN_WASM_VARIANT "\"\n");
